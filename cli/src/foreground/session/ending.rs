//! The ends of a session, and its pauses: the terminal is left as it was, and the input to others.

use std::{io, pin::pin, time::Duration};

use heeler_client::{AttachEnded, Client, Task, v1::AttachEndReason};
use nix::sys::signal::Signal;
use tokio::time::timeout;

use super::{ForegroundSession, Mode};
use crate::{
    exit::Exit,
    failure::Failure,
    foreground::{
        closing_message::closing_message,
        input::PassedInput,
        keyboard::Keyboard,
        signals::{Received, Signals},
    },
    out,
    render::{outcome, status},
};

/// The time that the terminal has to take the last output of a command that ends early or is suspended: it may be stopped
/// or gone.
const CLOSES_WITHIN: Duration = Duration::from_millis(200);
/// The time that the daemon has to let others have the input: it may be away.
const RELEASES_WITHIN: Duration = Duration::from_secs(1);

impl ForegroundSession {
    /// Ends the session before the stream.
    pub(super) async fn leave(self) {
        let close = timeout(CLOSES_WITHIN, self.output.close(self.keyboard, None));
        let release = release(self.input, &self.client, &self.task);
        let _ = tokio::join!(close, release);
    }

    /// Stops this process, with the terminal as it was.
    pub(super) async fn suspend(&mut self) {
        let left = timeout(CLOSES_WITHIN, self.output.suspend_modes()).await;
        self.keyboard.suspend();
        if let Ok(Ok(())) = left {
            let _ = timeout(CLOSES_WITHIN, self.output.resume_modes()).await;
        }
    }

    /// A note for a stream that has broken for good. `run` knows that its task exists; `attach` knows it after the first
    /// item.
    pub(super) fn lost_connection(&self) -> Option<String> {
        match self.mode {
            Mode::Attach if !self.progress.attached => None,
            Mode::Run(_) | Mode::Attach => {
                let id = self.task.id();
                self.progress.is_lost.then(|| format!(
                    "lost the connection to {id}, which may still be running; try `heeler attach {id}`"
                ))
            }
        }
    }

    /// Writes the rest of the output and the closing message.
    pub(super) async fn finish(mut self) -> Result<Exit, Failure> {
        let is_finished = |ended: &AttachEnded| ended.reason == AttachEndReason::Finished;
        let continues = !self.progress.ended.as_ref().is_some_and(is_finished);
        if continues {
            release(self.input.take(), &self.client, &self.task).await;
        }
        let ended = self.progress.ended.take();
        let close = self.output.close(self.keyboard, ended.as_ref());
        unless_ended(&mut self.signals, close).await?;
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

/// Completes the last output, unless a signal ends the command.
async fn unless_ended(
    signals: &mut Signals,
    close: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    let mut close = pin!(close);
    loop {
        tokio::select! {
            written = &mut close => return written,
            received = signals.next() => match received {
                Received::End(_) | Received::HangUp => return Ok(()),
                Received::Suspend => Keyboard::None.suspend(),
                Received::Continue | Received::Resize => {}
            },
        }
    }
}

/// Lets other writers have the input of a task that may continue.
async fn release(input: Option<PassedInput>, client: &Client, task: &Task) {
    if let Some(input) = input {
        let _ = timeout(RELEASES_WITHIN, input.release(client, task)).await;
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
