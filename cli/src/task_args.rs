//! What a task is to be: the arguments that `spawn` and `run` share.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{ArgGroup, Args};
use heeler_client::{
    self as sdk,
    v1::{EnvDefaults, StaleAction},
};

use crate::{
    duration,
    exit::Failure,
    turn_args::TurnArgs,
    values::{self, Kind, Orphans, Pair},
};

/// What a task is to be.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["argv", "script"]))]
pub(crate) struct TaskArgs {
    /// The program and its arguments, run as they are
    #[arg(last = true, value_name = "ARGV")]
    argv: Vec<String>,

    /// A script, run by bash where there is one, else by /bin/sh
    #[arg(short = 'c', value_name = "SCRIPT", allow_hyphen_values = true)]
    script: Option<String>,

    /// The conversation that the task belongs to
    #[arg(long)]
    session: Option<String>,

    /// A name for people
    #[arg(long)]
    name: Option<String>,

    /// Data to filter by; may be given again
    #[arg(long = "label", value_name = "K=V", value_parser = values::pair)]
    labels: Vec<Pair>,

    /// The directory to start in [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// A variable, or just its name to hand on the value it has here; may be given again
    #[arg(long, value_name = "K[=V]", value_parser = values::env_pair)]
    env: Vec<Pair>,

    /// A variable to take away from what the daemon's environment gives; may be given again
    #[arg(long, value_name = "K")]
    env_remove: Vec<String>,

    /// Do not tell the task by its environment that nobody is looking (no pager, no colour …)
    #[arg(long)]
    no_env_defaults: bool,

    /// How long it may run in the background, e.g. 90s or 1h30m [default: for ever]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// How long it may take to obey the stop signal before it is killed [default: 5s]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    grace: Option<Duration>,

    /// What it is asked to stop with [default: SIGTERM]
    #[arg(long, value_name = "SIGNAL", value_parser = values::signal)]
    stop_signal: Option<String>,

    /// How long it may write no output before it is stopped [default: for ever]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    idle_timeout: Option<Duration>,

    /// How long it may write no output before it counts as stale, which `ps` and `events` show
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    stale_after: Option<Duration>,

    /// Stop it when it is stale
    #[arg(long, requires = "stale_after")]
    stale_cancel: bool,

    /// What becomes of processes that outlive the first one [default: track]
    #[arg(long, value_name = "POLICY")]
    orphans: Option<Orphans>,

    /// The live task that spawns this one
    #[arg(long, value_name = "ID")]
    parent: Option<String>,

    /// What kind of work it is [default: shell]
    #[arg(long)]
    kind: Option<Kind>,

    /// The same id again gives the first task again, and starts nothing
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,

    #[command(flatten)]
    turn: TurnArgs,
}

impl TaskArgs {
    /// The request that they make.
    pub(crate) fn request(&self) -> Result<sdk::Spawn, Failure> {
        let mut spawn = match &self.script {
            Some(script) => sdk::Spawn::shell(script),
            None => sdk::Spawn::argv(&self.argv),
        };
        spawn = spawn.working_directory(directory(self.cwd.as_deref())?);
        for Pair { key, value } in &self.labels {
            spawn = spawn.label(key, value);
        }
        for Pair { key, value } in &self.env {
            spawn = spawn.env(key, value);
        }
        for key in &self.env_remove {
            spawn = spawn.env_remove(key);
        }
        if self.no_env_defaults {
            spawn = spawn.env_defaults(EnvDefaults::None);
        }
        Ok(self.turn.apply(self.choices(spawn)))
    }

    fn choices(&self, mut spawn: sdk::Spawn) -> sdk::Spawn {
        if let Some(session) = &self.session {
            spawn = spawn.session(session);
        }
        if let Some(name) = &self.name {
            spawn = spawn.name(name);
        }
        if let Some(timeout) = self.timeout {
            spawn = spawn.timeout(timeout);
        }
        if let Some(grace) = self.grace {
            spawn = spawn.grace(grace);
        }
        if let Some(signal) = &self.stop_signal {
            spawn = spawn.stop_signal(signal);
        }
        if let Some(parent) = &self.parent {
            spawn = spawn.parent(parent);
        }
        if let Some(kind) = self.kind {
            spawn = spawn.kind(kind.into());
        }
        if let Some(policy) = self.orphans {
            spawn = spawn.orphan_policy(policy.into());
        }
        if let Some(timeout) = self.idle_timeout {
            spawn = spawn.idle_timeout(timeout);
        }
        if let Some(span) = self.stale_after {
            spawn = spawn.stale_after(span);
        }
        if self.stale_cancel {
            spawn = spawn.stale_action(StaleAction::Cancel);
        }
        if let Some(id) = &self.request_id {
            spawn = spawn.request_id(id);
        }
        spawn
    }

    /// Whether somebody chose what it is asked to stop with.
    pub(crate) fn has_stop_signal(&self) -> bool {
        self.stop_signal.is_some()
    }
}

/// The directory to start in, absolute: the daemon stands elsewhere.
fn directory(cwd: Option<&Path>) -> Result<PathBuf, Failure> {
    let directory = match cwd {
        Some(cwd) => std::path::absolute(cwd)
            .map_err(|error| Failure::Usage(format!("--cwd {}: {error}", cwd.display())))?,
        None => env::current_dir().map_err(|error| {
            Failure::Usage(format!(
                "the current directory cannot be told: {error}: give --cwd"
            ))
        })?,
    };
    match directory.to_str() {
        Some(_) => Ok(directory),
        None => Err(Failure::Usage(format!(
            "{} is not valid UTF-8",
            directory.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_is_resolved_here() {
        let here = env::current_dir().unwrap();
        assert_eq!(directory(None).unwrap(), here);
        assert_eq!(directory(Some(Path::new("src"))).unwrap(), here.join("src"));
        assert_eq!(
            directory(Some(Path::new("/srv"))).unwrap(),
            Path::new("/srv")
        );
    }
}
