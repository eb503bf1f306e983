//! `heeler_spawn`: starts a background task, and waits for it to be ready if it has a ready condition.

use std::time::Duration;

use heeler_client::{
    Wait,
    v1::{BackgroundTask, SpawnResponse},
};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::{Answer, Effect, Tool};
use crate::{
    connection::Call,
    input::{ReadyArgs, StartArgs},
    problem::Problem,
    progress::with_progress,
    time_limit::answered_of,
    view::{Cursor, Excerpt, Limit, Part, TaskView, bytes},
};

pub(crate) struct Spawn;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct SpawnArgs {
    #[serde(flatten)]
    start: StartArgs,
    #[serde(flatten)]
    ready: ReadyArgs,
}

/// A task that was started.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Started {
    /// The id, which every other tool takes.
    id: String,
    pub(super) task: TaskView,
    /// Differences between the request and the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    /// Its output, if it has ended or is not ready: if it is long, the beginning and the end.
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
    /// The number of bytes left out in the middle. Read them with heeler_output and omitted_cursor.
    #[serde(skip_serializing_if = "is_zero")]
    omitted_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted_cursor: Option<String>,
    /// The cursor after this output, for heeler_output.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for Spawn {
    const NAME: &'static str = "heeler_spawn";
    const TITLE: &'static str = "Start a background task";
    const DESCRIPTION: &'static str = "Starts a shell command as a background task and returns its id: at \
once, or with a ready condition when it is ready or wait_seconds are over. Use it for anything that outlives this turn or takes more than a minute: dev servers, watchers, long \
builds and tests, subagents. The task survives this connection, can be watched, and heeler_cancel stops its \
whole process tree. For a server pass ready_port, ready_url, ready_command or ready_pattern: the answer then says \
whether it is. Never use `&`, nohup, setsid or disown. Use heeler_run instead for a command whose result you need \
now, and heeler_ensure for a server that should run once. Afterwards use heeler_wait to learn of the end; do \
not poll.";
    const EFFECT: Effect = Effect::Runs;
    type Input = SpawnArgs;
    type Output = Started;

    async fn call(input: SpawnArgs, call: &Call<'_>) -> Result<Started, Problem> {
        let spawn = input.ready.add_to(input.start.spawn(call)?)?;
        start(spawn, &input.ready, Problem::NoAnswer, call).await
    }
}

/// Starts a task, and waits for it to be ready as long as was asked for. Both steps share the time of one call: a task
/// that replaces another runs only when that one is gone.
///
/// `late`: the error if that takes longer.
pub(super) async fn start(
    spawn: heeler_client::Spawn,
    ready: &ReadyArgs,
    late: Problem,
    call: &Call<'_>,
) -> Result<Started, Problem> {
    let starting = async {
        let spawning = call.client.spawn_response(spawn);
        let response = in_time(call.deadline(), spawning, late).await?;
        let id = response
            .task
            .as_ref()
            .map_or_else(String::new, |task| task.id.clone());
        answered_of(&id, call.begun, started(response, ready.wait(), call)).await
    };
    tokio::select! {
        started = with_progress(call, "waits for the task", starting) => started,
        () = call.abandoned() => {
            Err(Problem::Cancelled("; the task starts or goes on".to_owned()))
        }
    }
}

/// The task once it is ready, as far as that was asked for.
async fn started(
    response: SpawnResponse,
    ready_wait: Duration,
    call: &Call<'_>,
) -> Result<Started, Problem> {
    let mut task = response.task.unwrap_or_default();
    let wait = ready_wait.min(call.time_left());
    if !wait.is_zero() {
        let ready = Wait::all([&task.id]).ready().timeout(wait);
        let answer = call.client.wait(ready).await?;
        let waited = answer.met.into_iter().chain(answer.pending).next();
        task = waited.unwrap_or(task);
    }
    let notices = response.notices.into_iter().map(|notice| notice.message);
    let started = Started::of(&task, notices.collect());
    let is_bad = started.task.is_finished() || started.task.is_not_ready();
    if !is_bad {
        return Ok(started);
    }
    let excerpt = Excerpt::read(&call.client, &task.id, Part::Since(0), Limit::SMALL).await?;
    call.connection.mark_read(&task.id, 0..excerpt.next);
    Ok(started.with_output(excerpt))
}

/// Completes a Spawn, or gives up waiting for it. The daemon goes on with it then.
async fn in_time<T>(
    deadline: Instant,
    spawning: impl Future<Output = Result<T, heeler_client::Error>>,
    late: Problem,
) -> Result<T, Problem> {
    match timeout_at(deadline, spawning).await {
        Ok(answer) => answer.map_err(Problem::of_spawn),
        Err(_) => Err(late),
    }
}

impl Started {
    fn of(task: &BackgroundTask, notices: Vec<String>) -> Self {
        Self {
            id: task.id.clone(),
            task: TaskView::of(task),
            notices,
            output: String::new(),
            omitted_bytes: 0,
            omitted_cursor: None,
            next_cursor: None,
        }
    }

    fn with_output(self, excerpt: Excerpt) -> Self {
        let cursor = |offset| Cursor::new(&self.id, offset).to_string();
        Self {
            omitted_bytes: excerpt.omitted.map_or(0, |(_, length)| length),
            omitted_cursor: excerpt.omitted.map(|(offset, _)| cursor(offset)),
            next_cursor: Some(cursor(excerpt.next)),
            output: excerpt.text,
            ..self
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Answer for Started {
    fn text(&self) -> String {
        let mut text = self.task.to_string();
        for notice in &self.notices {
            text += &format!("\nNote: {notice}");
        }
        if let Some(cursor) = &self.omitted_cursor {
            text += &format!(
                "\n{} omitted; read them with cursor {cursor}",
                bytes(self.omitted_bytes)
            );
        }
        if !self.output.is_empty() {
            text += &format!("\n--- output\n{}", self.output.trim_end());
        }
        let next = match (self.task.is_finished(), self.task.ready()) {
            (true, _) => "it has ended already; see its output",
            (false, Some("pending")) => {
                "not ready yet: call heeler_wait with until=ready, or heeler_output to see why"
            }
            (false, Some("not_ready")) => {
                "not ready: see its output, then fix it or heeler_cancel it"
            }
            (false, _) => {
                "heeler_wait for its end, heeler_output for its output, heeler_cancel to stop it"
            }
        };
        text + "\nNext: " + next
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    /// M2
    #[tokio::test]
    async fn a_spawn_that_takes_too_long_says_how_to_go_on() {
        let over = Instant::now();
        let late = || Problem::NotStarted;
        assert_eq!(in_time(over, ready(Ok(1)), late()).await.unwrap(), 1);
        let never = pending::<Result<u8, heeler_client::Error>>();
        let text = in_time(over, never, late()).await.unwrap_err().text();
        assert!(text.contains("still being stopped"), "{text}");
        assert!(
            text.contains("Next: call heeler_ensure") && text.contains("without replace"),
            "{text}"
        );
    }
}
