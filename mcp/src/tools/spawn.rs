//! `heeler_spawn`: starts a background task, and waits for it to be ready if it has a ready condition.

use std::time::Duration;

use heeler_client::{
    Client, Wait,
    v1::{BackgroundTask, SpawnNotice},
};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::{Answer, Effect, LONGEST_CALL, Tool};
use crate::{
    connection::Call,
    input::{ReadyArgs, StartArgs},
    problem::Problem,
    progress::with_progress,
    view::{Excerpt, Limit, Part, TaskView},
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
    /// Its output, if it has ended or is not ready.
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
}

impl Tool for Spawn {
    const NAME: &'static str = "heeler_spawn";
    const TITLE: &'static str = "Start a background task";
    const DESCRIPTION: &'static str = "Starts a shell command as a background task and returns its id at \
once. Use it for anything that outlives this turn or takes more than a minute: dev servers, watchers, long \
builds and tests, subagents. The task survives this connection, can be watched, and heeler_cancel stops its \
whole process tree. For a server pass ready_port, ready_url, ready_command or ready_pattern: the answer then says \
whether it is ready. Never use `&`, nohup, setsid or disown. Use heeler_run instead for a command whose result you need \
now, and heeler_ensure for a server that should run once. Afterwards use heeler_wait to learn of the end; do \
not poll.";
    const EFFECT: Effect = Effect::Runs;
    type Input = SpawnArgs;
    type Output = Started;

    async fn call(input: SpawnArgs, call: &Call<'_>) -> Result<Started, Problem> {
        let spawn = input.ready.add_to(input.start.spawn(call)?)?;
        start(spawn, &input.ready, call).await
    }
}

/// Starts a task, and waits for it to be ready as long as was asked for.
pub(super) async fn start(
    spawn: heeler_client::Spawn,
    ready: &ReadyArgs,
    call: &Call<'_>,
) -> Result<Started, Problem> {
    let starting = started(&call.client, spawn, ready.wait());
    let (task, notices) = tokio::select! {
        started = with_progress(call, "waits for the task", starting) => started?,
        () = call.abandoned() => {
            return Err(Problem::Cancelled("; the task starts or goes on".to_owned()));
        }
    };
    let notices = notices.into_iter().map(|notice| notice.message).collect();
    let view = TaskView::of(&task);
    let is_bad = view.is_finished() || view.ready().is_some_and(|ready| ready != "ready");
    let output = match is_bad {
        true => {
            let part = Part::Since(0);
            let excerpt = Excerpt::read(&call.client, &task.id, part, Limit::SMALL).await?;
            call.connection.mark_read(&task.id, 0..excerpt.next);
            excerpt.text
        }
        false => String::new(),
    };
    Ok(Started {
        id: task.id,
        task: view,
        notices,
        output,
    })
}

/// The task once it runs and, as far as that was asked for, is ready, with the notices. Both steps share the
/// time of one call: a task that replaces another runs only when that one is gone.
async fn started(
    client: &Client,
    spawn: heeler_client::Spawn,
    ready_wait: Duration,
) -> Result<(BackgroundTask, Vec<SpawnNotice>), Problem> {
    let deadline = Instant::now() + LONGEST_CALL;
    let response = in_time(deadline, client.spawn_response(spawn)).await?;
    let task = response.task.unwrap_or_default();
    let wait = ready_wait.min(deadline.saturating_duration_since(Instant::now()));
    if wait.is_zero() {
        return Ok((task, response.notices));
    }
    let answer = client
        .wait(Wait::all([&task.id]).ready().timeout(wait))
        .await?;
    let waited = answer.met.into_iter().chain(answer.pending).next();
    Ok((waited.unwrap_or(task), response.notices))
}

/// Completes a Spawn, or gives up waiting for it. The daemon goes on with it then.
async fn in_time<T>(
    deadline: Instant,
    spawning: impl Future<Output = Result<T, heeler_client::Error>>,
) -> Result<T, Problem> {
    match timeout_at(deadline, spawning).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Problem::NotStarted),
    }
}

impl Answer for Started {
    fn text(&self) -> String {
        let mut text = self.task.to_string();
        for notice in &self.notices {
            text += &format!("\nNote: {notice}");
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
        assert_eq!(in_time(over, ready(Ok(1))).await.unwrap(), 1);
        let late = in_time(over, pending::<Result<u8, heeler_client::Error>>());
        let text = late.await.unwrap_err().text();
        assert!(text.contains("still being stopped"), "{text}");
        assert!(
            text.contains("Next: call heeler_ensure") && text.contains("without replace"),
            "{text}"
        );
    }
}
