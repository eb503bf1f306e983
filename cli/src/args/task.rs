//! The flags that describe a task: those of `spawn` and `run`, and those of `run` alone.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args};

use super::{
    input::InputArgs,
    ready::ReadyArgs,
    restart::RestartArgs,
    value::choices::{
        Kind, OnDisconnect, OnForegroundTimeout, OnHeld, OnOutputLimit, Orphans, Rights,
    },
    value::duration,
    value::key_value::{self, KeyValue},
    value::signal,
    value::size,
};
use crate::{completion, render::units};

/// With a shorter window the daemon could stop a task before `heeler run` has attached to it.
const SHORTEST_REATTACH_WINDOW: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("command").required(true).args(["argv", "script"]))]
pub(crate) struct TaskArgs {
    /// The program and its arguments, run without a shell
    #[arg(trailing_var_arg = true, value_name = "ARGV")]
    pub(super) argv: Vec<String>,

    /// A shell script, run by bash, or by /bin/sh if there is no bash
    #[arg(short = 'c', value_name = "SCRIPT", allow_hyphen_values = true)]
    pub(super) script: Option<String>,

    /// The session that the task belongs to
    #[arg(long, add = completion::sessions())]
    pub(super) session: Option<String>,

    /// A name for people
    #[arg(long)]
    pub(super) name: Option<String>,

    /// A label to filter by; may be repeated
    #[arg(long = "label", value_name = "K=V", value_parser = key_value::parse)]
    pub(super) labels: Vec<KeyValue>,

    /// The working directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,

    /// An environment variable; K alone passes on the value that it has here; may be repeated
    #[arg(long, value_name = "K[=V]", value_parser = key_value::parse_env)]
    pub(super) env: Vec<KeyValue>,

    /// A variable to remove from the environment that the task inherits from the daemon; may be repeated
    #[arg(long, value_name = "K")]
    pub(super) env_remove: Vec<String>,

    /// Do not set the non-interactive defaults (PAGER=cat, NO_COLOR=1, …)
    #[arg(long)]
    pub(super) no_env_defaults: bool,

    /// Stop the task after this time in the background, e.g. 90s or 1h30m [default: no limit]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    pub(super) timeout: Option<Duration>,

    /// Time between the stop signal and the kill [default: 5s]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    pub(super) grace: Option<Duration>,

    /// Time before the stop signal for a worker that listens to finish its tool call [default: 10s]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    pub(super) soft_grace: Option<Duration>,

    /// The signal that asks the task to stop [default: SIGTERM]
    #[arg(long, value_name = "SIGNAL", value_parser = signal::parse)]
    pub(super) stop_signal: Option<String>,

    /// Stop the task when it has written no output for this time [default: no limit]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    pub(super) idle_timeout: Option<Duration>,

    /// Mark the task as stale in `ps` and `events` when it has written no output for this time
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    pub(super) stale_after: Option<Duration>,

    /// Stop the task when it becomes stale
    #[arg(long, requires = "stale_after")]
    pub(super) stale_cancel: bool,

    /// The most output to keep on disk, 256KiB or more [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(super) max_output: Option<u64>,

    /// The action when the output reaches that limit [default: rotate]
    #[arg(long, value_name = "ACTION")]
    pub(super) on_output_limit: Option<OnOutputLimit>,

    /// A pattern to look for in the output, whose lines `events` prints; may be repeated
    #[arg(long = "match", value_name = "NAME=RE", value_parser = key_value::parse_pattern)]
    pub(super) patterns: Vec<KeyValue>,

    /// The policy for processes that outlive the leader [default: track]
    #[arg(long, value_name = "POLICY")]
    pub(super) orphans: Option<Orphans>,

    /// The calls that the task's processes may make [default: children]
    #[arg(long, value_name = "RIGHTS")]
    pub(super) rights: Option<Rights>,

    /// The live task that this one is a child of
    #[arg(long, value_name = "ID", add = completion::tasks())]
    pub(super) parent: Option<String>,

    /// The kind of task [default: shell]
    #[arg(long)]
    pub(super) kind: Option<Kind>,

    /// A repeated request with the same id returns the first task and starts nothing
    #[arg(long, value_name = "ID")]
    pub(super) request_id: Option<String>,

    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(super) ready: ReadyArgs,

    #[command(flatten)]
    pub(super) restart: RestartArgs,

    #[command(flatten)]
    pub(super) admission: AdmissionArgs,
}

impl TaskArgs {
    /// The program and its arguments.
    #[cfg(test)]
    pub(crate) fn argv(&self) -> &[String] {
        &self.argv
    }

    /// The task that `--parent` names.
    pub(crate) fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// Returns whether `--stop-signal` was given.
    pub(crate) fn has_stop_signal(&self) -> bool {
        self.stop_signal.is_some()
    }
}

/// The flags that decide when a task may start.
#[derive(Debug, Args)]
pub(crate) struct AdmissionArgs {
    /// Wait in this queue, which runs one task at a time unless `heeler queue` has set more slots
    #[arg(long, value_name = "NAME", add = completion::queues())]
    pub(super) queue: Option<String>,

    /// Run at most one task with this key at a time; the key is free when its holder's tree is gone
    #[arg(long, value_name = "KEY")]
    pub(super) exclusive: Option<String>,

    /// The action if another task has the key
    #[arg(long, value_enum, value_name = "ACTION", default_value_t = OnHeld::Reject,
          requires = "exclusive")]
    pub(super) on_held: OnHeld,
}

/// The flags of a foreground task.
#[derive(Debug, Args)]
pub(crate) struct ForegroundArgs {
    /// Longest time in the foreground, counted from the task's start, not while it is queued
    /// [default: no limit; a Spawn by gRPC has 60s]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    pub(super) foreground_timeout: Option<Duration>,

    /// The action when the foreground timeout has passed [default: detach]
    #[arg(long, value_name = "ACTION", requires = "foreground_timeout")]
    pub(super) on_foreground_timeout: Option<OnForegroundTimeout>,

    /// The action when the last attached client disconnects without a detach [default: cancel]
    #[arg(long, value_name = "ACTION")]
    pub(super) on_disconnect: Option<OnDisconnect>,

    /// Time after a disconnect in which an attach keeps the task, 1s or more [default: 10s]
    #[arg(long, value_name = "T", value_parser = reattach_window, allow_hyphen_values = true)]
    pub(super) reattach_window: Option<Duration>,
}

fn reattach_window(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        window if window < SHORTEST_REATTACH_WINDOW => Err(format!(
            "must be {} or more: `heeler run` needs time to attach to its task",
            units::duration(SHORTEST_REATTACH_WINDOW)
        )),
        window => Ok(window),
    }
}
