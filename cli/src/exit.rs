//! How the command ends: its exit codes, in one place, and what it says when something failed.

use std::{io, process::ExitCode};

use heeler_client::{Error, Refusal, v1::ErrorReason};

/// What `--help` says of them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    it is done
  1    it did not happen, was refused, or a task did not end well
  2    the arguments cannot be used
  3    there is no such task
  4    there is no daemon to talk to
  5    serve: another daemon has the state directory
  124  wait: the timeout came first
  `wait` for one task exits with the task's own code, 128+n if signal n ended it.

Environment:
  HEELER_ADDR       where the daemon is, as --addr
  HEELER_STATE_DIR  where the daemon keeps its state, as serve --state-dir
  HEELER_LOG        what the daemon logs, e.g. debug

Without --addr and HEELER_ADDR, a command that finds no daemon starts one for this user.";

/// How the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is done.
    Done,
    /// It did not happen, or not well.
    Failed,
    /// The arguments cannot be used; clap's own code.
    Usage,
    /// There is no such task.
    NotFound,
    /// There is no daemon to talk to.
    NoDaemon,
    /// Another daemon has the state directory.
    StateInUse,
    /// The wait's timeout came first.
    TimedOut,
    /// As the task that was waited for.
    AsTask(u8),
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::NoDaemon => 4,
            Self::StateInUse => 5,
            Self::TimedOut => 124,
            Self::AsTask(code) => code,
        }
    }

    /// The end of several things: what went worst, where a failure is worse than an unknown id.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, other) => other,
            (Self::NotFound, other) if other != Self::Done => other,
            (first, _) => first,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why the command could not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The daemon, or the way to it.
    Client(Error),
    /// The arguments, beyond what clap can see.
    Usage(String),
    /// The daemon could not be started.
    Daemon(String),
    /// The daemon ended, or never served.
    Serve(String),
    /// Another daemon has the state directory.
    StateInUse(String),
    /// The result could not be written.
    Write(io::Error),
    /// Something else, in words.
    Other(String),
}

impl Failure {
    /// How the command ends.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Client(Error::Refused(refusal)) if is_not_found(refusal) => Exit::NotFound,
            Self::Client(Error::Refused(_) | Error::Incomplete { .. }) => Exit::Failed,
            Self::Client(Error::Address(_)) | Self::Usage(_) => Exit::Usage,
            Self::Client(
                Error::NotRunning { .. } | Error::Unreachable { .. } | Error::Disconnected { .. },
            )
            | Self::Daemon(_) => Exit::NoDaemon,
            Self::StateInUse(_) => Exit::StateInUse,
            // Whoever read the result has seen enough of it: `heeler logs ID | head`.
            Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Self::Write(_) | Self::Serve(_) | Self::Other(_) => Exit::Failed,
        }
    }

    /// What to say of it; nothing, if nobody needs to know.
    pub(crate) fn report(&self) -> Option<String> {
        match self {
            Self::Client(Error::Refused(refusal)) => Some(match &refusal.reason {
                Some(reason) => format!("{refusal} ({reason})"),
                None => format!("{refusal} ({:?})", refusal.code),
            }),
            Self::Client(error) => Some(error.to_string()),
            Self::Usage(text)
            | Self::Daemon(text)
            | Self::Serve(text)
            | Self::StateInUse(text)
            | Self::Other(text) => Some(text.clone()),
            Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Self::Write(error) => Some(format!("cannot write the result: {error}")),
        }
    }
}

fn is_not_found(refusal: &Refusal) -> bool {
    refusal.is(ErrorReason::TaskNotFound)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::{Code, Reason};

    use super::*;

    fn refused(reason: ErrorReason) -> Failure {
        Failure::Client(Error::Refused(Box::new(Refusal {
            code: Code::NotFound,
            reason: Some(Reason::Known(reason)),
            message: "no such task".to_owned(),
            metadata: Default::default(),
            fields: Vec::new(),
        })))
    }

    #[test]
    fn an_unknown_task_has_an_exit_code_of_its_own() {
        assert_eq!(refused(ErrorReason::TaskNotFound).exit(), Exit::NotFound);
        assert_eq!(refused(ErrorReason::TaskLimitReached).exit(), Exit::Failed);
    }

    #[test]
    fn a_refusal_is_told_with_its_reason() {
        let text = refused(ErrorReason::TaskNotFound).report();
        assert_eq!(text.as_deref(), Some("no such task (TASK_NOT_FOUND)"));
    }

    #[test]
    fn a_closed_pipe_is_nothing_to_speak_of() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.exit(), failure.report()), (Exit::Done, None));
    }

    #[test]
    fn the_worst_of_several_ends_decides() {
        assert_eq!(Exit::Done.and(Exit::NotFound), Exit::NotFound);
        assert_eq!(Exit::NotFound.and(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Failed.and(Exit::NotFound), Exit::Failed);
        assert_eq!(Exit::NotFound.and(Exit::Done), Exit::NotFound);
    }
}
