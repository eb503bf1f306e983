//! `heeler_wait`: waits until tasks are finished, ready, or have written a line.

use std::time::Duration;

use heeler_client::{
    Client, Filter, ListOptions,
    v1::{BackgroundTask, InspectRequest, WaitResponse},
};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Effect, MOST_ROWS, Tool};
use crate::{
    connection::Call,
    problem::Problem,
    progress::with_progress,
    view::{self, TaskView, cut, is_finished},
};

/// Seconds to wait unless a call says otherwise.
const WAIT: u32 = 45;
/// Tasks of which the answer has a summary.
const MOST_SUMMARIES: usize = 5;
/// The most ids that the daemon accepts in one wait.
const MOST_IDS: u16 = 1000;

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
    /// False: the time was over first. Call again with the same arguments.
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
says still running, do other work or call it again with the same arguments; the tasks are not affected. Do not use \
it on a server without until=ready or until=match: a server does not finish.";
    const EFFECT: Effect = Effect::Reads;
    type Input = WaitArgs;
    type Output = Waited;

    async fn call(input: WaitArgs, call: &Call<'_>) -> Result<Waited, Problem> {
        let timeout = Duration::from_secs(input.timeout_seconds.unwrap_or(WAIT).into());
        let wait = input.request(call).await?.timeout(timeout);
        let waiting = with_progress(call, "waits for the tasks", call.client.wait(wait));
        let answer = tokio::select! {
            answer = waiting => answer?,
            () = call.abandoned() => return Err(Problem::Cancelled("; the tasks go on".to_owned())),
        };
        Waited::of(&call.client, answer).await
    }
}

impl WaitArgs {
    async fn request(&self, call: &Call<'_>) -> Result<heeler_client::Wait, Problem> {
        let until = self.until.unwrap_or(match self.pattern {
            Some(_) => Until::Match,
            None => Until::Finished,
        });
        let ids = call.tasks(&self.ids).await?.into_iter().map(|task| task.id);
        let wait = match (self.ids.is_empty(), self.mode) {
            (true, Some(Mode::Any)) => any_live(call).await?,
            (true, Some(Mode::All) | None) => heeler_client::Wait::session(call.session()),
            (false, Some(Mode::Any)) => heeler_client::Wait::any(ids),
            (false, Some(Mode::All) | None) => heeler_client::Wait::all(ids),
        };
        match (until, &self.pattern) {
            (Until::Finished, None) => Ok(wait),
            (Until::Ready, None) => Ok(wait.ready()),
            (Until::Match, Some(_)) if self.ids.is_empty() => {
                Err(Problem::argument("ids", "is required with until=match"))
            }
            (Until::Match, Some(pattern)) => Ok(wait.matching(pattern)),
            (Until::Match, None) => {
                Err(Problem::argument("pattern", "is required with until=match"))
            }
            (Until::Finished | Until::Ready, Some(_)) => {
                Err(Problem::argument("pattern", "needs until=match"))
            }
        }
    }
}

/// A wait for any of the tasks that the session has now; one without tasks is over at once.
async fn any_live(call: &Call<'_>) -> Result<heeler_client::Wait, Problem> {
    let own = Filter::all().session(call.session());
    let live = ListOptions::live().matching(own).page_size(MOST_IDS);
    let tasks = call.client.list_page(live).await?.tasks;
    Ok(match tasks.is_empty() {
        true => heeler_client::Wait::session(call.session()),
        false => heeler_client::Wait::any(tasks.into_iter().map(|task| task.id)),
    })
}

impl Waited {
    async fn of(client: &Client, answer: WaitResponse) -> Result<Self, Problem> {
        let ended = answer
            .met
            .iter()
            .chain(&answer.pending)
            .filter(|task| is_finished(task));
        let mut summaries = Vec::new();
        for task in ended.take(MOST_SUMMARIES) {
            summaries.push(summary(client, task).await?);
        }
        let line = |found: &heeler_client::v1::TaskMatch| {
            let text = found.line.as_ref().and_then(|line| line.text.as_deref());
            format!("{}: {}", found.task_id, cut(text.unwrap_or_default(), 500))
        };
        let is_over = answer.pending.iter().all(is_finished);
        let beyond = |tasks: &[BackgroundTask]| tasks.len().saturating_sub(MOST_ROWS);
        Ok(Self {
            ids: answer
                .met
                .iter()
                .take(MOST_ROWS)
                .map(|task| task.id.clone())
                .collect(),
            satisfied: answer.satisfied,
            met: answer
                .met
                .iter()
                .take(MOST_ROWS)
                .map(TaskView::of)
                .collect(),
            pending: answer
                .pending
                .iter()
                .take(MOST_ROWS)
                .map(TaskView::of)
                .collect(),
            omitted_tasks: beyond(&answer.met) + beyond(&answer.pending),
            lines: answer.matches.iter().take(MOST_ROWS).map(line).collect(),
            summaries,
            is_final: is_over,
        })
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The end of a task in words, without the output if it was shown.
async fn summary(client: &Client, task: &BackgroundTask) -> Result<String, Problem> {
    let request = InspectRequest {
        task_id: task.id.clone(),
        output_tail_bytes: Some(0),
        block_count: Some(0),
        ..InspectRequest::default()
    };
    let summary = client.inspect(request).await?.summary;
    Ok(format!(
        "{}: {}",
        task.id,
        view::summary(&summary, &task.id)
    ))
}

impl Answer for Waited {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.met.iter().map(TaskView::to_string).collect();
        lines.extend(self.lines.iter().map(|line| format!("matched {line}")));
        lines.extend(self.pending.iter().map(|task| match task.is_finished() {
            true => format!("ended without a match: {task}"),
            false => format!("still {}: {task}", task.state),
        }));
        if self.omitted_tasks > 0 {
            lines.push(format!("and {} more", self.omitted_tasks));
        }
        if lines.is_empty() {
            lines.push("no task of this session is running".to_owned());
        }
        lines.push(match (self.satisfied, self.is_final) {
            (true, _) => "Done.".to_owned(),
            (false, true) => "Not met, and it cannot be any more: see the output of these tasks.".to_owned(),
            (false, false) => {
                "Still running. Next: do other work, or call heeler_wait again with the same arguments.".to_owned()
            }
        });
        lines.extend(
            self.summaries
                .iter()
                .map(|summary| format!("--- {summary}")),
        );
        lines.join("\n")
    }
}
