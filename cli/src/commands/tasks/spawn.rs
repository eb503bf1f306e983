//! `heeler spawn`: starts a background task.

use clap::Args;
use heeler_client::{Client, Error, v1::BackgroundTask};

use super::wait;

use crate::{
    args::{spawn_request, task::TaskArgs},
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::status,
};

const EXAMPLES: &str = "\
Examples:
  id=$(heeler spawn -- make -j4)
  heeler spawn --session s1 --name dev -c 'npm run dev 2>&1 | tee dev.log'
  heeler spawn --timeout 10m --env CI=1 --env TOKEN -- ./check.sh
  heeler spawn --queue builds -- make release
  heeler spawn --exclusive dev:/srv/app --on-held replace -- npm run dev
  heeler spawn --exclusive dev:/srv/app --on-held ensure -- npm run dev
  heeler spawn --name dev --match ready='Listening on' -- npm run dev
  heeler spawn --kind agent --stale-after 5m -- ./subagent
  heeler spawn --ready-port 3000 --ready-timeout 30s -- npm run dev";

/// Start a background task and print its id
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "heeler spawn [OPTIONS] [--] <ARGV>...\n       heeler spawn [OPTIONS] -c <SCRIPT>"
)]
pub(crate) struct Spawn {
    #[command(flatten)]
    pub(super) task: TaskArgs,

    /// Print the id when the task is ready; exit with 1 if it is not ready in time, or ends before
    #[arg(long, requires = "ready")]
    pub(super) wait_ready: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Spawn {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        // Before the connection: invalid arguments must not start a daemon.
        let spawn = spawn_request::background(&self.task)?;
        let mut cx = Context::open(&self.client).await?;
        let spawn = spawn_request::with_parent(&cx.client, &self.task, spawn).await?;
        let mut response = cx.client.spawn_response(spawn).await?;
        for notice in &response.notices {
            out::note(&notice.message);
        }
        let task = response.task.as_mut();
        let task = task.ok_or(Error::Incomplete { field: "task" })?;
        let exit = match self.wait_ready {
            true => wait_ready(&cx.client, task).await?,
            false => Exit::Success,
        };
        let id = task.id.clone();
        if cx.print_json(&response)? == Printed::No {
            cx.out.line(&id)?;
        }
        cx.out.flush()?;
        Ok(exit)
    }
}

/// Waits until it is known whether the task is ready.
async fn wait_ready(client: &Client, task: &mut BackgroundTask) -> Result<Exit, Failure> {
    *task = client.task(&task.id).ready().await?;
    if wait::is_ready(task) {
        return Ok(Exit::Success);
    }
    let state = status::state_and_outcome(task);
    out::note(&format!("{} is not ready: it is {state}", task.id));
    Ok(Exit::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn a_script_or_arguments_are_required_and_not_both() {
        let parse = |args: &[&str]| parse::<Spawn>(args);
        assert!(parse(&["--", "make", "-j4"]).is_ok());
        assert!(parse(&["-c", "make &"]).is_ok());
        assert!(parse(&["make", "-j4"]).is_ok());
        assert!(parse(&[]).is_err());
        assert!(parse(&["--"]).is_err());
        assert!(parse(&["-c", "x", "--", "y"]).is_err());
    }

    /// U3
    #[test]
    fn after_the_program_every_word_is_its_own() {
        let argv = |args: &[&str]| parse::<Spawn>(args).unwrap().task.argv().to_vec();
        let expected = ["sleep", "1", "--json", "--", "-x"];
        assert_eq!(argv(&["sleep", "1", "--json", "--", "-x"]), expected);
        assert_eq!(
            argv(&["--name", "n", "--", "sleep", "1", "--json", "--", "-x"]),
            expected
        );
        assert!(parse::<Spawn>(&["--no-such-flag", "sleep"]).is_err());
    }

    #[test]
    fn a_flag_without_the_flag_it_needs_and_a_negative_duration_are_refused() {
        let parse = |args: &[&str]| parse::<Spawn>(args);
        assert!(parse(&["--stale-cancel", "--", "y"]).is_err());
        assert!(parse(&["--stale-cancel", "--stale-after", "1s", "--", "y"]).is_ok());
        let error = parse(&["--timeout", "-5s", "--", "y"])
            .unwrap_err()
            .to_string();
        assert!(error.contains("--timeout"), "{error}");
    }
}
