//! The exit codes of the command, in one place.

use std::process::ExitCode;

use heeler_client::v1::{BackgroundTask, SpawnStage, TaskState, outcome::Result as Ended};
use nix::{errno::Errno, sys::signal::Signal};

use crate::render::outcome;

/// The end of `heeler --help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    the operation failed, or a task did not succeed
  2    invalid arguments
  3    no such task
  4    no daemon is reachable
  5    serve: another daemon uses the state directory
  10   check: the task has been asked to stop
  124  wait, send: the timeout passed first
  126  run: the program cannot be executed
  127  run: no such program
  141  run: the reader of its output went away

`run`, `attach`, and `wait` for one task exit with the task's own exit code, 128+n if signal n \
killed it, and 0 if the task continues in the background. If a signal ends the command but not \
the task, the exit code is 128+n as well.

Environment:
  HEELER_ADDR        the daemon's address, like --addr
  HEELER_TOKEN_FILE  the file with the token for TCP, like --token-file
  HEELER_TLS_CA      the certificate authority to trust for TLS, like --tls-ca
  HEELER_STATE_DIR   the daemon's state directory, like serve --state-dir
  HEELER_LOG         the daemon's log level, e.g. debug
  NO_COLOR           if set, the daemon's log, ps and logs have no colours

A task is named by its id, a unique prefix of it with or without its kind, or the name that one live task has. An \
ambiguous word lists the candidates.

With --json results go to stdout and messages to stderr, one object a line: {\"error\": …} is a google.rpc.Status \
with code, message and details, {\"note\": …} a text.

Without --addr and HEELER_ADDR, a command that finds no daemon starts one for this user.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// The operation failed, or a task did not succeed.
    Failed,
    /// Invalid arguments; clap exits with the same code.
    Usage,
    NotFound,
    NoDaemon,
    StateInUse,
    /// The task of a script has been asked to stop.
    Stop,
    TimedOut,
    NotExecutable,
    NoProgram,
    /// The exit code of the task that was waited for.
    AsTask(u8),
    /// A signal ended the command, but not the task.
    Signalled(Signal),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::NoDaemon => 4,
            Self::StateInUse => 5,
            Self::Stop => 10,
            Self::TimedOut => 124,
            Self::NotExecutable => 126,
            Self::NoProgram => 127,
            Self::AsTask(code) => code,
            Self::Signalled(signal) => 128 | (signal as u8),
        }
    }

    /// The exit of a command whose task's leader has exited, as a shell would report it.
    pub(crate) fn of_task(task: &BackgroundTask) -> Self {
        match outcome::result(task) {
            Some(Ended::SpawnError(error)) => {
                Self::of_spawn_error(error.stage(), Errno::from_raw(error.errno))
            }
            Some(Ended::ExitCode(_) | Ended::Signal(_) | Ended::Unknown(_) | Ended::Worker(_))
            | None => Self::of_exit_code(task),
        }
    }

    /// The leader's exit code; a failure if there is none.
    pub(crate) fn of_exit_code(task: &BackgroundTask) -> Self {
        match outcome::exit_code(task) {
            // A task that was stopped, or whose output is incomplete, did not succeed.
            Some(0) if did_not_succeed(task) => Self::Failed,
            Some(code) => Self::AsTask(code),
            None => Self::Failed,
        }
    }

    /// The exit for a program that could not be started. Only the exec step is about the program.
    pub(crate) fn of_spawn_error(stage: SpawnStage, error: Errno) -> Self {
        match (stage, error) {
            (SpawnStage::Exec, Errno::ENOENT) => Self::NoProgram,
            (SpawnStage::Exec, _) => Self::NotExecutable,
            (
                SpawnStage::Unspecified
                | SpawnStage::Shim
                | SpawnStage::TaskFile
                | SpawnStage::Pipes
                | SpawnStage::Process
                | SpawnStage::WorkingDirectory
                | SpawnStage::Descriptors,
                _,
            ) => Self::Failed,
        }
    }

    /// The worse of two: any failure is worse than an unknown id.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Success, other) => other,
            (Self::NotFound, other) if other != Self::Success => other,
            (first, _) => first,
        }
    }
}

/// Returns whether a task failed for another reason than its leader's exit code.
fn did_not_succeed(task: &BackgroundTask) -> bool {
    match task.state() {
        TaskState::Failed | TaskState::Cancelled | TaskState::TimedOut | TaskState::Lost => true,
        TaskState::Unspecified
        | TaskState::Queued
        | TaskState::Starting
        | TaskState::Running
        | TaskState::Stopping
        | TaskState::Completed => !task.capture_error.is_empty(),
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_worse_than_an_unknown_id() {
        assert_eq!(Exit::Success.and(Exit::NotFound), Exit::NotFound);
        assert_eq!(Exit::NotFound.and(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Failed.and(Exit::NotFound), Exit::Failed);
        assert_eq!(Exit::NotFound.and(Exit::Success), Exit::NotFound);
    }
}
