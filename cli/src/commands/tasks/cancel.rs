//! `heeler cancel`: stops tasks and prints the proof that their trees are gone.

use std::time::Duration;

use clap::{ArgGroup, Args};
use heeler_client::{
    CancelOptions, Client, Error, Filter,
    v1::{CancelOutcome, CancelRequest, CancelResponse, CancelResult, Unrecorded},
};
use tokio::task::JoinSet;

use crate::{
    args::{
        selection, task_filter,
        value::duration,
        value::key_value::{self, KeyValue},
        value::signal,
    },
    completion,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::{proof, status, text},
    task_ref,
};

const EXAMPLES: &str = "\
Examples:
  heeler cancel shell-4k2mzq7xda
  heeler cancel --session s1 --reason 'the conversation is over'
  heeler cancel --force --label team=red
  heeler cancel --port 3000
  heeler cancel --all

`heeler stop` is the same command, and `heeler kill` is `heeler cancel --force`.

The exit code is 0 when every process of every task is proven gone (with --no-wait: when the stop \
is recorded), 1 if a process is left, 3 if there is no such task. A task that is finished already \
is no error. On a full or failing disk a task is stopped all the same, and a warning says that the \
stop is not recorded.";

/// Stop tasks and wait until every process of them is proven gone
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("selection").required(true).multiple(true).args(["ids", "session", "labels", "port", "all"])
)]
pub(crate) struct Cancel {
    /// The tasks: ids, unique prefixes of ids, or names of live tasks
    #[arg(value_name = "ID", conflicts_with_all = ["session", "labels", "port", "all"],
          add = completion::tasks(), value_parser = selection::not_empty())]
    ids: Vec<String>,

    /// Every live task of this session
    #[arg(long, value_name = "S", value_parser = selection::not_empty(), add = completion::sessions())]
    session: Option<String>,

    /// Every live task with this label; may be repeated
    #[arg(long = "label", value_name = "K=V", value_parser = key_value::parse)]
    labels: Vec<KeyValue>,

    /// Every task with a process that listens on this TCP port
    #[arg(long, value_name = "N", value_parser = task_filter::port)]
    port: Option<u16>,

    /// Every live task
    #[arg(long, conflicts_with_all = ["session", "labels", "port"])]
    all: bool,

    /// Kill the whole tree at once, without a stop signal
    #[arg(long, conflicts_with_all = ["grace", "soft_grace", "signal"])]
    force: bool,

    /// Time between the stop signal and the kill, instead of the task's own
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    grace: Option<Duration>,

    /// Time before the stop signal for a worker that listens, instead of the task's own
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    soft_grace: Option<Duration>,

    /// The stop signal, instead of the task's own
    #[arg(long, value_parser = signal::parse)]
    signal: Option<String>,

    /// The reason, kept with the task
    #[arg(long)]
    reason: Option<String>,

    /// Return as soon as the stop is recorded
    #[arg(long)]
    no_wait: bool,

    /// Stop the descendants of each task first
    #[arg(long)]
    cascade: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Cancel {
    /// The command as `heeler kill` runs it.
    pub(crate) fn forced(mut self) -> Result<Self, Failure> {
        if self.grace.is_some() || self.soft_grace.is_some() || self.signal.is_some() {
            let text = "kill sends no stop signal; use `heeler cancel` with --grace or --signal";
            return Err(Failure::Usage(text.to_owned()));
        }
        self.force = true;
        Ok(self)
    }

    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let mut exit = Exit::Success;
        let mut whole = CancelResponse::default();
        let ids = task_ref::resolve(&cx.client, &self.ids).await?;
        for response in cancel_all(&cx.client, self.requests(ids)).await {
            match response {
                Ok(response) => {
                    whole.results.extend(response.results);
                    whole.revision = whole.revision.max(response.revision);
                }
                Err(error) => exit = exit.and(out::report(&error.into())),
            }
        }
        for result in &whole.results {
            exit = exit.and(self.exit(result));
            if let Some(warning) = unrecorded(result) {
                out::note(&text::visible(&warning));
            }
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

    fn requests(&self, ids: Vec<String>) -> Vec<CancelRequest> {
        let options = self.options();
        if !ids.is_empty() {
            return ids
                .into_iter()
                .map(|id| options.clone().of(Filter::all().task(id)))
                .collect();
        }
        let filter = match self.all {
            true => selection::live(),
            false => {
                let filter = selection::filter(self.session.as_deref(), &self.labels);
                self.port.into_iter().fold(filter, Filter::port)
            }
        };
        vec![options.of(filter)]
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
        if let Some(grace) = self.soft_grace {
            options = options.soft_grace(grace);
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
        let task = result.task.as_ref();
        let is_finished = task.is_some_and(status::is_finished);
        let found = task.and_then(proof::of);
        let has_survivors = found.is_some_and(proof::has_survivors);
        // Proven gone, though the end is not recorded yet.
        let is_gone = is_finished || found.is_some();
        if has_survivors || !(is_gone || self.no_wait) {
            Exit::Failed
        } else {
            Exit::Success
        }
    }
}

/// Sends all requests at the same time, so that the graces run in parallel. The responses are in the
/// order of the requests.
async fn cancel_all(
    client: &Client,
    requests: Vec<CancelRequest>,
) -> Vec<Result<CancelResponse, Error>> {
    let mut calls = JoinSet::new();
    for (index, request) in requests.into_iter().enumerate() {
        let client = client.clone();
        calls.spawn(async move { (index, client.cancel_response(request).await) });
    }
    let mut responses = calls.join_all().await;
    responses.sort_by_key(|(index, _)| *index);
    responses
        .into_iter()
        .map(|(_, response)| response)
        .collect()
}

/// The warning about a stop that took effect and is not recorded.
fn unrecorded(result: &CancelResult) -> Option<String> {
    let Unrecorded { message, .. } = result.unrecorded.as_ref()?;
    let id = result.task.as_ref().map_or("", |task| &task.id);
    Some(format!(
        "{id}: the stop took effect but is not recorded yet: {message}; \
         if the server ends before it is, the next one does not know who asked for it"
    ))
}

/// The result with the proof, and the warning about a stop that is not recorded.
pub(crate) fn report(result: &CancelResult) -> String {
    let lines = std::iter::once(line(result)).chain(unrecorded(result));
    lines.collect::<Vec<_>>().join("; ")
}

fn line(result: &CancelResult) -> String {
    let Some(task) = &result.task else {
        return "the response has no task".to_owned();
    };
    let mut line = format!("{}  {}", task.id, status::state_and_outcome(task));
    match result.outcome() {
        CancelOutcome::AlreadyFinished => line.push_str("; already finished"),
        CancelOutcome::AlreadyStopping if !status::is_finished(task) => {
            line.push_str("; already stopping");
        }
        CancelOutcome::AlreadyStopping | CancelOutcome::Requested | CancelOutcome::Unspecified => {}
    }
    if let Some(found) = proof::of(task) {
        line.push_str("; ");
        line.push_str(&proof::clause(found));
    }
    line
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{
        BackgroundTask, Outcome, ProcessInfo, Proof, ProofMethod, StopRecord, Survivors,
        TaskFilter, TaskState, outcome, proof::Result as Found,
    };

    use super::*;

    fn parse(args: &[&str]) -> Result<Cancel, clap::Error> {
        crate::args::parse(args)
    }

    fn result(state: TaskState, found: Option<Found>) -> CancelResult {
        let outcome = Some(Outcome {
            result: Some(outcome::Result::ExitCode(0)),
        });
        let proof = found.map(|found| Proof {
            result: Some(found),
            ..Proof::default()
        });
        let task = BackgroundTask {
            id: "shell-a".to_owned(),
            state: state.into(),
            outcome,
            stop: Some(StopRecord {
                proof,
                ..StopRecord::default()
            }),
            ..BackgroundTask::default()
        };
        CancelResult {
            task: Some(task),
            outcome: CancelOutcome::Requested.into(),
            unrecorded: None,
        }
    }

    #[test]
    fn tasks_are_selected_by_id_or_by_session_and_labels() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["a", "--session", "s"]).is_err());
        assert!(parse(&["a", "--force", "--grace", "1s"]).is_err());
        let filters = |args: &[&str]| -> Vec<TaskFilter> {
            let args = parse(args).unwrap();
            let requests = args.requests(args.ids.clone()).into_iter();
            requests.map(|request| request.filter.unwrap()).collect()
        };
        let by_id = ["a", "b"].map(|id| Filter::all().task(id).into());
        assert_eq!(filters(&["a", "b"]), by_id);
        assert_eq!(filters(&["--all"]), [selection::live().into()]);
        assert!(parse(&["a", "--all"]).is_err() && parse(&[""]).is_err());
        let session = Filter::all().session("s");
        assert_eq!(filters(&["--session", "s"]), [session.clone().into()]);
        let both = session.label("k", "v");
        let args = ["--session", "s", "--label", "k=v"];
        assert_eq!(filters(&args), [both.into()]);
    }

    /// C14
    #[test]
    fn survivors_are_named_and_make_the_exit_code_1() {
        let args = parse(&["a"]).unwrap();
        let survivors = Survivors {
            processes: vec![ProcessInfo {
                pid: 7,
                ..ProcessInfo::default()
            }],
        };
        let left = result(TaskState::Stopping, Some(Found::Survivors(survivors)));
        assert_eq!(args.exit(&left), Exit::Failed);
        assert!(line(&left).contains("NOT gone"), "{}", line(&left));

        let proven = Found::Proven(ProofMethod::CgroupEmpty.into());
        let gone = result(TaskState::Cancelled, Some(proven));
        assert_eq!(args.exit(&gone), Exit::Success);
        assert!(line(&gone).starts_with("shell-a  CANCELLED, exit code 0; proven gone"));
    }

    /// C14, O14
    #[test]
    fn a_stop_that_is_not_recorded_is_a_success_with_a_warning() {
        let proven = Found::Proven(ProofMethod::Sweep.into());
        let mut gone = result(TaskState::Stopping, Some(proven));
        assert_eq!(unrecorded(&gone), None);
        gone.unrecorded = Some(Unrecorded {
            message: "the disk is full".to_owned(),
            ..Unrecorded::default()
        });
        assert_eq!(parse(&["a"]).unwrap().exit(&gone), Exit::Success);
        let warning = unrecorded(&gone).unwrap();
        assert!(warning.starts_with("shell-a: "), "{warning}");
        assert!(warning.contains("the disk is full"), "{warning}");
    }

    #[test]
    fn with_no_wait_a_recorded_stop_is_a_success() {
        let stopping = result(TaskState::Stopping, None);
        assert_eq!(parse(&["a"]).unwrap().exit(&stopping), Exit::Failed);
        assert_eq!(
            parse(&["a", "--no-wait"]).unwrap().exit(&stopping),
            Exit::Success
        );
    }
}
