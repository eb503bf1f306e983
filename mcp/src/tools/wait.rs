//! `heeler_wait`: waits until tasks are finished, ready, or have written a line.

use std::time::Duration;

use heeler_client::{
    Client, Filter, ListOptions,
    v1::{BackgroundTask, InspectRequest, Readiness, TaskState, WaitResponse},
};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Answer, Effect, MOST_ROWS, Tool};
use crate::{
    connection::{Call, MOST_IDS, is_not_found},
    problem::Problem,
    progress::with_progress,
    view::{self, TaskView, cut, is_finished},
};

/// Seconds to wait unless a call says otherwise.
const WAIT: u32 = 45;
/// Tasks of which the answer has a summary.
const MOST_SUMMARIES: usize = 5;

pub(crate) struct Wait;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct WaitArgs {
    /// The ids, or names, of the tasks. Default: the tasks of this session.
    #[serde(default)]
    ids: Vec<String>,
    /// `all` of the tasks (default) or `any`. Without ids, `any` is one of those that run now.
    #[serde(default)]
    mode: Option<Mode>,
    /// `finished` (default), `ready`, or `match`: a line matches pattern.
    #[serde(default)]
    until: Option<Until>,
    /// With until=match: the regular expression (Rust syntax) that a line must match.
    #[serde(default)]
    pattern: Option<String>,
    /// Answer after this many seconds at the latest. Default: 45.
    #[serde(default)]
    #[schemars(range(min = 0, max = 50))]
    timeout_seconds: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(rename_all = "snake_case")]
enum Mode {
    All,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(rename_all = "snake_case")]
enum Until {
    Finished,
    Ready,
    Match,
}

/// The tasks that were waited for.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Waited {
    /// The ids of the tasks that meet the condition.
    ids: Vec<String>,
    /// False: the time was over first, or the condition cannot hold any more.
    satisfied: bool,
    /// The tasks that meet the condition.
    met: Vec<TaskView>,
    /// The tasks that do not.
    pending: Vec<TaskView>,
    /// The number of tasks that are not in this answer, which has 50 of met and 50 of pending.
    #[serde(skip_serializing_if = "is_zero")]
    omitted_tasks: usize,
    /// With until=match: the first line that matches, of each task in met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<String>,
    /// The ends in words, of the first five tasks in met that have ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    summaries: Vec<String>,
    #[serde(skip)]
    until: Until,
    /// True if there is nothing left to wait for.
    #[serde(skip)]
    is_final: bool,
}

impl Tool for Wait {
    const NAME: &'static str = "heeler_wait";
    const TITLE: &'static str = "Wait for tasks";
    const DESCRIPTION: &'static str = "Waits until tasks are finished (exit code and summary are in the answer), \
until a server is ready, or until a line of output matches. Without ids it waits for the tasks of this session. \
Use it instead of sleep or repeated calls: it returns the moment the condition holds, and after at most 50 s. If it \
says still running, do other work or call it again with the same arguments: tasks that end in the meantime are in \
the next answer. Do not use it on a server without until=ready or until=match: a server does not finish.";
    const EFFECT: Effect = Effect::Reads;
    type Input = WaitArgs;
    type Output = Waited;

    async fn call(input: WaitArgs, call: &Call<'_>) -> Result<Waited, Problem> {
        let waiting = with_progress(call, "waits for the tasks", input.answer(call));
        let mut answer = tokio::select! {
            answer = waiting => answer?,
            () = call.abandoned() => return Err(Problem::Cancelled("; the tasks go on".to_owned())),
        };
        let until = input.until();
        if until == Until::Ready {
            keep_ready(&mut answer, input.mode);
        }
        Waited::of(&call.client, answer, until).await
    }
}

impl WaitArgs {
    fn until(&self) -> Until {
        self.until.unwrap_or(match self.pattern {
            Some(_) => Until::Match,
            None => Until::Finished,
        })
    }

    async fn answer(&self, call: &Call<'_>) -> Result<WaitResponse, Problem> {
        let timeout = Duration::from_secs(self.timeout_seconds.unwrap_or(WAIT).into());
        let deadline = Instant::now() + timeout;
        if !self.ids.is_empty() {
            let ids = call.tasks(&self.ids).await?.into_iter().map(|task| task.id);
            let wait = match self.mode {
                Some(Mode::Any) => heeler_client::Wait::any(ids),
                Some(Mode::All) | None => heeler_client::Wait::all(ids),
            };
            return self.ask(wait, deadline, call).await;
        }
        let ended = self.ended_since(call).await?;
        let wait = match self.mode {
            Some(Mode::Any) => self.any(&ended, call).await?,
            Some(Mode::All) | None => heeler_client::Wait::session(call.session()),
        };
        let mut answer = self.ask(wait, deadline, call).await?;
        let is_new = |task: &BackgroundTask| answer.met.iter().all(|met| met.id != task.id);
        let ended: Vec<_> = ended.into_iter().filter(is_new).collect();
        answer.met.extend(ended);
        let pending = answer.pending.iter().map(|task| task.id.clone());
        call.connection.await_end_of(pending);
        Ok(answer)
    }

    /// A wait for any of the tasks that the session has now, or has had since the last wait; one without tasks is over
    /// at once.
    async fn any(
        &self,
        ended: &[BackgroundTask],
        call: &Call<'_>,
    ) -> Result<heeler_client::Wait, Problem> {
        let own = Filter::all().session(call.session());
        let live = ListOptions::live().matching(own).page_size(MOST_IDS);
        let live = call.client.list_page(live).await?.tasks;
        let mut tasks: Vec<_> = live.into_iter().map(|task| task.id).collect();
        if self.until() == Until::Finished {
            let ended = ended.iter().map(|task| task.id.clone());
            tasks = ended.chain(tasks).take(MOST_IDS.into()).collect();
        }
        Ok(match tasks.is_empty() {
            true => heeler_client::Wait::session(call.session()),
            false => heeler_client::Wait::any(tasks),
        })
    }

    /// The tasks that the last wait without ids has left, and that have ended since. Without them an end between two
    /// waits would be in neither.
    async fn ended_since(&self, call: &Call<'_>) -> Result<Vec<BackgroundTask>, Problem> {
        let awaited = call.connection.awaited();
        if awaited.is_empty() {
            return Ok(Vec::new());
        }
        let awaited = ListOptions::all().matching(Filter::all().tasks(awaited));
        let awaited = call.client.list_page(awaited.page_size(MOST_IDS)).await?;
        let counts = |task: &BackgroundTask| match self.until() {
            Until::Finished | Until::Match => is_finished(task),
            // One that was stopped on request, such as to be replaced, is no server that has failed.
            Until::Ready => is_finished(task) && task.state() != TaskState::Cancelled,
        };
        Ok(awaited.tasks.into_iter().filter(counts).collect())
    }

    /// Makes the call, with the condition.
    async fn ask(
        &self,
        wait: heeler_client::Wait,
        deadline: Instant,
        call: &Call<'_>,
    ) -> Result<WaitResponse, Problem> {
        let wait = match (self.until(), &self.pattern) {
            (Until::Finished, None) => wait,
            (Until::Ready, None) => wait.ready(),
            (Until::Match, Some(_)) if self.ids.is_empty() => {
                return Err(Problem::argument("ids", "is required with until=match"));
            }
            (Until::Match, Some(pattern)) => wait.matching(pattern),
            (Until::Match, None) => {
                return Err(Problem::argument("pattern", "is required with until=match"));
            }
            (Until::Finished | Until::Ready, Some(_)) => {
                return Err(Problem::argument("pattern", "needs until=match"));
            }
        };
        let deadline = deadline.min(call.deadline());
        let left = deadline.saturating_duration_since(Instant::now());
        Ok(call.client.wait(wait.timeout(left)).await?)
    }
}

/// Keeps the tasks that are ready. The daemon counts those as well of which it is known that they are not.
fn keep_ready(answer: &mut WaitResponse, mode: Option<Mode>) {
    let has_condition = |task: &BackgroundTask| task.readiness() != Readiness::Unspecified;
    let is_ready =
        |task: &BackgroundTask| task.readiness() == Readiness::Ready && !is_finished(task);
    let met = std::mem::take(&mut answer.met).into_iter();
    let (met, not_ready): (Vec<_>, Vec<_>) =
        met.partition(|task| is_ready(task) || !has_condition(task));
    answer.satisfied &= match mode {
        Some(Mode::Any) => !met.is_empty() || not_ready.is_empty(),
        Some(Mode::All) | None => not_ready.is_empty(),
    };
    answer.met = met;
    answer.pending.splice(0..0, not_ready);
}

impl Waited {
    async fn of(client: &Client, answer: WaitResponse, until: Until) -> Result<Self, Problem> {
        let ended = answer
            .met
            .iter()
            .chain(&answer.pending)
            .filter(|task| is_finished(task));
        let mut summaries = Vec::new();
        for task in ended.take(MOST_SUMMARIES) {
            summaries.extend(summary(client, task).await?);
        }
        let line = |found: &heeler_client::v1::TaskMatch| {
            let text = found.line.as_ref().and_then(|line| line.text.as_deref());
            format!("{}: {}", found.task_id, cut(text.unwrap_or_default(), 500))
        };
        let is_decided = |task: &BackgroundTask| match until {
            Until::Finished | Until::Match => is_finished(task),
            Until::Ready => is_finished(task) || task.readiness() == Readiness::NotReady,
        };
        let beyond = |tasks: &[BackgroundTask]| tasks.len().saturating_sub(MOST_ROWS);
        let shown = |tasks: &[BackgroundTask]| -> Vec<TaskView> {
            tasks.iter().take(MOST_ROWS).map(TaskView::of).collect()
        };
        let met = shown(&answer.met);
        Ok(Self {
            ids: met.iter().map(|task| task.id.clone()).collect(),
            satisfied: answer.satisfied,
            met,
            pending: shown(&answer.pending),
            omitted_tasks: beyond(&answer.met) + beyond(&answer.pending),
            lines: answer.matches.iter().take(MOST_ROWS).map(line).collect(),
            summaries,
            until,
            is_final: answer.pending.iter().all(is_decided),
        })
    }

    /// A task that does not meet the condition.
    fn pending_line(&self, task: &TaskView) -> String {
        match (self.until, task.is_finished()) {
            (Until::Finished | Until::Match, true) => format!("ended without a match: {task}"),
            (Until::Ready, true) => format!("ended: {task}"),
            (Until::Ready, false) if task.ready() == Some("not_ready") => {
                format!("not ready in its time: {task}")
            }
            (Until::Finished | Until::Match | Until::Ready, false) => {
                format!("still {}: {task}", task.state)
            }
        }
    }

    fn next(&self) -> &'static str {
        match (self.satisfied, self.is_final, self.until) {
            (true, _, _) => "Done.",
            (false, true, Until::Ready) => "Not ready: see the output of these tasks.",
            (false, true, Until::Finished | Until::Match) => {
                "Not met, and it cannot be any more: see the output of these tasks."
            }
            (false, false, _) => {
                "Still running. Next: do other work, or call heeler_wait again with the same arguments."
            }
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The end of a task in words; `None` if the task was removed meanwhile.
async fn summary(client: &Client, task: &BackgroundTask) -> Result<Option<String>, Problem> {
    let request = InspectRequest {
        task_id: task.id.clone(),
        output_tail_bytes: Some(0),
        block_count: Some(0),
        ..InspectRequest::default()
    };
    let summary = match client.inspect(request).await {
        Err(error) if error.refusal().is_some_and(is_not_found) => return Ok(None),
        answer => answer?.summary,
    };
    let summary = view::summary(&summary, &task.id);
    Ok(Some(format!("{}: {summary}", task.id)))
}

impl Answer for Waited {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.met.iter().map(TaskView::to_string).collect();
        lines.extend(self.lines.iter().map(|line| format!("matched {line}")));
        lines.extend(self.pending.iter().map(|task| self.pending_line(task)));
        if self.omitted_tasks > 0 {
            lines.push(format!("and {} more", self.omitted_tasks));
        }
        if lines.is_empty() {
            lines.push("no task of this session is running".to_owned());
        }
        lines.push(self.next().to_owned());
        lines.extend(
            self.summaries
                .iter()
                .map(|summary| format!("--- {summary}")),
        );
        lines.join("\n")
    }
}
