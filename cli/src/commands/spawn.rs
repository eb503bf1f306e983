//! `heeler spawn`: starts a background task.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{ArgGroup, Args};
use heeler_client::{self as sdk, v1::EnvDefaults};

use crate::{
    context::{ClientArgs, Context, Printed},
    duration,
    exit::{Exit, Failure},
    turn_args::TurnArgs,
    values::{self, Kind, Pair},
};

const EXAMPLES: &str = "\
Examples:
  id=$(heeler spawn -- make -j4)
  heeler spawn --session s1 --name dev -c 'npm run dev 2>&1 | tee dev.log'
  heeler spawn --timeout 10m --env CI=1 --env TOKEN -- ./check.sh
  heeler spawn --queue builds -- make release
  heeler spawn --exclusive dev:/srv/app --on-held replace -- npm run dev";

/// Start a background task and print its id
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "heeler spawn [OPTIONS] -- <ARGV>...\n       heeler spawn [OPTIONS] -c <SCRIPT>",
    group = ArgGroup::new("what").required(true).args(["argv", "script"])
)]
pub(crate) struct Spawn {
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

    /// How long it may run, e.g. 90s or 1h30m [default: for ever]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// How long it may take to obey the stop signal before it is killed [default: 5s]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    grace: Option<Duration>,

    /// What it is asked to stop with [default: SIGTERM]
    #[arg(long, value_name = "SIGNAL", value_parser = values::signal)]
    stop_signal: Option<String>,

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

    #[command(flatten)]
    client: ClientArgs,
}

impl Spawn {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        // Before a daemon is sought: bad arguments must not start one.
        let spawn = self.request()?;
        let mut cx = Context::open(&self.client).await?;
        let response = cx.client.spawn_response(spawn).await?;
        if cx.print_json(&response)? == Printed::No {
            let task = response
                .task
                .ok_or(sdk::Error::Incomplete { field: "task" })?;
            cx.out.line(&task.id)?;
        }
        cx.out.flush()?;
        Ok(Exit::Done)
    }

    fn request(&self) -> Result<sdk::Spawn, Failure> {
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
        if let Some(id) = &self.request_id {
            spawn = spawn.request_id(id);
        }
        spawn
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
    use heeler_client::v1::SpawnRequest;

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

    #[test]
    fn either_a_script_or_arguments_are_wanted() {
        use clap::Parser;
        let parse =
            |args: &[&str]| crate::Cli::try_parse_from([&["heeler", "spawn"], args].concat());
        assert!(parse(&["--", "make", "-j4"]).is_ok());
        assert!(parse(&["-c", "make &"]).is_ok());
        assert!(parse(&[]).is_err());
        assert!(parse(&["--"]).is_err());
        assert!(parse(&["-c", "x", "--", "y"]).is_err());
        let error = parse(&["--timeout", "-5s", "--", "y"])
            .unwrap_err()
            .to_string();
        assert!(error.contains("--timeout"), "{error}");
    }

    #[test]
    fn what_is_not_said_is_left_to_the_daemon() {
        use clap::Parser;
        let cli = crate::Cli::parse_from(["heeler", "spawn", "--cwd", "/", "--", "true"]);
        let crate::commands::Command::Spawn(crate::deferred::Deferred(args)) = cli.command else {
            panic!("not spawn")
        };
        let request = SpawnRequest::from(args.request().unwrap());
        assert_eq!(request.stop_policy, None);
        assert_eq!(request.timeout, None);
        assert_eq!(request.working_directory, "/");
    }
}
