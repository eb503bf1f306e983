//! A task in the foreground, as `run` and `attach` have it: its output goes out as it comes, signals and
//! a key are heard meanwhile, and it ends with the release.

mod arrivals;

use std::{io, time::Duration};

use heeler_client::{
    Attach, AttachEnded, AttachItem, CancelOptions, DetachOptions, Error, StreamExt, Task,
    v1::{AttachEndReason, BackgroundTask, CancelResult, DetachOutcome, DetachResult},
};
use nix::sys::signal::Signal;
use tokio::task::JoinSet;

use crate::{
    drain::Drain,
    exit::{Exit, Failure},
    farewell,
    flow::Flow,
    out,
    signals::{Heard, Signals},
    terminal::Keyboard,
    words,
};

/// How long a daemon that has gone is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What whoever holds the task is to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is his command: what should end him ends it, by the same signal or by the task's own.
    Owner(StopBy),
    /// He looks on: what should end him lets him go.
    Visitor,
}

/// What a signal makes of the task's own stop signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopBy {
    /// The task is asked with the signal that came.
    SameSignal,
    /// Somebody chose what it is asked with.
    Chosen,
}

/// A task that is held.
#[derive(Debug)]
pub(crate) struct Hold {
    task: Task,
    role: Role,
    flow: Flow,
    keyboard: Keyboard,
    signals: Signals,
    /// What has been asked of the daemon and is not answered.
    calls: JoinSet<Answer>,
    progress: Progress,
    /// What it writes though its leader is gone.
    rest: Option<Drain>,
}

/// What has happened so far.
#[derive(Debug, Default)]
struct Progress {
    ended: Option<AttachEnded>,
    /// Something came of it: it is there.
    found: bool,
    /// Behind the last that it wrote.
    offset: u64,
    /// How often it has been asked to stop, and by what signal first.
    stops: u32,
    signal: Option<Signal>,
    /// How it ended, once a stop is answered; what it wrote may still be on its way.
    stopped: Option<Exit>,
    /// It could not be proven gone.
    resists: bool,
    /// Why its output cannot be written any more.
    unwritten: Option<io::Error>,
    /// Whoever looked on has left.
    left: bool,
}

#[derive(Debug)]
enum Answer {
    Cancelled(Result<CancelResult, Error>),
    Ended(Result<BackgroundTask, Error>),
    Detached(Result<DetachResult, Error>),
}

impl Hold {
    pub(crate) fn new(
        task: Task,
        role: Role,
        flow: Flow,
        keyboard: Keyboard,
        signals: Signals,
    ) -> Self {
        Self {
            task,
            role,
            flow,
            keyboard,
            signals,
            calls: JoinSet::new(),
            progress: Progress::default(),
            rest: None,
        }
    }

    /// Holds it until its release, or until its holder leaves.
    pub(crate) async fn until_ended(mut self, mut attach: Attach) -> Result<Exit, Failure> {
        while !self.is_settled() {
            let room = !self.flow.is_full();
            let open = self.progress.ended.is_none() && room;
            tokio::select! {
                heard = self.signals.next() => {
                    if let Some(exit) = self.hear(heard) {
                        return Ok(exit);
                    }
                }
                () = self.keyboard.pressed(), if self.calls.is_empty() => self.detach(),
                Some(answer) = self.calls.join_next() => self.answered(answer.ok()),
                written = self.flow.advance() => self.wrote(written)?,
                item = attach.next(), if open => self.take(item)?,
                rest = arrivals::next(&mut self.rest), if room => self.drained(rest)?,
            }
        }
        self.end().await
    }

    fn is_settled(&self) -> bool {
        let idle = self.calls.is_empty() && self.rest.is_none();
        self.progress.left || self.progress.ended.is_some() && idle
    }

    /// What to do about a signal; an exit code if it is to leave at once.
    pub(crate) fn hear(&mut self, heard: Heard) -> Option<Exit> {
        match (heard, self.role) {
            (Heard::Pause, _) => self.keyboard.suspend(),
            (Heard::GoOn, _) => self.keyboard.resume(),
            // What becomes of the task is for its rule about holders that are gone.
            (Heard::HangUp, _) => return Some(Exit::Signalled(Signal::SIGHUP)),
            (Heard::End(signal), Role::Visitor) => return Some(Exit::Signalled(signal)),
            // There is nothing left to stop, and nobody takes what it wrote.
            (Heard::End(_), Role::Owner(_)) if self.progress.stopped.is_some() => {
                return self.progress.stopped;
            }
            (Heard::End(signal), Role::Owner(by)) => {
                let options = match (self.progress.stops, by) {
                    (0, StopBy::SameSignal) => CancelOptions::graceful().signal(signal.as_str()),
                    (0, StopBy::Chosen) => CancelOptions::graceful(),
                    (1, _) => CancelOptions::force(),
                    // No daemon that would answer, or no tree that can be killed: nobody is kept here.
                    (2.., _) => return Some(Exit::Signalled(signal)),
                };
                self.progress.signal.get_or_insert(signal);
                self.stop(options.reason(signal.as_str()));
            }
        }
        None
    }

    fn stop(&mut self, options: CancelOptions) {
        self.progress.stops += 1;
        let (task, options) = (self.task.clone(), options.actor("heeler run"));
        self.calls
            .spawn(async move { Answer::Cancelled(task.cancel(options).await) });
    }

    fn detach(&mut self) {
        let options = DetachOptions::new().actor("heeler").reason("a key");
        let task = self.task.clone();
        self.calls
            .spawn(async move { Answer::Detached(task.detach(options).await) });
    }

    fn answered(&mut self, answer: Option<Answer>) {
        match answer {
            Some(Answer::Cancelled(Ok(result))) => self.cancelled(&result),
            Some(Answer::Detached(Ok(result))) => self.detached(&result),
            Some(Answer::Ended(Ok(task))) => {
                self.progress.ended = Some(AttachEnded {
                    task,
                    reason: AttachEndReason::Finished,
                });
            }
            Some(
                Answer::Cancelled(Err(error))
                | Answer::Ended(Err(error))
                | Answer::Detached(Err(error)),
            ) => {
                out::note(&Failure::from(error).report().unwrap_or_default());
            }
            None => {}
        }
    }

    fn cancelled(&mut self, result: &CancelResult) {
        let left = result.proof.as_ref().filter(|it| !it.survivors.is_empty());
        if let Some(proof) = left {
            self.progress.resists = true;
            out::note(&format!("{}: {}", self.task.id(), words::proof(proof)));
        }
        let over = result.task.as_ref().filter(|task| words::is_over(task));
        self.progress.stopped = over.map(Exit::of);
    }

    /// A visitor of a task that holds nobody is not ended by a detach: he leaves.
    fn detached(&mut self, result: &DetachResult) {
        self.progress.left =
            self.role == Role::Visitor && result.outcome() == DetachOutcome::AlreadyBackground;
    }

    /// A command that cannot write is ended, as SIGPIPE would have done; a visitor just goes.
    fn wrote(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        let Err(error) = written else { return Ok(()) };
        match self.role {
            Role::Visitor => Err(error.into()),
            Role::Owner(_) => {
                let reason = format!("its output cannot be written: {error}");
                self.progress.unwritten = Some(error);
                if self.progress.ended.is_none() {
                    self.stop(CancelOptions::graceful().reason(reason));
                }
                Ok(())
            }
        }
    }

    /// The last words, and the exit code.
    async fn end(mut self) -> Result<Exit, Failure> {
        let Some(ended) = self.progress.ended.take() else {
            return Ok(Exit::Done);
        };
        self.flow.put(&AttachItem::Ended(ended.clone()))?;
        let exit = match ended.reason {
            AttachEndReason::Detached => {
                self.flow.put_id(&ended.task.id);
                Exit::Done
            }
            AttachEndReason::LeaderExited
            | AttachEndReason::Finished
            | AttachEndReason::Unspecified => {
                // One that was stopped while it waited for its turn has no exit code of its own.
                match (words::exit_code(&ended.task), self.progress.signal) {
                    (None, Some(signal)) => Exit::Signalled(signal),
                    (Some(_), _) | (None, None) => Exit::of(&ended.task),
                }
            }
        };
        let unwritten = self.progress.unwritten.take();
        tokio::select! {
            written = self.flow.finish() => written?,
            _ = self.signals.next() => {}
        }
        // The terminal is given back before anything is said on it.
        drop(self.keyboard);
        if let Some(error) = unwritten {
            return Err(Failure::Unwritten(error));
        }
        if let Some(text) = farewell::last_words(&ended, self.progress.stops) {
            out::note(&text);
        }
        match self.progress.resists {
            true => Ok(Exit::Failed),
            false => Ok(exit),
        }
    }
}
