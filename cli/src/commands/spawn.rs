//! `heeler spawn`: starts a background task.

use clap::Args;
use heeler_client as sdk;

use crate::{
    context::{ClientArgs, Context, Printed},
    exit::{Exit, Failure},
    out,
    task_args::TaskArgs,
};

const EXAMPLES: &str = "\
Examples:
  id=$(heeler spawn -- make -j4)
  heeler spawn --session s1 --name dev -c 'npm run dev 2>&1 | tee dev.log'
  heeler spawn --timeout 10m --env CI=1 --env TOKEN -- ./check.sh
  heeler spawn --queue builds -- make release
  heeler spawn --exclusive dev:/srv/app --on-held replace -- npm run dev
  heeler spawn --kind agent --stale-after 5m -- ./subagent";

/// Start a background task and print its id
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "heeler spawn [OPTIONS] -- <ARGV>...\n       heeler spawn [OPTIONS] -c <SCRIPT>"
)]
pub(crate) struct Spawn {
    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl Spawn {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        // Before a daemon is sought: bad arguments must not start one.
        let spawn = self.task.request()?;
        let mut cx = Context::open(&self.client).await?;
        let response = cx.client.spawn_response(spawn).await?;
        for notice in &response.notices {
            out::note(&notice.message);
        }
        if cx.print_json(&response)? == Printed::No {
            let task = response
                .task
                .ok_or(sdk::Error::Incomplete { field: "task" })?;
            cx.out.line(&task.id)?;
        }
        cx.out.flush()?;
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::SpawnRequest;

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
        assert!(parse(&["--stale-cancel", "--", "y"]).is_err());
        assert!(parse(&["--stale-cancel", "--stale-after", "1s", "--", "y"]).is_ok());
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
        let request = SpawnRequest::from(args.task.request().unwrap());
        assert_eq!(request.stop_policy, None);
        assert_eq!(request.timeout, None);
        assert_eq!((request.placement, request.orphan_policy), (0, 0));
        assert_eq!(request.working_directory, "/");
    }
}
