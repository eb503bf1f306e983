//! `heeler detach`: moves foreground tasks to the background.

use std::time::Duration;

use clap::{ArgGroup, Args};
use heeler_client::{
    DetachOptions, Filter,
    v1::{DetachOutcome, DetachResult},
};

use crate::{
    args::{selection, value::duration},
    completion,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::{status, text},
    task_ref,
};

const EXAMPLES: &str = "\
Examples:
  heeler detach shell-4k2mzq7xda
  heeler detach --session s1 --timeout 10m --reason 'the user moved on'

A task that is finished or in the background already is no error, nor is a session without a \
foreground task. An attached client such as `heeler run` prints the task's id and exits with 0.";

/// Move a foreground task to the background
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("selection").required(true).args(["id", "session"]))]
pub(crate) struct Detach {
    /// The task: an id, a unique prefix of one, or the name of a live task
    #[arg(value_name = "ID", add = completion::tasks(), value_parser = selection::not_empty())]
    id: Option<String>,

    /// Every foreground task of this session
    #[arg(long, value_parser = selection::not_empty(), add = completion::sessions())]
    session: Option<String>,

    /// Stop the task after this time from now on, instead of its own --timeout
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// The reason, kept with the task
    #[arg(long)]
    reason: Option<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Detach {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let filter = match &self.id {
            Some(word) => Filter::all().task(task_ref::resolve_one(&cx.client, word).await?),
            None => selection::filter(self.session.as_deref(), &[]),
        };
        let response = cx.client.detach_response(self.options().of(filter)).await?;
        if cx.print_json(&response)? == Printed::No {
            for result in &response.results {
                cx.out.line(&text::visible(&line(result)))?;
            }
            if response.results.is_empty() {
                out::note("the session has no foreground task");
            }
        }
        cx.out.flush()?;
        Ok(Exit::Success)
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

pub(crate) fn line(detached: &DetachResult) -> String {
    let Some(task) = &detached.task else {
        return "the response has no task".to_owned();
    };
    let result = match detached.outcome() {
        DetachOutcome::Detached => "detached",
        DetachOutcome::AlreadyBackground => "already in the background",
        DetachOutcome::AlreadyFinished => "already finished",
        DetachOutcome::Unspecified => "a result that this version of heeler does not know",
    };
    format!("{}  {}; {result}", task.id, status::state_and_outcome(task))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_or_a_session_is_required_and_not_both() {
        let parse = |args: &[&str]| crate::args::parse::<Detach>(args);
        assert!(parse(&["a"]).is_ok());
        assert!(parse(&["--session", "s", "--timeout", "10m"]).is_ok());
        assert!(parse(&[]).is_err());
        assert!(parse(&["a", "--session", "s"]).is_err());
    }
}
