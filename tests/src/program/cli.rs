//! The `heeler` command, as a shell runs it.

use std::{ffi::OsStr, process::Stdio};

use serde_json::Value;

use crate::{Daemon, binary};

/// The result of a command.
#[derive(Debug)]
pub struct CommandResult {
    /// The exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Daemon {
    /// `heeler ARGS…` in the daemon's environment, so that this daemon is the default address.
    pub fn cli<T: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = T>,
    ) -> tokio::process::Command {
        let mut command = tokio::process::Command::from(self.command());
        command.args(args).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Another program that runs `heeler`, e.g. a shell, in the same environment.
    pub fn wrapper(&self, program: &str) -> tokio::process::Command {
        let heeler = self.command();
        let mut command = tokio::process::Command::from(binary::with_default_signals(program));
        command.current_dir(self.home()).env_clear();
        let set = heeler.get_envs();
        command.envs(set.filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs `heeler ARGS…` to its end.
    pub async fn heeler<T: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = T>,
    ) -> CommandResult {
        CommandResult::of(self.cli(args)).await
    }

    /// The id that `heeler spawn ARGS…` prints.
    pub async fn spawned(&self, args: &[&str]) -> String {
        let result = self.heeler(["spawn"].iter().chain(args)).await;
        assert_eq!(result.code, Some(0), "{result:?}");
        result.stdout.trim_end().to_owned()
    }
}

impl CommandResult {
    /// Runs a command to its end.
    pub async fn of(mut command: tokio::process::Command) -> Self {
        let output = crate::within("the command ends", command.output()).await;
        let output = output.expect("the command can be run");
        let result = Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        };
        assert!(!result.stderr.contains("panicked"), "{result:?}");
        result
    }

    /// The stdout as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts exit code 0.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}
