//! How the command ends: its exit codes, in one place, and what it says when something failed.

use std::{io, process::ExitCode};

use heeler_client::{
    Code, Error, Refusal,
    v1::{BackgroundTask, ErrorReason, TaskState, outcome::Result as Ended},
};
use nix::{errno::Errno, sys::signal::Signal};

use crate::words;

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
  126  run: the program cannot be executed
  127  run: there is no such program
  141  run: nobody reads its output any more
  `run`, `attach` and `wait` for one task exit with the task's own code, 128+n if signal n ended it; with
  0 if it goes on in the background. A signal that ends the command alone is 128+n too.

Environment:
  HEELER_ADDR        where the daemon is, as --addr
  HEELER_TOKEN_FILE  the file with the token for a daemon over TCP, as --token-file
  HEELER_TLS_CA      the certificate of the authority to believe over TLS, as --tls-ca
  HEELER_STATE_DIR   where the daemon keeps its state, as serve --state-dir
  HEELER_LOG         what the daemon logs, e.g. debug

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
    /// The program cannot be executed.
    NotExecutable,
    /// There is no such program.
    NoProgram,
    /// As the task that was waited for.
    AsTask(u8),
    /// A signal ended the command, and not the task.
    Signalled(Signal),
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
            Self::NotExecutable => 126,
            Self::NoProgram => 127,
            Self::AsTask(code) => code,
            Self::Signalled(signal) => 128 | (signal as u8),
        }
    }

    /// As the task, whose leader is gone; where it never ran, as a shell would say it.
    pub(crate) fn of(task: &BackgroundTask) -> Self {
        let result = task.outcome.as_ref().and_then(|it| it.result.as_ref());
        match (result, words::exit_code(task)) {
            (Some(Ended::SpawnError(error)), _) => {
                Self::of_program(&error.operation, Errno::from_raw(error.errno))
            }
            // What was stopped has not done what it was for, whatever it says.
            (_, Some(0)) if was_stopped(task) => Self::Failed,
            (_, Some(code)) => Self::AsTask(code),
            (_, None) => Self::Failed,
        }
    }

    /// That a program could not be started. What is not about the program itself is no such case.
    fn of_program(operation: &str, error: Errno) -> Self {
        if !operation.starts_with("exec") {
            Self::Failed
        } else if error == Errno::ENOENT {
            Self::NoProgram
        } else {
            Self::NotExecutable
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
    /// The same, for a program that was to be run as a shell would.
    Program(Error),
    /// A signal, twice, while the task was being started.
    Left(Signal),
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
    /// What a task wrote could not be written, for which it was stopped.
    Unwritten(io::Error),
    /// Something else, in words.
    Other(String),
}

impl Failure {
    /// How the command ends.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Program(Error::Refused(refusal)) => unusable(refusal),
            Self::Client(Error::Refused(refusal)) if is_not_found(refusal) => Exit::NotFound,
            Self::Client(Error::Refused(refusal)) if refusal.code == Code::InvalidArgument => {
                Exit::Usage
            }
            Self::Client(Error::Refused(_)) => Exit::Failed,
            Self::Client(error) | Self::Program(error) => of_connection(error),
            Self::Usage(_) => Exit::Usage,
            Self::Daemon(_) => Exit::NoDaemon,
            Self::Left(signal) => Exit::Signalled(*signal),
            // As a command that nobody reads from is ended.
            Self::Unwritten(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                Exit::Signalled(Signal::SIGPIPE)
            }
            Self::StateInUse(_) => Exit::StateInUse,
            // Whoever read the result has seen enough of it: `heeler logs ID | head`.
            Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Self::Write(_) | Self::Unwritten(_) | Self::Serve(_) | Self::Other(_) => Exit::Failed,
        }
    }

    /// The command could not set itself up.
    pub(crate) fn begin(error: io::Error) -> Self {
        Self::Other(format!("cannot begin: {error}"))
    }

    /// What to say of it; nothing, if nobody needs to know.
    pub(crate) fn report(&self) -> Option<String> {
        match self {
            Self::Client(Error::Refused(refusal)) | Self::Program(Error::Refused(refusal)) => {
                Some(match &refusal.reason {
                    Some(reason) => format!("{refusal} ({reason})"),
                    None => format!("{refusal} ({:?})", refusal.code),
                })
            }
            Self::Client(error) | Self::Program(error) => Some(error.to_string()),
            Self::Left(_) => Some("left before the task was there; nobody holds it".to_owned()),
            Self::Usage(text)
            | Self::Daemon(text)
            | Self::Serve(text)
            | Self::StateInUse(text)
            | Self::Other(text) => Some(text.clone()),
            Self::Write(error) | Self::Unwritten(error)
                if error.kind() == io::ErrorKind::BrokenPipe =>
            {
                None
            }
            Self::Write(error) | Self::Unwritten(error) => {
                Some(format!("cannot write the result: {error}"))
            }
        }
    }
}

/// A refusal to start a program, as a shell would say it.
fn unusable(refusal: &Refusal) -> Exit {
    let of = |key: &str| refusal.metadata.get(key).map_or("", String::as_str);
    let missing = io::Error::from(Errno::ENOENT).to_string();
    let error = match of("os_error") {
        "" => Errno::UnknownErrno,
        said if missing.starts_with(said) => Errno::ENOENT,
        _ => Errno::EACCES,
    };
    if refusal.is(ErrorReason::ProgramUnusable) {
        Exit::of_program("exec", error)
    } else if refusal.is(ErrorReason::SpawnFailed) {
        Exit::of_program(of("operation"), error)
    } else if refusal.code == Code::InvalidArgument {
        Exit::Usage
    } else {
        Exit::Failed
    }
}

fn of_connection(error: &Error) -> Exit {
    match error {
        Error::Address(_) | Error::Credentials(_) => Exit::Usage,
        Error::NotRunning { .. } | Error::Unreachable { .. } | Error::Disconnected { .. } => {
            Exit::NoDaemon
        }
        Error::Refused(_) | Error::Incomplete { .. } => Exit::Failed,
    }
}

fn was_stopped(task: &BackgroundTask) -> bool {
    matches!(task.state(), TaskState::Cancelled | TaskState::TimedOut)
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
    fn a_program_that_is_not_there_is_told_as_a_shell_would() {
        let refused = |reason, os_error: &str| {
            let metadata = [("os_error".to_owned(), os_error.to_owned())];
            Failure::Program(Error::Refused(Box::new(Refusal {
                code: Code::FailedPrecondition,
                reason: Some(Reason::Known(reason)),
                message: String::new(),
                metadata: metadata.into(),
                fields: Vec::new(),
            })))
            .exit()
            .code()
        };
        let unusable = ErrorReason::ProgramUnusable;
        assert_eq!(refused(unusable, "No such file or directory"), 127);
        assert_eq!(refused(unusable, "Permission denied"), 126);
        assert_eq!(refused(ErrorReason::TaskLimitReached, ""), 1);
    }

    #[test]
    fn a_task_that_nobody_reads_from_ends_as_by_sigpipe() {
        let failure = Failure::Unwritten(io::ErrorKind::BrokenPipe.into());
        assert_eq!((failure.exit().code(), failure.report()), (141, None));
    }

    #[test]
    fn the_worst_of_several_ends_decides() {
        assert_eq!(Exit::Done.and(Exit::NotFound), Exit::NotFound);
        assert_eq!(Exit::NotFound.and(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Failed.and(Exit::NotFound), Exit::Failed);
        assert_eq!(Exit::NotFound.and(Exit::Done), Exit::NotFound);
    }
}
