//! `heeler_run`: runs a command in the foreground, and moves it to the background if it takes longer.

use std::time::Duration;

use heeler_client::{
    AttachEnded, CancelOptions, DetachOptions,
    v1::{AttachEndReason, BackgroundTask, DisconnectAction, TaskState},
};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{Answer, Effect, Tool};
use crate::{
    connection::{Call, is_not_found},
    input::StartArgs,
    problem::Problem,
    progress::with_progress,
    time_limit::answered_of,
    view::{Cursor, Excerpt, Kept, Limit, Part, TaskView, bytes},
};

/// Time in the foreground unless a call says otherwise.
const FOREGROUND: u32 = 30;
/// Time for the daemon to move a task to the background by itself before it is asked to.
const SLACK: Duration = Duration::from_secs(2);

pub(crate) struct Run;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct RunArgs {
    #[serde(flatten)]
    pub(crate) start: StartArgs,
    /// Move the command to the background if it takes longer than this many seconds. Default: 30.
    #[serde(default)]
    #[schemars(range(min = 1, max = 48))]
    background_after_seconds: Option<u32>,
    /// If the client cancels this call or goes away: `cancel` stops the command (default), `detach` lets it go
    /// on in the background.
    #[serde(default)]
    on_disconnect: Option<OnDisconnect>,
    /// The most output to return, in bytes. Default: 16384.
    #[serde(default)]
    #[schemars(range(min = 1024, max = 65536))]
    pub(crate) max_bytes: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(rename_all = "snake_case")]
enum OnDisconnect {
    Cancel,
    Detach,
}

/// The result of a command, or of its first seconds.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Finished {
    /// The id, which every other tool takes.
    id: String,
    task: TaskView,
    /// True if the command still runs, or waits in its queue, in the background.
    still_running: bool,
    /// Its output so far: if it is long, the beginning and the end.
    output: String,
    /// The number of bytes left out in the middle. Read them with heeler_output and omitted_cursor.
    omitted_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted_cursor: Option<String>,
    /// The cursor after this output, for heeler_output.
    next_cursor: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    #[serde(skip)]
    has_failed: bool,
}

impl Tool for Run {
    const NAME: &'static str = "heeler_run";
    const TITLE: &'static str = "Run a command";
    const DESCRIPTION: &'static str = "Runs a shell command and returns its exit code and output. Use it for \
commands whose result you need before you go on: tests, builds, scripts. If the command takes longer than \
background_after_seconds (default 30) it goes on in the background, nothing is lost, and the answer says \
still_running with the id: then use heeler_wait, not a second run. Output is bounded to its beginning and end; \
heeler_output reads the rest. It cannot answer prompts: pass flags such as --yes. Do not use it for servers and \
watchers, which never end: use heeler_spawn or heeler_ensure. Never use `&`.";
    const EFFECT: Effect = Effect::Runs;
    type Input = RunArgs;
    type Output = Finished;

    async fn call(input: RunArgs, call: &Call<'_>) -> Result<Finished, Problem> {
        let foreground = seconds(input.background_after_seconds.unwrap_or(FOREGROUND));
        let on_disconnect = input.on_disconnect.unwrap_or(OnDisconnect::Cancel);
        let spawn = input.start.spawn(call)?.foreground_timeout(foreground);
        let spawn = spawn.on_disconnect(match on_disconnect {
            OnDisconnect::Cancel => DisconnectAction::Cancel,
            OnDisconnect::Detach => DisconnectAction::Detach,
        });
        let response = call.client.spawn_response(spawn).await;
        let response = response.map_err(Problem::of_spawn)?;
        let id = response.task.unwrap_or_default().id;
        let limit = Limit::of(input.max_bytes);
        let finished = async {
            let mut kept = Kept::within(limit);
            let attached = attached(call, &id, foreground, &mut kept);
            let ended = tokio::select! {
                ended = with_progress(call, "the command runs", attached) => ended?,
                () = call.abandoned() => return Err(leave(call, &id, on_disconnect).await),
            };
            match Finished::read(&call.client, ended.task.clone(), limit).await {
                Err(Problem::Daemon(error)) if error.refusal().is_some_and(is_not_found) => {
                    Ok(Finished::of(ended.task, kept.excerpt()))
                }
                read => read,
            }
        };
        let finished = answered_of(&id, call.begun, finished).await?;
        let notices = response.notices.into_iter().map(|notice| notice.message);
        let finished = finished.with_notices(notices.collect());
        call.connection
            .mark_read(&finished.id, 0..finished.read_up_to());
        Ok(finished)
    }
}

/// Attaches until the task ends or is in the background. A task that waits in a queue, whose time in the
/// foreground has not begun, is moved to the background as well.
async fn attached(
    call: &Call<'_>,
    id: &str,
    foreground: Duration,
    kept: &mut Kept,
) -> Result<AttachEnded, Problem> {
    let task = call.client.task(id);
    let mut attach = task.attach_with(heeler_client::AttachOptions::default().foreground_only());
    let longest = (foreground + SLACK).min(call.time_left());
    match timeout(longest, attach.ended(|chunk| kept.add(&chunk))).await {
        Ok(ended) => Ok(ended?),
        Err(_) => {
            let reason = "the call took too long";
            let detached = task.detach(DetachOptions::new().reason(reason)).await?;
            Ok(AttachEnded {
                task: detached.task.unwrap_or_default(),
                reason: AttachEndReason::Detached,
            })
        }
    }
}

/// Applies the policy of a call whose client is gone. Without this the daemon would do so after the
/// reattach window.
async fn leave(call: &Call<'_>, id: &str, policy: OnDisconnect) -> Problem {
    let reason = "the MCP client cancelled the call or went away";
    let task = call.client.task(id);
    let left = match policy {
        OnDisconnect::Cancel => {
            let options = CancelOptions::graceful()
                .reason(reason)
                .actor(call.actor())
                .no_wait();
            task.cancel(options)
                .await
                .map(|_| format!("; {id} is being stopped"))
        }
        OnDisconnect::Detach => {
            let options = DetachOptions::new().reason(reason).actor(call.actor());
            task.detach(options)
                .await
                .map(|_| format!("; {id} goes on in the background"))
        }
    };
    left.map_or_else(Problem::from, Problem::Cancelled)
}

impl Finished {
    /// Reads the output of a task, from its beginning.
    pub(crate) async fn read(
        client: &heeler_client::Client,
        task: BackgroundTask,
        limit: Limit,
    ) -> Result<Self, Problem> {
        let excerpt = Excerpt::read(client, &task.id, Part::Since(0), limit).await?;
        Ok(Self::of(task, excerpt))
    }

    fn of(task: BackgroundTask, excerpt: Excerpt) -> Self {
        let view = TaskView::of(&task);
        let (omitted_cursor, omitted_bytes) = match excerpt.omitted {
            Some((offset, length)) => (Some(Cursor::new(&task.id, offset).to_string()), length),
            None => (None, 0),
        };
        Self {
            still_running: !view.is_finished(),
            has_failed: view.is_finished() && task.state() != TaskState::Completed,
            next_cursor: Cursor::new(&task.id, excerpt.next).to_string(),
            id: task.id,
            task: view,
            output: excerpt.text,
            omitted_bytes,
            omitted_cursor,
            notices: Vec::new(),
        }
    }

    pub(crate) fn with_notices(self, notices: Vec<String>) -> Self {
        Self { notices, ..self }
    }

    fn read_up_to(&self) -> u64 {
        Cursor::offset_in(&self.next_cursor, &self.id).unwrap_or_default()
    }
}

impl Answer for Finished {
    fn text(&self) -> String {
        let mut text = self.task.to_string();
        for notice in &self.notices {
            text += &format!("\nNote: {notice}");
        }
        if self.still_running {
            text += match (self.task.exit_code, &*self.task.state) {
                (Some(_), _) => {
                    "\nThe command has exited, and processes that it left run on in the background. "
                }
                (None, "queued") => "\nNot started yet: it waits for its turn, in the background. ",
                (None, _) => "\nStill running, in the background. ",
            };
            text +=
                "Next: heeler_wait for its end, heeler_output for more, heeler_cancel to stop it";
        }
        if let Some(cursor) = &self.omitted_cursor {
            text += &format!(
                "\n{} omitted; read them with cursor {cursor}",
                bytes(self.omitted_bytes)
            );
        }
        match self.output.trim_end() {
            "" => text + "\n(no output)",
            output => text + "\n--- output\n" + output,
        }
    }

    fn is_failure(&self) -> bool {
        self.has_failed
    }
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(count.into())
}
