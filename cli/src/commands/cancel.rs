//! `heeler cancel`: stops tasks, and says how it is known that nothing of them is left.

use std::time::Duration;

use clap::{ArgGroup, Args};
use heeler_client::{
    CancelOptions, Client, Error,
    v1::{CancelOutcome, CancelRequest, CancelResponse, CancelResult, cancel_request::Target},
};
use tokio::task::JoinSet;

use crate::{
    context::{ClientArgs, Context, Printed},
    duration,
    exit::{Exit, Failure},
    out, text,
    values::{self, Pair},
    words,
};

const EXAMPLES: &str = "\
Examples:
  heeler cancel shell-4k2mzq7xda
  heeler cancel --session s1 --reason 'the conversation is over'
  heeler cancel --force --label team=red

It exits with 0 once every process of every task is proven gone (with --no-wait: once the stop is
asked for), with 1 if some are left, with 3 if there is no such task. A task that is over already is
no error.";

/// Stop tasks, and wait for the proof that nothing of them is left
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("whom").required(true).multiple(true).args(["ids", "session", "labels"])
)]
pub(crate) struct Cancel {
    /// The tasks
    #[arg(value_name = "ID", conflicts_with_all = ["session", "labels"])]
    ids: Vec<String>,

    /// Every live task of this session
    #[arg(long, value_parser = values::not_empty())]
    session: Option<String>,

    /// Every live task with this label at this value; may be given again
    #[arg(long = "label", value_name = "K=V", value_parser = values::pair)]
    labels: Vec<Pair>,

    /// Kill the whole tree at once
    #[arg(long, conflicts_with_all = ["grace", "signal"])]
    force: bool,

    /// How long the tree may take to obey, instead of the task's own grace
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    grace: Option<Duration>,

    /// What to ask with, instead of the task's own stop signal
    #[arg(long, value_parser = values::signal)]
    signal: Option<String>,

    /// Why; kept with the task
    #[arg(long)]
    reason: Option<String>,

    /// Return as soon as the stop is asked for
    #[arg(long)]
    no_wait: bool,

    /// First stop the tasks that it spawned, and theirs
    #[arg(long)]
    cascade: bool,

    #[command(flatten)]
    client: ClientArgs,
}

impl Cancel {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let mut exit = Exit::Done;
        let mut whole = CancelResponse::default();
        for answer in cancel_all(&cx.client, self.requests()).await {
            match answer {
                Ok(response) => {
                    whole.results.extend(response.results);
                    whole.revision = whole.revision.max(response.revision);
                }
                Err(error) => exit = exit.and(told(error.into())),
            }
        }
        for result in &whole.results {
            exit = exit.and(self.exit(result));
        }
        if cx.print_json(&whole)? == Printed::No {
            for result in &whole.results {
                cx.out.line(&text::visible(&line(result)))?;
            }
            if whole.results.is_empty() && self.ids.is_empty() {
                out::note("no live task matches");
            }
        }
        cx.out.flush()?;
        Ok(exit)
    }

    fn requests(&self) -> Vec<CancelRequest> {
        let options = self.options();
        if !self.ids.is_empty() {
            let ids = values::distinct(&self.ids).into_iter();
            return ids
                .map(|id| options.clone().of(Target::TaskId(id)))
                .collect();
        }
        let target = match (&self.session, self.labels.as_slice()) {
            (Some(session), []) => Target::SessionId(session.clone()),
            (session, labels) => Target::Filter(values::filter(session.as_deref(), labels).into()),
        };
        vec![options.of(target)]
    }

    fn options(&self) -> CancelOptions {
        let mut options = if self.force {
            CancelOptions::force()
        } else {
            CancelOptions::graceful()
        };
        options = options.actor("heeler cancel");
        if let Some(grace) = self.grace {
            options = options.grace(grace);
        }
        if let Some(signal) = &self.signal {
            options = options.signal(signal);
        }
        if let Some(reason) = &self.reason {
            options = options.reason(reason);
        }
        if self.no_wait {
            options = options.no_wait();
        }
        if self.cascade {
            options = options.cascade();
        }
        options
    }

    fn exit(&self, result: &CancelResult) -> Exit {
        let over = result.task.as_ref().is_some_and(words::is_over);
        let left = result
            .proof
            .as_ref()
            .is_some_and(|proof| !proof.survivors.is_empty());
        if left || !(over || self.no_wait) {
            Exit::Failed
        } else {
            Exit::Done
        }
    }
}

/// All at once, so that their graces run side by side; the answers in the order of the requests.
async fn cancel_all(
    client: &Client,
    requests: Vec<CancelRequest>,
) -> Vec<Result<CancelResponse, Error>> {
    let mut calls = JoinSet::new();
    for (place, request) in requests.into_iter().enumerate() {
        let client = client.clone();
        calls.spawn(async move { (place, client.cancel(request).await) });
    }
    let mut answers = calls.join_all().await;
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// One of several that failed: told at once, while the others go on.
fn told(failure: Failure) -> Exit {
    if let Some(text) = failure.report() {
        out::note(&text);
    }
    failure.exit()
}

fn line(result: &CancelResult) -> String {
    let Some(task) = &result.task else {
        return "the answer has no task".to_owned();
    };
    let mut line = format!("{}  {}", task.id, words::state_and_outcome(task));
    match result.outcome() {
        CancelOutcome::AlreadyFinished => line.push_str("; it was over already"),
        CancelOutcome::AlreadyStopping if !words::is_over(task) => {
            line.push_str("; it was being stopped already");
        }
        CancelOutcome::AlreadyStopping | CancelOutcome::Requested | CancelOutcome::Unspecified => {}
    }
    if let Some(proof) = &result.proof {
        line.push_str("; ");
        line.push_str(&words::proof(proof));
    }
    line
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use heeler_client::v1::{
        BackgroundTask, Outcome, ProcessInfo, Proof, ProofMethod, TaskState, outcome,
    };

    use super::*;

    fn parse(args: &[&str]) -> Result<Cancel, clap::Error> {
        let cli = crate::Cli::try_parse_from([&["heeler", "cancel"], args].concat())?;
        let crate::commands::Command::Cancel(crate::deferred::Deferred(args)) = cli.command else {
            panic!("not cancel")
        };
        Ok(args)
    }

    fn result(state: TaskState, proof: Option<Proof>) -> CancelResult {
        let outcome = Some(Outcome {
            result: Some(outcome::Result::ExitCode(0)),
        });
        let task = BackgroundTask {
            id: "shell-a".to_owned(),
            state: state.into(),
            outcome,
            ..BackgroundTask::default()
        };
        CancelResult {
            task: Some(task),
            outcome: CancelOutcome::Requested.into(),
            proof,
        }
    }

    #[test]
    fn somebody_must_be_named_in_one_way() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["a", "--session", "s"]).is_err());
        assert!(parse(&["a", "--force", "--grace", "1s"]).is_err());
        assert_eq!(parse(&["a", "b", "a"]).unwrap().requests().len(), 2);
        let both = parse(&["--session", "s", "--label", "k=v"])
            .unwrap()
            .requests();
        assert!(matches!(both[0].target, Some(Target::Filter(_))));
        let session = parse(&["--session", "s"]).unwrap().requests();
        assert!(matches!(session[0].target, Some(Target::SessionId(_))));
    }

    /// C14
    #[test]
    fn survivors_are_a_failure_and_are_named() {
        let args = parse(&["a"]).unwrap();
        let survivors = vec![ProcessInfo {
            pid: 7,
            ..ProcessInfo::default()
        }];
        let left = result(
            TaskState::Stopping,
            Some(Proof {
                survivors,
                ..Proof::default()
            }),
        );
        assert_eq!(args.exit(&left), Exit::Failed);
        assert!(line(&left).contains("NOT gone"), "{}", line(&left));

        let method = ProofMethod::CgroupEmpty.into();
        let gone = result(
            TaskState::Cancelled,
            Some(Proof {
                method,
                ..Proof::default()
            }),
        );
        assert_eq!(args.exit(&gone), Exit::Done);
        assert!(line(&gone).starts_with("shell-a  CANCELLED, exit code 0; proven gone"));
    }

    #[test]
    fn a_stop_that_is_not_waited_for_is_done_when_it_is_asked_for() {
        let stopping = result(TaskState::Stopping, None);
        assert_eq!(parse(&["a"]).unwrap().exit(&stopping), Exit::Failed);
        assert_eq!(
            parse(&["a", "--no-wait"]).unwrap().exit(&stopping),
            Exit::Done
        );
    }
}
