//! The failures of the command: the exit code and the message of each.

use std::io;

use heeler_client::{
    Code, Error, FieldViolation, Refusal,
    v1::{ErrorReason, SpawnStage},
};
use nix::{errno::Errno, sys::signal::Signal};
use serde_json::{Value, json};

use super::flag_names;
use crate::exit::Exit;

#[derive(Debug)]
pub(crate) enum Failure {
    /// A call failed or was refused.
    Client(Error),
    /// The Spawn of `heeler run` failed: the exit codes are those of a shell.
    Spawn(Error),
    /// A signal ended `heeler run` before its task was spawned.
    Interrupted(Signal),
    /// Invalid arguments that clap does not detect.
    Usage(String),
    /// No task is meant by the word that stands for one.
    NoSuchTask(String),
    /// Several tasks may be meant.
    AmbiguousTask(String),
    /// The daemon could not be started.
    DaemonStart(String),
    /// Another daemon uses the state directory.
    StateInUse(String),
    /// The timeout of the command passed first.
    TimedOut(String),
    /// The result could not be written.
    Write(io::Error),
    /// The output of the task of `heeler run` could not be written, and the task was stopped.
    TaskOutput(io::Error),
    Other(String),
}

impl Failure {
    /// The failure to set up the command itself.
    pub(crate) fn setup(error: io::Error) -> Self {
        Self::Other(format!("cannot set up the command: {error}"))
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Spawn(Error::Refused(refusal)) => of_refused_spawn(refusal),
            Self::Client(Error::Refused(refusal)) => of_refusal(refusal),
            Self::Client(error) | Self::Spawn(error) => of_connection(error),
            Self::Interrupted(signal) => Exit::Signalled(*signal),
            Self::Usage(_) | Self::AmbiguousTask(_) => Exit::Usage,
            Self::NoSuchTask(_) => Exit::NotFound,
            Self::DaemonStart(_) => Exit::NoDaemon,
            Self::StateInUse(_) => Exit::StateInUse,
            Self::TimedOut(_) => Exit::TimedOut,
            // The reader has enough, as in `heeler logs ID | head`.
            Self::Write(error) if is_broken_pipe(error) => Exit::Success,
            Self::TaskOutput(error) if is_broken_pipe(error) => Exit::Signalled(Signal::SIGPIPE),
            Self::Write(_) | Self::TaskOutput(_) | Self::Other(_) => Exit::Failed,
        }
    }

    /// The message; none for a closed pipe.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Client(Error::Refused(refusal)) | Self::Spawn(Error::Refused(refusal)) => {
                let text = flag_names::message(refusal);
                Some(match &refusal.reason {
                    Some(reason) => format!("{text} ({reason})"),
                    None => format!("{text} ({:?})", refusal.code),
                })
            }
            Self::Client(error) | Self::Spawn(error) => Some(error.to_string()),
            Self::Interrupted(signal) => Some(format!(
                "interrupted by {signal} while the task was being spawned; no client is attached to it"
            )),
            Self::Usage(text)
            | Self::NoSuchTask(text)
            | Self::AmbiguousTask(text)
            | Self::DaemonStart(text)
            | Self::StateInUse(text)
            | Self::TimedOut(text)
            | Self::Other(text) => Some(text.clone()),
            Self::Write(error) | Self::TaskOutput(error) if is_broken_pipe(error) => None,
            Self::Write(error) => Some(format!("cannot write the result: {error}")),
            Self::TaskOutput(error) => Some(format!("cannot write the task's output: {error}")),
        }
    }
}

impl Failure {
    /// The failure as a google.rpc.Status, in protobuf's JSON mapping. A failure on this side has the code
    /// that the daemon would answer with.
    pub(crate) fn status(&self) -> Value {
        let message = self.message().unwrap_or_default();
        let (code, message, details) = match self {
            Self::Client(Error::Refused(refusal)) | Self::Spawn(Error::Refused(refusal)) => {
                (refusal.code, refusal.message.clone(), details(refusal))
            }
            Self::NoSuchTask(_) => (
                Code::NotFound,
                message,
                vec![error_info("TASK_NOT_FOUND", json!({}))],
            ),
            Self::AmbiguousTask(_) => (
                Code::InvalidArgument,
                message,
                vec![error_info("TASK_AMBIGUOUS", json!({}))],
            ),
            Self::Client(_)
            | Self::Spawn(_)
            | Self::Interrupted(_)
            | Self::Usage(_)
            | Self::DaemonStart(_)
            | Self::StateInUse(_)
            | Self::TimedOut(_)
            | Self::Write(_)
            | Self::TaskOutput(_)
            | Self::Other(_) => (self.own_code(), message, Vec::new()),
        };
        json!({ "code": code as i32, "message": message, "details": details })
    }

    fn own_code(&self) -> Code {
        match self.exit() {
            Exit::Usage => Code::InvalidArgument,
            Exit::NotFound => Code::NotFound,
            Exit::NoDaemon => Code::Unavailable,
            Exit::StateInUse => Code::FailedPrecondition,
            Exit::Signalled(_) => Code::Cancelled,
            Exit::TimedOut => Code::DeadlineExceeded,
            Exit::Success
            | Exit::Failed
            | Exit::Stop
            | Exit::NotExecutable
            | Exit::NoProgram
            | Exit::AsTask(_) => Code::Unknown,
        }
    }
}

fn details(refusal: &Refusal) -> Vec<Value> {
    let reason = refusal.reason.iter();
    let info = reason.map(|reason| error_info(&reason.to_string(), json!(refusal.metadata)));
    let violation =
        |one: &FieldViolation| json!({ "field": one.field, "description": one.description });
    let fields: Vec<Value> = refusal.fields.iter().map(violation).collect();
    let bad_request = json!({
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations": fields,
    });
    info.chain((!fields.is_empty()).then_some(bad_request))
        .collect()
}

fn error_info(reason: &str, metadata: Value) -> Value {
    json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "heeler.dev",
        "metadata": metadata,
    })
}

fn of_refusal(refusal: &Refusal) -> Exit {
    if refusal.is(ErrorReason::TaskNotFound) {
        Exit::NotFound
    } else if refusal.code == Code::InvalidArgument {
        Exit::Usage
    } else {
        Exit::Failed
    }
}

fn of_refused_spawn(refusal: &Refusal) -> Exit {
    let of = |key: &str| refusal.metadata.get(key).map_or("", String::as_str);
    let missing = io::Error::from(Errno::ENOENT).to_string();
    let error = match of("os_error") {
        "" => Errno::UnknownErrno,
        text if missing.starts_with(text) => Errno::ENOENT,
        _ => Errno::EACCES,
    };
    if refusal.is(ErrorReason::ProgramUnusable) {
        Exit::of_spawn_error(SpawnStage::Exec, error)
    } else if refusal.is(ErrorReason::SpawnFailed) {
        let stage = SpawnStage::from_str_name(&format!("SPAWN_STAGE_{}", of("stage")));
        Exit::of_spawn_error(stage.unwrap_or_default(), error)
    } else if refusal.code == Code::InvalidArgument {
        Exit::Usage
    } else {
        Exit::Failed
    }
}

fn of_connection(error: &Error) -> Exit {
    match error {
        Error::Address(_) | Error::Credentials(_) => Exit::Usage,
        Error::NotRunning { .. }
        | Error::NotInstalled { .. }
        | Error::DaemonStart { .. }
        | Error::Unreachable { .. }
        | Error::Disconnected { .. } => Exit::NoDaemon,
        Error::Refused(_) | Error::Incomplete { .. } => Exit::Failed,
        Error::Worker(error) => of_connection(error),
    }
}

fn is_broken_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
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
    fn an_unknown_task_has_its_own_exit_code() {
        assert_eq!(refused(ErrorReason::TaskNotFound).exit(), Exit::NotFound);
        assert_eq!(refused(ErrorReason::TaskLimitReached).exit(), Exit::Failed);
    }

    #[test]
    fn the_message_of_a_refusal_has_its_reason() {
        let text = refused(ErrorReason::TaskNotFound).message();
        assert_eq!(text.as_deref(), Some("no such task (TASK_NOT_FOUND)"));
    }

    #[test]
    fn a_closed_pipe_is_a_success_without_a_message() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.exit(), failure.message()), (Exit::Success, None));
    }

    #[test]
    fn a_program_that_cannot_start_has_the_exit_code_of_a_shell() {
        let refused = |reason, stage: &str, os_error: &str| {
            let metadata = [("stage", stage), ("os_error", os_error)]
                .map(|(key, value)| (key.to_owned(), value.to_owned()));
            Failure::Spawn(Error::Refused(Box::new(Refusal {
                code: Code::FailedPrecondition,
                reason: Some(Reason::Known(reason)),
                message: String::new(),
                metadata: metadata.into(),
                fields: Vec::new(),
            })))
            .exit()
            .code()
        };
        let missing = "No such file or directory";
        let unusable = ErrorReason::ProgramUnusable;
        assert_eq!(refused(unusable, "", missing), 127);
        assert_eq!(refused(unusable, "", "Permission denied"), 126);
        let failed = ErrorReason::SpawnFailed;
        assert_eq!(refused(failed, "EXEC", missing), 127);
        assert_eq!(refused(failed, "EXEC", "Exec format error"), 126);
        assert_eq!(refused(failed, "WORKING_DIRECTORY", missing), 1);
        assert_eq!(refused(ErrorReason::TaskLimitReached, "", ""), 1);
    }

    #[test]
    fn a_task_whose_output_has_no_reader_ends_as_by_sigpipe() {
        let failure = Failure::TaskOutput(io::ErrorKind::BrokenPipe.into());
        assert_eq!((failure.exit().code(), failure.message()), (141, None));
    }
}
