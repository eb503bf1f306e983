//! The tasks extension of the protocol, `io.modelcontextprotocol/tasks`: a `heeler_run` of a client that
//! declares it becomes an MCP task.
//!
//! The MCP task is a view of Heeler's own: its id is `ID.UID`, from which any later server finds the task, and
//! every answer is made from Inspect. Nothing is kept here, so it survives a restart of the daemon and of this
//! server. The UUID makes the id hard to guess, as the extension demands.

use heeler_client::{
    CancelOptions, Spawn,
    v1::{BackgroundTask, TaskSpec, TaskState, task_spec::Command},
};
use rmcp::{
    RoleServer,
    model::{
        CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, ProtocolVersion, Task,
        TaskPayload, TaskStatus,
    },
    service::RequestContext,
};

use crate::{
    connection::{Call, is_not_found},
    input::{longest, parse},
    problem::Problem,
    tools::{self, Finished, RunArgs},
    view::{Limit, TaskView, proof},
};

/// The label with the `max_bytes` of the call, for the answer to `tasks/get`.
const MAX_BYTES_LABEL: &str = "heeler.mcp.max_bytes";
/// The label with the size of the command as it was passed, if the daemon may have removed an `&` at its end.
const COMMAND_BYTES_LABEL: &str = "heeler.mcp.command_bytes";

/// True if the answer to this request may be an MCP task. Clients may declare the extension in the older
/// lifecycle as well, whose results cannot say that they are tasks.
pub(crate) fn is_negotiated(request: &RequestContext<RoleServer>) -> bool {
    let version = request.protocol_version();
    let capabilities = request.client_capabilities();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
        && capabilities.is_some_and(|capabilities| capabilities.supports_tasks())
}

/// Starts the command of a `heeler_run` in the background: the client polls instead of waiting.
pub(crate) async fn create(
    arguments: JsonObject,
    call: &Call<'_>,
) -> Result<CreateTaskResult, Problem> {
    let longest = longest(&arguments);
    let input = parse::<RunArgs>(arguments)?;
    let spawn = labelled(input.start.spawn(call)?, &input);
    let response = call.client.spawn_response(spawn).await;
    let task = response
        .map_err(|error| Problem::of_spawn(error).with_longest(longest))?
        .task;
    Ok(CreateTaskResult::new(mcp_task(&task.unwrap_or_default())))
}

/// Adds what a later server needs for the result, besides the task.
fn labelled(mut spawn: Spawn, input: &RunArgs) -> Spawn {
    if let Some(max_bytes) = input.max_bytes {
        spawn = spawn.label(MAX_BYTES_LABEL, max_bytes.to_string());
    }
    let command = input.start.command();
    match command.contains('&') {
        true => spawn.label(COMMAND_BYTES_LABEL, command.len().to_string()),
        false => spawn,
    }
}

/// The limit of the result.
fn limit(spec: &TaskSpec) -> Limit {
    let label = spec.labels.get(MAX_BYTES_LABEL);
    let asked = label.and_then(|bytes| bytes.parse().ok());
    Limit::of(asked.map(|bytes: u32| bytes.clamp(1024, 65_536)))
}

/// The notices of the start.
fn notices(spec: &TaskSpec) -> Vec<String> {
    let label = spec.labels.get(COMMAND_BYTES_LABEL);
    let passed = label.and_then(|bytes| bytes.parse().ok());
    match (&spec.command, passed) {
        (Some(Command::Shell(shell)), Some(passed)) if shell.script.len() < passed => {
            vec!["the trailing & was removed: the script runs as one background task".to_owned()]
        }
        (_, _) => Vec::new(),
    }
}

/// Answers `tasks/get`.
pub(crate) async fn get(id: &str, call: &Call<'_>) -> Result<GetTaskResult, Problem> {
    let task = find(id, call).await?;
    let seed = mcp_task(&task);
    let payload = match task.state() {
        TaskState::Unspecified
        | TaskState::Queued
        | TaskState::Starting
        | TaskState::Running
        | TaskState::Stopping => TaskPayload::Working,
        // A run that went wrong is completed as well, and its result is an error; `failed` would mean that
        // the call itself could not be made.
        TaskState::Completed | TaskState::Failed | TaskState::TimedOut | TaskState::Lost => {
            let spec = task.spec.clone().unwrap_or_default();
            let finished = Finished::read(&call.client, task, limit(&spec)).await?;
            let finished = finished.with_notices(notices(&spec));
            let result = serde_json::to_value(tools::result(&finished)).unwrap_or_default();
            TaskPayload::Completed {
                result: result.as_object().cloned().unwrap_or_default(),
            }
        }
        TaskState::Cancelled => TaskPayload::Cancelled,
    };
    Ok(GetTaskResult::new(DetailedTask::new(seed, payload)))
}

/// Answers `tasks/cancel`: the intent is durable, the end follows.
pub(crate) async fn cancel(id: &str, call: &Call<'_>) -> Result<(), Problem> {
    let task = find(id, call).await?;
    let options = CancelOptions::graceful()
        .reason("MCP tasks/cancel")
        .actor(call.actor());
    let options = options.no_wait().cascade();
    call.client.task(task.id).cancel(options).await?;
    Ok(())
}

/// The task with this id. Its session does not matter: the id can be known only from its start.
pub(crate) async fn find(id: &str, call: &Call<'_>) -> Result<BackgroundTask, Problem> {
    let unknown = || Problem::NoTask {
        word: id.chars().take(100).collect(),
    };
    let (id, uid) = id.split_once('.').ok_or_else(unknown)?;
    match call.client.task(id).get().await {
        Ok(task) if task.uid == uid => Ok(task),
        Ok(_) => Err(unknown()),
        Err(error) if error.refusal().is_some_and(is_not_found) => Err(unknown()),
        Err(error) => Err(error.into()),
    }
}

/// A task in the terms of the extension, as it is created. An answer to `tasks/get` has the status of its
/// payload instead.
fn mcp_task(task: &BackgroundTask) -> Task {
    let created = task.create_time.unwrap_or_default();
    let stopped = task.stop.as_ref().and_then(|stop| stop.request_time);
    let updated = task
        .end_time
        .or(stopped)
        .or(task.start_time)
        .unwrap_or(created);
    let view = TaskView::of(task);
    let message = match proof(task) {
        Some(proof) => format!("{view} — {proof}"),
        None => view.to_string(),
    };
    let id = format!("{}.{}", task.id, task.uid);
    Task::new(
        id,
        TaskStatus::Working,
        created.to_string(),
        updated.to_string(),
    )
    .with_status_message(message)
    .with_poll_interval_ms(poll_interval(view.seconds()))
}

/// Long tasks are polled less often.
fn poll_interval(seconds: f64) -> u64 {
    match seconds {
        young if young < 15.0 => 1_000,
        young if young < 120.0 => 5_000,
        _ => 15_000,
    }
}
