//! The loop of `run` and `attach`: writes the task's output as it comes, reacts to signals and to the
//! detach key, and ends with the Attach stream.

mod incoming;

use std::io;

use heeler_client::{
    Attach, AttachEnded, AttachItem, CancelOptions, DetachOptions, Error, StreamExt, Task,
    v1::{AttachEndReason, BackgroundTask, CancelResult, DetachOutcome, DetachResult},
};
use nix::sys::signal::Signal;
use tokio::task::JoinSet;

use super::{
    closing_message::closing_message,
    keyboard::Keyboard,
    late_output::LateOutput,
    output::ForegroundOutput,
    signals::{Received, Signals},
};
use crate::{
    exit::Exit,
    failure::Failure,
    out,
    render::{outcome, proof, status},
};

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

#[derive(Debug)]
pub(crate) struct ForegroundSession {
    task: Task,
    mode: Mode,
    output: ForegroundOutput,
    keyboard: Keyboard,
    signals: Signals,
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
    /// `heeler attach` leaves a background task.
    left: bool,
}

#[derive(Debug)]
enum Response {
    Cancelled(Result<CancelResult, Error>),
    Finished(Result<BackgroundTask, Error>),
    Detached(Result<DetachResult, Error>),
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
            calls: JoinSet::new(),
            progress: Progress::default(),
            late_output: None,
        }
    }

    /// Runs until the Attach stream has ended, or until a signal or a key ends the command before.
    pub(crate) async fn run(mut self, mut attach: Attach) -> Result<Exit, Failure> {
        while !self.is_done() {
            let has_room = !self.output.is_full();
            let is_open = self.progress.ended.is_none() && has_room;
            tokio::select! {
                received = self.signals.next() => {
                    if let Some(exit) = self.handle_signal(received) {
                        return Ok(exit);
                    }
                }
                () = self.keyboard.pressed(), if self.calls.is_empty() => self.detach(),
                Some(response) = self.calls.join_next() => self.handle_response(response.ok()),
                written = self.output.advance() => self.handle_written(written)?,
                item = attach.next(), if is_open => self.handle_item(item)?,
                late = incoming::next(&mut self.late_output), if has_room => self.handle_late(late)?,
            }
        }
        self.finish().await
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
            None => {}
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
        let Some(ended) = self.progress.ended.take() else {
            return Ok(Exit::Success);
        };
        self.output.put(&AttachItem::Ended(ended.clone()))?;
        if ended.reason == AttachEndReason::Detached {
            self.output.put_id(&ended.task.id);
        }
        tokio::select! {
            written = self.output.finish() => written?,
            _ = self.signals.next() => {}
        }
        // Restores the terminal before the message appears on it.
        drop(self.keyboard);
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
