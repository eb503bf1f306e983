//! `heeler detach`: puts foreground tasks into the background, and lets whoever they hold go.

use std::time::Duration;

use clap::{ArgGroup, Args};
use heeler_client::{
    DetachOptions,
    v1::{DetachOutcome, DetachResult, detach_request::Target},
};

use crate::{
    context::{ClientArgs, Context, Printed},
    duration,
    exit::{Exit, Failure},
    out, text, values, words,
};

const EXAMPLES: &str = "\
Examples:
  heeler detach shell-4k2mzq7xda
  heeler detach --session s1 --timeout 10m --reason 'the user goes on'

A task that is in the background or over already is no error, nor is a session that holds nothing in the
foreground. Whoever held the task, e.g. `heeler run`, prints its id and exits with 0.";

/// Put a foreground task into the background
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("whom").required(true).args(["id", "session"]))]
pub(crate) struct Detach {
    /// The task
    #[arg(value_name = "ID")]
    id: Option<String>,

    /// Whatever this session holds in the foreground
    #[arg(long, value_parser = values::not_empty())]
    session: Option<String>,

    /// How long it may run from here on, instead of the timeout it was started with
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// Why; kept with the task
    #[arg(long)]
    reason: Option<String>,

    #[command(flatten)]
    client: ClientArgs,
}

impl Detach {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let target = match (&self.id, &self.session) {
            (Some(id), _) => Target::TaskId(id.clone()),
            (None, session) => Target::SessionId(session.clone().unwrap_or_default()),
        };
        let mut cx = Context::open(&self.client).await?;
        let response = cx.client.detach(self.options().of(target)).await?;
        if cx.print_json(&response)? == Printed::No {
            for result in &response.results {
                cx.out.line(&text::visible(&line(result)))?;
            }
            if response.results.is_empty() {
                out::note("nothing of it is in the foreground");
            }
        }
        cx.out.flush()?;
        Ok(Exit::Done)
    }

    fn options(&self) -> DetachOptions {
        let mut options = DetachOptions::new().actor("heeler detach");
        if let Some(timeout) = self.timeout {
            options = options.timeout(timeout);
        }
        if let Some(reason) = &self.reason {
            options = options.reason(reason);
        }
        options
    }
}

fn line(result: &DetachResult) -> String {
    let Some(task) = &result.task else {
        return "the answer has no task".to_owned();
    };
    let what = match result.outcome() {
        DetachOutcome::Detached => "detached",
        DetachOutcome::AlreadyBackground => "it was in the background already",
        DetachOutcome::AlreadyFinished => "it was over already",
        DetachOutcome::Unspecified => "not known to this version",
    };
    format!("{}  {}; {what}", task.id, words::state_and_outcome(task))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[test]
    fn a_task_or_a_session_is_wanted() {
        let parse =
            |args: &[&str]| crate::Cli::try_parse_from([&["heeler", "detach"], args].concat());
        assert!(parse(&["a"]).is_ok());
        assert!(parse(&["--session", "s", "--timeout", "10m"]).is_ok());
        assert!(parse(&[]).is_err());
        assert!(parse(&["a", "--session", "s"]).is_err());
    }
}
