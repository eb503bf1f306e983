//! The loop of `run` and `attach`: writes the task's output as it comes, reacts to signals and to the
//! detach key, and ends with the Attach stream.

mod incoming;

use std::{io, time::Duration};

use heeler_client::{
    Attach, AttachEnded, AttachItem, AttachOptions, CancelOptions, Client, DetachOptions, Error,
    InputOptions, StreamExt, Task,
    v1::{
        AttachEndReason, BackgroundTask, CancelResult, DetachOutcome, DetachResult,
        WriteInputRequest, WriteInputResponse,
    },
};
use nix::sys::signal::Signal;
use tokio::{io::AsyncWriteExt, task::JoinSet, time::timeout};

use super::{
    closing_message::closing_message,
    input::{Input, InputEvent, PassedInput, watch_caller},
    keyboard::Keyboard,
    late_output::{LateOutput, ReadUntil},
    output::ForegroundOutput,
    relay::Relay,
    signals::{Received, Signals},
};
use crate::{
    args::value::terminal_size,
    exit::Exit,
    failure::Failure,
    out,
    render::{outcome, proof, status},
};

/// An offset beyond any output.
const NO_OUTPUT: u64 = 1 << 62;
/// The time that a shim has to end a relay.
const RELAY_ENDS_WITHIN: Duration = Duration::from_secs(2);

/// The time that the terminal has to take the last output of a command that a signal ends.
const CLOSES_WITHIN: Duration = Duration::from_millis(200);

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
#[derive(Debug, Clone)]
pub(crate) enum TaskTerminal {
    None,
    /// It has the size of this command's own terminal, unless another client has the input.
    SameSize(Box<Client>),
}

#[derive(Debug)]
pub(crate) struct ForegroundSession {
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

/// A relay, and what goes on where it ends.
#[derive(Debug)]
struct Relayed {
    relay: Relay,
    writer_id: String,
    options: fn(u64) -> AttachOptions,
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
    /// `heeler attach` leaves a background task.
    left: bool,
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
        task: Task,
        mode: Mode,
        output: ForegroundOutput,
        keyboard: Keyboard,
        signals: Signals,
    ) -> Self {
        Self {
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

    /// Passes stdin on to the task: lets its shim read and write this command's streams, if it can, or passes them on
    /// itself. Returns the Attach stream for the rest. `options`: those of an Attach from an offset on.
    pub(crate) async fn pass_stdin(
        &mut self,
        uid: &str,
        options: fn(u64) -> AttachOptions,
    ) -> io::Result<Attach> {
        // With a random id, by which the shim knows this client.
        let mut claim = self.task.input_with(InputOptions::default().take_over());
        let writer_id = claim.writer_id().to_owned();
        let relay = match claim.flush().await {
            Ok(()) => {
                let (output, at) = (&mut self.output, &mut self.progress.offset);
                Relay::begin(&self.task, uid, &writer_id, output, at).await
            }
            Err(_) => None,
        };
        let Some(relay) = relay else {
            let input = Input::stdin()?.writer_id(&writer_id);
            self.input = Some(input.pass_to(&self.task));
            return Ok(self.task.attach_with(options(self.progress.offset)));
        };
        self.input = Some(watch_caller(&writer_id)?);
        self.relay = Some(Relayed {
            relay,
            writer_id,
            options,
        });
        Ok(self.task.attach_with(options(NO_OUTPUT)))
    }

    /// Runs until the Attach stream has ended, or until a signal or a key ends the command before.
    pub(crate) async fn run(mut self, mut attach: Attach) -> Result<Exit, Failure> {
        while !self.is_done() {
            let has_room = !self.output.is_full();
            let is_open = self.progress.ended.is_none() && has_room;
            tokio::select! {
                received = self.signals.next() => {
                    if let Some(exit) = self.handle_signal(received) {
                        let close = self.output.close(self.keyboard, None);
                        // The terminal may be stopped or gone.
                        let _ = timeout(CLOSES_WITHIN, close).await;
                        return Ok(exit);
                    }
                }
                () = self.keyboard.pressed(), if self.calls.is_empty() => self.detach(),
                event = next_of_input(&mut self.input) => match event {
                    InputEvent::Claimed => self.resize(),
                    InputEvent::CallerGone if self.mode == Mode::Attach => {}
                    InputEvent::CallerGone => {
                        self.stop(CancelOptions::graceful().reason("the caller is gone"));
                    }
                },
                Some(response) = self.calls.join_next() => self.handle_response(response.ok()),
                written = self.output.advance() => self.handle_written(written)?,
                end = relay_ended(&mut self.relay), if self.relay.is_some() => {
                    attach = self.go_on(end)?;
                }
                item = attach.next(), if is_open => {
                    if let Some(Ok(AttachItem::Ended(ended))) = &item {
                        self.end_relay(ended).await;
                    }
                    self.handle_item(item)?;
                }
                late = incoming::next(&mut self.late_output), if has_room => self.handle_late(late)?,
            }
        }
        self.finish().await
    }

    /// Passes the streams on by itself, from where a relay has ended.
    fn go_on(&mut self, end: Option<u64>) -> io::Result<Attach> {
        let offset = end.unwrap_or(NO_OUTPUT);
        self.progress.offset = offset;
        let Some(relayed) = self.relay.take() else {
            return Ok(self.task.attach_with(AttachOptions::from_offset(offset)));
        };
        let input = Input::stdin()?.writer_id(&relayed.writer_id);
        self.input = Some(input.pass_to(&self.task));
        Ok(self.task.attach_with((relayed.options)(offset)))
    }

    /// Ends a relay with the Attach stream. Output that it has left is read like late output.
    async fn end_relay(&mut self, ended: &AttachEnded) {
        let Some(mut relayed) = self.relay.take() else {
            return;
        };
        relayed.relay.leave().await;
        let end = timeout(RELAY_ENDS_WITHIN, relayed.relay.ended()).await;
        let Ok(Some(offset)) = end else { return };
        self.progress.offset = offset;
        if ended.reason == AttachEndReason::Finished && offset < ended.task.output_bytes {
            let late = LateOutput::open(&self.task, offset, ReadUntil::TaskEnd);
            self.late_output = Some(late);
        }
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
        let TaskTerminal::SameSize(client) = &self.terminal else {
            return;
        };
        let (Some(input), Some(size)) = (&self.input, terminal_size::own()) else {
            return;
        };
        let (client, task) = (client.clone(), self.task.clone());
        let own = input.writer_id().to_owned();
        self.calls.spawn(async move {
            let question = WriteInputRequest {
                task_id: task.id().to_owned(),
                ..WriteInputRequest::default()
            };
            // The task may have ended.
            if let Ok(WriteInputResponse { writer_id, .. }) = client.write_input(question).await
                && (writer_id.is_empty() || writer_id == own)
            {
                let _ = task.resize_terminal(size.columns, size.rows).await;
            }
            Response::Resized
        });
    }

    fn detach(&mut self) {
        let options = DetachOptions::new().actor("heeler").reason("detach key");
        let task = self.task.clone();
        self.calls
            .spawn(async move { Response::Detached(task.detach(options).await) });
    }

    fn handle_response(&mut self, response: Option<Response>) {
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

    /// Writes the rest of the output and the closing message.
    async fn finish(mut self) -> Result<Exit, Failure> {
        let is_finished = |ended: &AttachEnded| ended.reason == AttachEndReason::Finished;
        let continues = !self.progress.ended.as_ref().is_some_and(is_finished);
        if let Some(input) = self.input.take().filter(|_| continues) {
            input.release(&self.task).await;
        }
        let ended = self.progress.ended.take();
        tokio::select! {
            written = self.output.close(self.keyboard, ended.as_ref()) => written?,
            _ = self.signals.next() => {}
        }
        let Some(ended) = ended else {
            return Ok(Exit::Success);
        };
        if let Some(error) = self.progress.output_error {
            return Err(Failure::TaskOutput(error));
        }
        let message = closing_message(&ended, self.progress.stop_requests);
        for text in message.iter().chain(&status::missing_output(&ended.task)) {
            out::note(text);
        }
        match self.progress.has_survivors {
            true => Ok(Exit::Failed),
            false => Ok(exit(&ended, self.progress.first_signal)),
        }
    }
}

/// The end of a relay, and the offset of the first byte that is left; never returns without one.
async fn relay_ended(relayed: &mut Option<Relayed>) -> Option<u64> {
    match relayed {
        Some(relayed) => relayed.relay.ended().await,
        None => std::future::pending().await,
    }
}

/// The next event of the input; never returns without one.
async fn next_of_input(input: &mut Option<PassedInput>) -> InputEvent {
    match input {
        Some(input) => input.next().await,
        None => std::future::pending().await,
    }
}

fn exit(ended: &AttachEnded, signal: Option<Signal>) -> Exit {
    match ended.reason {
        AttachEndReason::Detached => Exit::Success,
        AttachEndReason::LeaderExited
        | AttachEndReason::Finished
        | AttachEndReason::Unspecified => match (outcome::exit_code(&ended.task), signal) {
            // The task was stopped in its queue, and never had a leader.
            (None, Some(signal)) => Exit::Signalled(signal),
            (Some(_), _) | (None, None) => Exit::of_task(&ended.task),
        },
    }
}
