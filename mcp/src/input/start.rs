//! The arguments of the tools that start a task.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use heeler_client::{Spawn, v1::TaskKind};
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use crate::{connection::Call, problem::Problem};

/// The label with the trace that a call belongs to.
const TRACE_LABEL: &str = "traceparent";
/// A W3C traceparent has 55 characters; a later version may have more.
const LONGEST_TRACE: usize = 512;

/// Silence after which a task with a stdin or a terminal is looked at: it may wait for input.
const SILENCE: Duration = Duration::from_secs(3);

/// The longest script that the daemon accepts, in bytes.
const LONGEST_COMMAND: usize = 128 * 1024 - 1;

/// The task to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct StartArgs {
    /// The command line, run by bash. Never end it with `&`.
    command: String,
    /// A short name. Other tools take it in place of the id: that of the live task, else of the newest that has ended.
    #[serde(default)]
    name: Option<String>,
    /// The directory to run in, absolute or relative to the project. Default: the project.
    #[serde(default)]
    cwd: Option<String>,
    /// Environment variables to set.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Stop the task after this many seconds in the background. Default: no limit.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout_seconds: Option<u32>,
    /// Mark the task as stale when it has written nothing for this many seconds.
    #[serde(default)]
    #[schemars(range(min = 1))]
    stale_after_seconds: Option<u32>,
    /// Wait for a slot in this queue, shared by all agents on the machine, e.g. `build` for heavy builds.
    #[serde(default)]
    queue: Option<String>,
    /// Give the command a stdin that stays open for heeler_send. Default: its stdin is empty.
    #[serde(default)]
    stdin: bool,
    /// Give the command a terminal, for programs that insist on one: REPLs, installers, ssh.
    #[serde(default)]
    terminal: bool,
    /// `agent` if the command runs a subagent.
    #[serde(default)]
    kind: Option<Kind>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Shell,
    Agent,
}

impl StartArgs {
    /// The task, in the session of the call.
    pub(crate) fn spawn(&self, call: &Call<'_>) -> Result<Spawn, Problem> {
        if self.command.len() > LONGEST_COMMAND {
            let fault = "is longer than 128 KiB: write the script to a file, and run that";
            return Err(Problem::argument("command", fault));
        }
        let spawn = Spawn::shell(&self.command).session(call.session());
        let spawn = spawn.working_directory(self.directory(&call.connection.options.directory));
        let spawn = with(spawn, self.name.as_ref(), Spawn::name);
        let spawn = with(spawn, self.timeout_seconds.map(seconds), Spawn::timeout);
        let spawn = with(
            spawn,
            self.stale_after_seconds.map(seconds),
            Spawn::stale_after,
        );
        let spawn = with(spawn, self.queue.as_ref(), Spawn::queue);
        let spawn = with(spawn, self.kind, |spawn, kind| match kind {
            Kind::Shell => spawn.kind(TaskKind::Shell),
            Kind::Agent => spawn.kind(TaskKind::Agent),
        });
        let spawn = match (self.terminal, self.stdin) {
            // The daemon's default size.
            (true, _) => spawn.terminal(0, 0).notify_input_after(SILENCE),
            (false, true) => spawn.notify_input_after(SILENCE),
            (false, false) => spawn,
        };
        let fixed = &call.connection.options.env;
        let fixed = fixed.iter().map(|(name, value)| (name, value));
        let spawn = fixed
            .chain(&self.env)
            .fold(spawn, |spawn, (name, value)| spawn.env(name, value));
        let trace = call.request.meta.get_traceparent();
        let trace = trace.filter(|trace| trace.len() <= LONGEST_TRACE);
        Ok(with(spawn, trace, |spawn, trace| {
            spawn.label(TRACE_LABEL, trace)
        }))
    }

    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// The directory of the task, in one spelling: without `.`, `..` and, where it exists, symbolic links.
    pub(crate) fn directory(&self, project: &Path) -> PathBuf {
        let directory = match &self.cwd {
            Some(cwd) => project.join(cwd),
            None => project.to_owned(),
        };
        // One that does not exist here is refused by the daemon, or exists on its machine.
        directory
            .canonicalize()
            .unwrap_or_else(|_| normalised(&directory))
    }
}

/// An absolute path without `.`, `..` and slashes at the end.
fn normalised(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// The rule by which the task is ready.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct ReadyArgs {
    /// Ready when the task listens on this TCP port; 0: on any port.
    #[serde(default)]
    ready_port: Option<u16>,
    /// Ready when a GET of this http URL on localhost answers 200 to 399.
    #[serde(default)]
    ready_url: Option<String>,
    /// Ready when this shell command exits with 0.
    #[serde(default)]
    ready_command: Option<String>,
    /// Ready when a line of output matches this regular expression (Rust syntax).
    #[serde(default)]
    ready_pattern: Option<String>,
    /// With a ready condition: wait up to this many seconds for it to be ready before answering. Default: 30.
    #[serde(default)]
    #[schemars(range(min = 0, max = 50))]
    wait_seconds: Option<u32>,
}

impl ReadyArgs {
    const WAIT: Duration = Duration::from_secs(30);

    /// Adds the condition. Two conditions are refused: the daemon looks at one.
    pub(crate) fn add_to(&self, spawn: Spawn) -> Result<Spawn, Problem> {
        let spawn = with(spawn, self.ready_port, Spawn::ready_when_listening);
        let spawn = with(spawn, self.ready_url.as_ref(), Spawn::ready_when_answered);
        let spawn = with(spawn, self.ready_command.as_ref(), |spawn, command| {
            spawn.ready_when_succeeds(["sh", "-c", command])
        });
        let spawn = with(
            spawn,
            self.ready_pattern.as_ref(),
            Spawn::ready_when_matched,
        );
        match self.conditions() {
            0 if self.wait_seconds.is_some_and(|wait| wait > 0) => {
                Err(Problem::argument("wait_seconds", "needs a ready condition"))
            }
            0 | 1 => Ok(spawn),
            _ => Err(Problem::Arguments(vec![
                "`ready_port`, `ready_url`, `ready_command` and `ready_pattern` exclude each other: pass one"
                    .to_owned(),
            ])),
        }
    }

    /// The time to wait for it to be ready; zero without a condition.
    pub(crate) fn wait(&self) -> Duration {
        match self.conditions() {
            0 => Duration::ZERO,
            _ => self.wait_seconds.map_or(Self::WAIT, seconds),
        }
    }

    fn conditions(&self) -> usize {
        let asked = [
            self.ready_port.is_some(),
            self.ready_url.is_some(),
            self.ready_command.is_some(),
            self.ready_pattern.is_some(),
        ];
        asked.into_iter().filter(|is_asked| *is_asked).count()
    }
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(count.into())
}

fn with<T>(spawn: Spawn, option: Option<T>, set: impl FnOnce(Spawn, T) -> Spawn) -> Spawn {
    match option {
        Some(value) => set(spawn, value),
        None => spawn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M4
    #[test]
    fn a_directory_that_does_not_exist_here_has_one_spelling() {
        for spelling in [
            "/no/such",
            "/no/such/",
            "/no/./such/.",
            "/no/such/a/..",
            "/../no//such",
        ] {
            assert_eq!(normalised(Path::new(spelling)), Path::new("/no/such"));
        }
    }
}
