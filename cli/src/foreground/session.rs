//! The loop of `run` and `attach`: writes the task's output as it comes, reacts to signals and to the
//! detach key, and ends with the Attach stream.

mod ending;
mod incoming;
mod relayed;

use std::io;

use heeler_client::{
    Attach, AttachEnded, AttachItem, CancelOptions, Client, DetachOptions, Error, StreamExt, Task,
    v1::{AttachEndReason, BackgroundTask, CancelResult, DetachOutcome, DetachResult},
};
use nix::sys::signal::Signal;
use tokio::task::JoinSet;

use super::{
    input::{self, Input, InputEvent, PassedInput},
    keyboard::Keyboard,
    late_output::LateOutput,
    output::ForegroundOutput,
    signals::{Received, Signals},
};
use crate::{
    args::value::terminal_size,
    exit::Exit,
    failure::Failure,
    out,
    render::{proof, status},
};
use relayed::Relayed;

/// The command that the session belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `heeler run`: a signal that ends the command stops the task.
    Run(StopSignal),
    /// `heeler attach`: a signal ends the command alone.
    Attach,
}

/// The signal with which `heeler run` stops its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// The signal that the command received.
    AsReceived,
    /// The task's own, given with `--stop-signal`.
    AsConfigured,
}

/// The terminal of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskTerminal {
    None,
    /// It has the size of this command's own terminal, unless another client has the input.
    SameSize,
}

#[derive(Debug)]
pub(crate) struct ForegroundSession {
    client: Client,
    task: Task,
    mode: Mode,
    output: ForegroundOutput,
    keyboard: Keyboard,
    signals: Signals,
    input: Option<PassedInput>,
    terminal: TaskTerminal,
    /// The shim reads and writes this command's streams itself.
    relay: Option<Relayed>,
    /// Calls to the daemon without a response yet.
    calls: JoinSet<Response>,
    progress: Progress,
    /// Output that follows the leader's exit.
    late_output: Option<LateOutput>,
}

#[derive(Debug, Default)]
struct Progress {
    ended: Option<AttachEnded>,
    /// The stream has delivered an item: the task exists.
    attached: bool,
    /// The offset after the last byte received.
    offset: u64,
    stop_requests: u32,
    first_signal: Option<Signal>,
    /// The exit of a task that was stopped; its output may still be on its way.
    stopped: Option<Exit>,
    has_survivors: bool,
    output_error: Option<io::Error>,
    /// The detach key was pressed, and the daemon has not answered.
    is_detaching: bool,
    /// `heeler attach` leaves a background task.
    left: bool,
    /// The stream has broken for good.
    is_lost: bool,
}

#[derive(Debug)]
enum Response {
    Cancelled(Result<CancelResult, Error>),
    Finished(Result<BackgroundTask, Error>),
    Detached(Result<DetachResult, Error>),
    Resized,
}

impl ForegroundSession {
    pub(crate) fn new(
        client: Client,
        task: Task,
        mode: Mode,
        output: ForegroundOutput,
        keyboard: Keyboard,
        signals: Signals,
    ) -> Self {
        Self {
            client,
            task,
            mode,
            output,
            keyboard,
            signals,
            input: None,
            terminal: TaskTerminal::None,
            relay: None,
            calls: JoinSet::new(),
            progress: Progress::default(),
            late_output: None,
        }
    }

    /// Passes input on to the task.
    pub(crate) fn pass_input(mut self, input: Option<Input>, terminal: TaskTerminal) -> Self {
        self.input = input.map(|input| input.pass_to(&self.task));
        self.terminal = terminal;
        self
    }

    /// Runs until the Attach stream has ended, or until a signal or a key ends the command before.
    pub(crate) async fn run(mut self, attach: Attach) -> Result<Exit, Failure> {
        match self.follow(attach).await {
            Ok(None) => self.finish().await,
            Ok(Some(exit)) => {
                self.leave().await;
                Ok(exit)
            }
            Err(failure) => {
                let note = self.lost_connection();
                self.leave().await;
                if let Some(note) = note {
                    out::note(&note);
                }
                Err(failure)
            }
        }
    }

    /// Returns an exit if the command ends before the stream.
    async fn follow(&mut self, mut attach: Attach) -> Result<Option<Exit>, Failure> {
        while !self.is_done() {
            let has_room = !self.output.is_full();
            let is_relay_ending = self.relay.as_ref().is_some_and(Relayed::is_ending);
            let is_open = self.progress.ended.is_none() && has_room && !is_relay_ending;
            tokio::select! {
                received = self.signals.next() => {
                    if received == Received::Suspend {
                        self.suspend().await;
                    } else if let Some(exit) = self.handle_signal(received) {
                        return Ok(Some(exit));
                    }
                }
                () = self.keyboard.pressed() => self.detach()?,
                event = next_of_input(&mut self.input) => match event {
                    InputEvent::Claimed => self.resize(),
                    InputEvent::CallerGone if self.mode == Mode::Attach => {}
                    InputEvent::CallerGone => {
                        self.stop(CancelOptions::graceful().reason("the caller is gone"));
                    }
                },
                Some(response) = self.calls.join_next() => self.handle_response(response.ok()),
                written = self.output.advance() => self.handle_written(written)?,
                end = relayed::ended(&mut self.relay), if self.relay.is_some() => {
                    if let Some(next) = self.after_relay(end)? {
                        attach = next;
                    }
                }
                item = attach.next(), if is_open => match (item, &mut self.relay) {
                    (Some(Ok(AttachItem::Ended(ended))), Some(relayed)) => relayed.leave(ended).await,
                    (item, _) => self.handle_item(item)?,
                },
                late = incoming::next(&mut self.late_output), if has_room => self.handle_late(late)?,
            }
        }
        Ok(None)
    }

    fn is_done(&self) -> bool {
        let is_idle = self.calls.is_empty() && self.late_output.is_none();
        self.progress.left || self.progress.ended.is_some() && is_idle
    }

    /// Returns an exit if the command ends at once.
    pub(crate) fn handle_signal(&mut self, received: Received) -> Option<Exit> {
        match (received, self.mode) {
            (Received::Suspend, _) => self.keyboard.suspend(),
            (Received::Continue, _) => self.keyboard.resume(),
            (Received::Resize, _) => self.resize(),
            // The task's on_disconnect decides what follows.
            (Received::HangUp, _) => return Some(Exit::Signalled(Signal::SIGHUP)),
            (Received::End(signal), Mode::Attach) => return Some(Exit::Signalled(signal)),
            // The task is finished, and only its output is not written yet.
            (Received::End(_), Mode::Run(_)) if self.progress.stopped.is_some() => {
                return self.progress.stopped;
            }
            (Received::End(signal), Mode::Run(stop_signal)) => {
                let options = match (self.progress.stop_requests, stop_signal) {
                    (0, StopSignal::AsReceived) => {
                        CancelOptions::graceful().signal(signal.as_str())
                    }
                    (0, StopSignal::AsConfigured) => CancelOptions::graceful(),
                    (1, _) => CancelOptions::force(),
                    // The daemon does not answer, or the tree cannot be killed.
                    (2.., _) => return Some(Exit::Signalled(signal)),
                };
                self.progress.first_signal.get_or_insert(signal);
                self.stop(options.reason(signal.as_str()));
            }
        }
        None
    }

    fn stop(&mut self, options: CancelOptions) {
        self.progress.stop_requests += 1;
        let (task, options) = (self.task.clone(), options.actor("heeler run"));
        self.calls
            .spawn(async move { Response::Cancelled(task.cancel(options).await) });
    }

    /// Gives the task's terminal the size of this one, unless it follows that of another client, which has the input.
    fn resize(&mut self) {
        if self.terminal == TaskTerminal::None {
            return;
        }
        let (Some(input), Some(size)) = (&self.input, terminal_size::own()) else {
            return;
        };
        let (client, task) = (self.client.clone(), self.task.clone());
        let own = input.writer_id().to_owned();
        self.calls.spawn(async move {
            // The task may have ended.
            if let Ok(holder) = input::holder(&client, &task).await
                && (holder.is_empty() || holder == own)
            {
                let _ = task.resize_terminal(size.columns, size.rows).await;
            }
            Response::Resized
        });
    }

    /// Detaches the task. If the daemon does not answer, a second press ends the command.
    fn detach(&mut self) -> Result<(), Failure> {
        if self.progress.is_detaching {
            let id = self.task.id();
            return Err(Failure::Other(format!(
                "the daemon has not answered: {id} may still be in the foreground, where its --on-disconnect applies"
            )));
        }
        self.progress.is_detaching = true;
        let options = DetachOptions::new().actor("heeler").reason("detach key");
        let task = self.task.clone();
        self.calls
            .spawn(async move { Response::Detached(task.detach(options).await) });
        Ok(())
    }

    fn handle_response(&mut self, response: Option<Response>) {
        if let Some(Response::Detached(_)) = response {
            self.progress.is_detaching = false;
        }
        match response {
            Some(Response::Cancelled(Ok(result))) => self.cancelled(&result),
            Some(Response::Detached(Ok(result))) => self.detached(&result),
            Some(Response::Finished(Ok(task))) => {
                self.progress.ended = Some(AttachEnded {
                    task,
                    reason: AttachEndReason::Finished,
                });
            }
            Some(
                Response::Cancelled(Err(error))
                | Response::Finished(Err(error))
                | Response::Detached(Err(error)),
            ) => {
                out::report(&error.into());
            }
            Some(Response::Resized) | None => {}
        }
    }

    fn cancelled(&mut self, result: &CancelResult) {
        let task = result.task.as_ref();
        let found = task.and_then(proof::of);
        if let Some(found) = found.filter(|found| proof::has_survivors(found)) {
            self.progress.has_survivors = true;
            out::note(&format!("{}: {}", self.task.id(), proof::clause(found)));
        }
        let finished = task.filter(|task| status::is_finished(task));
        self.progress.stopped = finished.map(Exit::of_task);
    }

    /// A detach does not end the stream of a task that is in the background already.
    fn detached(&mut self, result: &DetachResult) {
        self.progress.left =
            self.mode == Mode::Attach && result.outcome() == DetachOutcome::AlreadyBackground;
    }

    /// Without a reader, `run` stops its task, as SIGPIPE would; `attach` exits.
    fn handle_written(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        let Err(error) = written else { return Ok(()) };
        match self.mode {
            Mode::Attach => Err(error.into()),
            Mode::Run(_) => {
                let reason = format!("cannot write its output: {error}");
                self.progress.output_error = Some(error);
                if self.progress.ended.is_none() {
                    self.stop(CancelOptions::graceful().reason(reason));
                }
                Ok(())
            }
        }
    }
}

/// The next event of the input; never returns without one.
async fn next_of_input(input: &mut Option<PassedInput>) -> InputEvent {
    match input {
        Some(input) => input.next().await,
        None => std::future::pending().await,
    }
}
