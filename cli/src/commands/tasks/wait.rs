//! `heeler wait`: waits for tasks. The end of a wait never ends a task.

mod matched;

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use heeler_client::{
    self as sdk, ListOptions,
    v1::{BackgroundTask, Readiness, TaskState, WaitResponse},
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
  heeler wait shell-4k2mzq7xda && echo ok
  heeler wait --any --timeout 30s shell-4k2mzq7xda shell-7rw3hm2pqe
  heeler wait --session s1
  heeler wait --until background shell-4k2mzq7xda
  heeler wait --until ready dev
  heeler wait --match 'Listening on' --timeout 30s dev && ./check.sh

For one task the exit code is the task's own, 128+n if signal n killed it, 1 if it failed to start \
or its exit is unknown, and 0 if it continues in the background. A stopped task never gives 0. For \
several tasks or a session the exit code is 0 if all that finished are COMPLETED, else 1. If the \
timeout passes first, it is 124. With --until ready it is 0 if the tasks are ready, and 1 if one was not \
in time or has ended before.

With --match each task's first line that matches is printed, for several tasks after the task's id. \
A line that is there already counts. The exit code is 0, or 1 if a task finished without such a line.

For a session, tasks that are live now or start during the wait count; tasks that finished before \
do not. A call from inside a task waits for the descendants of that task. Ctrl-C ends the wait only.";

/// Wait until tasks are finished, out of the foreground, ready, or have written a line
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("selection").required(true).args(["ids", "session"]))]
pub(crate) struct Wait {
    /// The tasks: ids, unique prefixes of ids, or names of live tasks
    #[arg(value_name = "ID", add = completion::tasks(), value_parser = selection::not_empty())]
    ids: Vec<String>,

    /// All live tasks of this session, and those that start during the wait
    #[arg(long, value_parser = selection::not_empty(), add = completion::sessions())]
    session: Option<String>,

    /// Wait for one of the tasks, not for all
    #[arg(long, conflicts_with = "session")]
    any: bool,

    /// The condition to wait for
    #[arg(long, value_enum, default_value_t = Until::Finished)]
    until: Until,

    /// Wait for a line of output that matches this regular expression
    #[arg(long = "match", value_name = "RE", value_parser = selection::not_empty(),
          conflicts_with_all = ["session", "until"])]
    line: Option<String>,

    /// Longest time to wait; with 0 the command only checks
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Until {
    /// The task is finished
    Finished,
    /// The task is out of the foreground: in the background, or finished
    Background,
    /// It is known whether the task is ready: it is, or was not in time, or has finished
    Ready,
}

impl Until {
    fn words(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Background => "out of the foreground",
            Self::Ready => "ready",
        }
    }
}

impl Wait {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let ids = task_ref::resolve(&cx.client, &self.ids).await?;
        if let Some(regex) = &self.line {
            let response = cx.client.wait(self.request(&ids).matching(regex)).await?;
            return matched::print(&mut cx, &response, self.needed(&ids));
        }
        let response = cx.client.wait(self.request(&ids)).await?;
        if let Some(session) = self.session.as_ref().filter(|_| found_nothing(&response)) {
            check_session(&cx, session).await?;
        }
        if cx.print_json(&response)? == Printed::No {
            for task in &response.met {
                let state = match (self.until, status::readiness(task)) {
                    (Until::Ready, Some(readiness)) => {
                        format!("{readiness}, {}", status::state(task))
                    }
                    (Until::Finished | Until::Background | Until::Ready, _) => {
                        status::state_and_outcome(task)
                    }
                };
                let line = format!("{}  {state}", task.id);
                cx.out.line(&text::visible(&line))?;
            }
            if !response.satisfied {
                let pending = response.pending.iter().map(|task| task.id.as_str());
                let pending: Vec<_> = pending.collect();
                out::note(&format!(
                    "timeout passed; not {}: {}",
                    self.until.words(),
                    pending.join(" ")
                ));
            }
        }
        cx.out.flush()?;
        for text in response.met.iter().filter_map(status::missing_output) {
            out::note(&text);
        }
        Ok(match self.until {
            Until::Finished | Until::Background => exit(&ids, &response),
            Until::Ready => exit_when_ready(&response),
        })
    }

    /// The number of tasks that have to meet the condition.
    fn needed(&self, ids: &[String]) -> usize {
        match self.any {
            true => 1,
            false => ids.len(),
        }
    }

    fn request(&self, ids: &[String]) -> sdk::Wait {
        let wait = match (&self.session, self.any) {
            (Some(session), _) => sdk::Wait::session(session),
            (None, true) => sdk::Wait::any(ids),
            (None, false) => sdk::Wait::all(ids),
        };
        let wait = match self.until {
            Until::Finished => wait,
            Until::Background => wait.out_of_foreground(),
            Until::Ready => wait.ready(),
        };
        self.timeout.into_iter().fold(wait, sdk::Wait::timeout)
    }
}

fn exit(ids: &[String], response: &WaitResponse) -> Exit {
    if !response.satisfied {
        return Exit::TimedOut;
    }
    match (ids, response.met.as_slice()) {
        ([_], [task]) if continues(task) => Exit::Success,
        ([_], [task]) => Exit::of_exit_code(task),
        (_, met) if met.iter().all(|task| continues(task) || is_completed(task)) => Exit::Success,
        (_, _) => Exit::Failed,
    }
}

fn exit_when_ready(response: &WaitResponse) -> Exit {
    match response.met.iter().all(is_ready) {
        _ if !response.satisfied => Exit::TimedOut,
        true => Exit::Success,
        false => Exit::Failed,
    }
}

/// Returns whether the task is ready; without a rule for it, whether it has not finished.
pub(super) fn is_ready(task: &BackgroundTask) -> bool {
    match task.readiness() {
        Readiness::Ready => true,
        Readiness::Pending | Readiness::NotReady => false,
        Readiness::Unspecified => !status::is_finished(task),
    }
}

fn found_nothing(response: &WaitResponse) -> bool {
    response.met.is_empty() && response.pending.is_empty()
}

/// A session without a live task is quiet; one that no task was ever in is probably misspelt.
async fn check_session(cx: &Context, session: &str) -> Result<(), Failure> {
    let filter = selection::filter(Some(session), &[]);
    let all = ListOptions::all().with_finished_foreground();
    let page = cx
        .client
        .list_page(all.matching(filter).page_size(1))
        .await?;
    match page.tasks.is_empty() {
        true => Err(Failure::NoSuchTask(format!(
            "no task, live or finished, is in session {session:?}"
        ))),
        false => {
            out::note(&match is_live(cx, session).await? {
                true => format!(
                    "session {session:?} has no live task to wait for: a call from inside a task waits for \
                     the descendants of that task only"
                ),
                false => format!("session {session:?} has no live task"),
            });
            Ok(())
        }
    }
}

/// Returns whether the session has a live task. The wait has found none: a task does not wait for itself and for those
/// above and beside it.
async fn is_live(cx: &Context, session: &str) -> Result<bool, Failure> {
    let filter = selection::filter(Some(session), &[]);
    let live = ListOptions::live().matching(filter).page_size(1);
    Ok(!cx.client.list_page(live).await?.tasks.is_empty())
}

/// Returns whether the task has left the foreground and its leader has not exited.
fn continues(task: &BackgroundTask) -> bool {
    !status::is_finished(task) && task.outcome.is_none()
}

fn is_completed(task: &BackgroundTask) -> bool {
    task.state() == TaskState::Completed
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{Outcome, SignalOutcome, UnknownOutcome, outcome::Result as Ended};

    use super::*;

    fn parse(args: &[&str]) -> Result<Wait, clap::Error> {
        crate::args::parse(args)
    }

    fn ended(state: TaskState, result: Ended) -> BackgroundTask {
        let outcome = Some(Outcome {
            result: Some(result),
        });
        BackgroundTask {
            state: state.into(),
            outcome,
            ..BackgroundTask::default()
        }
    }

    /// The resolved ids.
    fn distinct(mut ids: Vec<String>) -> Vec<String> {
        ids.dedup();
        ids
    }

    fn exit(args: &[&str], met: Vec<BackgroundTask>) -> u8 {
        let response = WaitResponse {
            satisfied: true,
            met,
            ..WaitResponse::default()
        };
        super::exit(&distinct(parse(args).unwrap().ids), &response).code()
    }

    #[test]
    fn for_one_task_the_exit_code_is_its_own() {
        let signal = Ended::Signal(SignalOutcome {
            number: 15,
            ..SignalOutcome::default()
        });
        assert_eq!(
            exit(&["a"], vec![ended(TaskState::Failed, Ended::ExitCode(7))]),
            7
        );
        assert_eq!(
            exit(
                &["a", "a"],
                vec![ended(TaskState::Failed, Ended::ExitCode(7))]
            ),
            7
        );
        assert_eq!(exit(&["a"], vec![ended(TaskState::Cancelled, signal)]), 143);
        let lost = ended(TaskState::Lost, Ended::Unknown(UnknownOutcome::default()));
        assert_eq!(exit(&["a"], vec![lost]), 1);
    }

    #[test]
    fn a_stopped_task_never_gives_0() {
        for state in [TaskState::Cancelled, TaskState::TimedOut] {
            assert_eq!(exit(&["a"], vec![ended(state, Ended::ExitCode(0))]), 1);
        }
    }

    #[test]
    fn for_several_tasks_the_exit_code_is_0_only_if_all_completed() {
        let good = ended(TaskState::Completed, Ended::ExitCode(0));
        let bad = ended(TaskState::Failed, Ended::ExitCode(7));
        assert_eq!(exit(&["a", "b"], vec![good.clone(), good.clone()]), 0);
        assert_eq!(exit(&["a", "b"], vec![good.clone(), bad.clone()]), 1);
        assert_eq!(exit(&["a", "b", "--any"], vec![good]), 0);
        assert_eq!(exit(&["--session", "s"], vec![bad]), 1);
        assert_eq!(exit(&["--session", "s"], vec![]), 0);
    }

    #[test]
    fn a_task_that_continues_in_the_background_is_no_failure() {
        let running = BackgroundTask {
            state: TaskState::Running.into(),
            ..BackgroundTask::default()
        };
        let bad = ended(TaskState::Failed, Ended::ExitCode(7));
        let leader_exited = ended(TaskState::Running, Ended::ExitCode(7));
        let args = ["a", "--until", "background"];
        assert_eq!(exit(&args, vec![running.clone()]), 0);
        assert_eq!(exit(&args, vec![bad.clone()]), 7);
        assert_eq!(exit(&args, vec![leader_exited]), 7);
        let args = ["a", "b", "--until", "background"];
        assert_eq!(exit(&args, vec![running.clone(), running.clone()]), 0);
        assert_eq!(exit(&args, vec![running, bad]), 1);
    }

    /// Y1
    #[test]
    fn a_wait_for_readiness_succeeds_if_all_tasks_are_ready() {
        let met = |readiness: Readiness, state: TaskState| BackgroundTask {
            readiness: readiness.into(),
            state: state.into(),
            ..BackgroundTask::default()
        };
        let code = |met: Vec<BackgroundTask>| {
            let response = WaitResponse {
                satisfied: true,
                met,
                ..WaitResponse::default()
            };
            exit_when_ready(&response).code()
        };
        let ready = met(Readiness::Ready, TaskState::Running);
        let not_ready = met(Readiness::NotReady, TaskState::Running);
        let without = met(Readiness::Unspecified, TaskState::Running);
        assert_eq!(code(vec![ready.clone(), without]), 0);
        assert_eq!(code(vec![ready.clone(), not_ready]), 1);
        let ended = met(Readiness::Unspecified, TaskState::Completed);
        assert_eq!(code(vec![ended]), 1);
        let was_ready = met(Readiness::Ready, TaskState::Failed);
        assert_eq!(code(vec![was_ready]), 0);
        assert_eq!(exit_when_ready(&WaitResponse::default()).code(), 124);
    }

    #[test]
    fn a_timeout_has_its_own_exit_code() {
        let response = WaitResponse::default();
        assert_eq!(super::exit(&["a".to_owned()], &response).code(), 124);
    }

    #[test]
    fn ids_or_a_session_are_required_and_not_both() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["a", "--session", "s"]).is_err());
        assert!(parse(&["--session", "s", "--any"]).is_err());
        assert!(parse(&["a", "--until", "finished"]).is_ok());
        assert!(parse(&["a", "--until", "background"]).is_ok());
        assert!(parse(&["a", "--until", "ready"]).is_ok());
        assert!(parse(&["a", "--until", "gone"]).is_err());
        assert!(parse(&["a", "--match", "x"]).is_ok());
        assert!(parse(&["a", "--match", ""]).is_err());
        assert!(parse(&["--session", "s", "--match", "x"]).is_err());
        assert!(parse(&["a", "--until", "finished", "--match", "x"]).is_err());
    }
}
