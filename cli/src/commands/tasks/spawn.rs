//! `heeler spawn`: starts a background task.

use clap::Args;
use heeler_client::Error;

use crate::{
    args::{spawn_request, task::TaskArgs},
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
};

const EXAMPLES: &str = "\
Examples:
  id=$(heeler spawn -- make -j4)
  heeler spawn --session s1 --name dev -c 'npm run dev 2>&1 | tee dev.log'
  heeler spawn --timeout 10m --env CI=1 --env TOKEN -- ./check.sh
  heeler spawn --queue builds -- make release
  heeler spawn --exclusive dev:/srv/app --on-held replace -- npm run dev
  heeler spawn --exclusive dev:/srv/app --on-held ensure -- npm run dev
  heeler spawn --kind agent --stale-after 5m -- ./subagent";

/// Start a background task and print its id
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "heeler spawn [OPTIONS] [--] <ARGV>...\n       heeler spawn [OPTIONS] -c <SCRIPT>"
)]
pub(crate) struct Spawn {
    #[command(flatten)]
    pub(super) task: TaskArgs,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Spawn {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        // Before the connection: invalid arguments must not start a daemon.
        let spawn = spawn_request::background(&self.task)?;
        let mut cx = Context::open(&self.client).await?;
        let spawn = spawn_request::with_parent(&cx.client, &self.task, spawn).await?;
        let response = cx.client.spawn_response(spawn).await?;
        for notice in &response.notices {
            out::note(&notice.message);
        }
        if cx.print_json(&response)? == Printed::No {
            let task = response.task.ok_or(Error::Incomplete { field: "task" })?;
            cx.out.line(&task.id)?;
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }
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
