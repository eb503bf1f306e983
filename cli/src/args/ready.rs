//! The flags that say when a task is ready.

use std::time::Duration;

use clap::{ArgGroup, Args};
use heeler_client::{Spawn, v1::ReadyTimeoutAction};

use super::{selection, value::duration};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("ready").args(["ready_port", "ready_url", "ready_command", "ready_match"]))]
pub(crate) struct ReadyArgs {
    /// Ready when a process of the task listens on this TCP port; 0 for any port
    #[arg(long, value_name = "N")]
    ready_port: Option<u16>,

    /// Ready when this http URL of this machine answers with a status from 200 to 399
    #[arg(long, value_name = "URL", value_parser = selection::not_empty())]
    ready_url: Option<String>,

    /// Ready when this script exits with 0; /bin/sh runs it in the directory and environment of the task
    #[arg(long, value_name = "SCRIPT", value_parser = selection::not_empty(), allow_hyphen_values = true)]
    ready_command: Option<String>,

    /// Ready when a line of the output matches this regular expression
    #[arg(long, value_name = "RE", value_parser = selection::not_empty(), allow_hyphen_values = true)]
    ready_match: Option<String>,

    /// Time between two looks; the first ones follow faster [default: 1s]
    #[arg(long, value_name = "T", value_parser = duration::parse, requires = "ready", conflicts_with = "ready_match")]
    ready_interval: Option<Duration>,

    /// Longest time until the task is ready [default: no limit]
    #[arg(long, value_name = "T", value_parser = duration::parse, requires = "ready")]
    ready_timeout: Option<Duration>,

    /// Stop the task if it is not ready in time
    #[arg(long, requires = "ready_timeout")]
    ready_cancel: bool,
}

impl ReadyArgs {
    /// Adds the rule to a task, if there is one.
    pub(super) fn add_to(&self, spawn: Spawn) -> Spawn {
        let port = self.ready_port.into_iter();
        let spawn = port.fold(spawn, Spawn::ready_when_listening);
        let url = self.ready_url.iter();
        let spawn = url.fold(spawn, Spawn::ready_when_answered);
        let script = self.ready_command.iter();
        let spawn = script.fold(spawn, |spawn, script| {
            spawn.ready_when_succeeds(["/bin/sh", "-c", script])
        });
        let pattern = self.ready_match.iter();
        let spawn = pattern.fold(spawn, Spawn::ready_when_matched);
        let interval = self.ready_interval.into_iter();
        let spawn = interval.fold(spawn, Spawn::ready_interval);
        let timeout = self.ready_timeout.into_iter();
        let spawn = timeout.fold(spawn, Spawn::ready_timeout);
        match self.ready_cancel {
            true => spawn.on_ready_timeout(ReadyTimeoutAction::Cancel),
            false => spawn,
        }
    }
}
