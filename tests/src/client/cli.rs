//! The `heeler` command, as a person at a shell uses it.

use std::{ffi::OsStr, process::Stdio};

use serde_json::Value;

use crate::Daemon;

/// How a command went.
#[derive(Debug)]
pub struct Said {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its result.
    pub stdout: String,
    /// Everything else.
    pub stderr: String,
}

impl Daemon {
    /// `heeler ARGS…`, with this daemon as its default address.
    pub fn cli<T: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = T>,
    ) -> tokio::process::Command {
        let mut command = tokio::process::Command::from(self.command());
        command.args(args).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs `heeler ARGS…` to its end.
    pub async fn heeler<T: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = T>) -> Said {
        Said::of(self.cli(args)).await
    }

    /// The id that `heeler spawn ARGS…` prints.
    pub async fn spawned(&self, args: &[&str]) -> String {
        let said = self.heeler(["spawn"].iter().chain(args)).await;
        assert_eq!(said.code, Some(0), "{said:?}");
        said.stdout.trim_end().to_owned()
    }
}

impl Said {
    /// Runs a command to its end.
    pub async fn of(mut command: tokio::process::Command) -> Self {
        let output = crate::within("the command ends", command.output()).await;
        let output = output.expect("the command can be run");
        let said = Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        };
        assert!(!said.stderr.contains("panicked"), "{said:?}");
        said
    }

    /// Its result as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// That it did what it should.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}
