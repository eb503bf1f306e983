//! UpdateTask: changes the patterns of a live task.

use heeler_proto::v1;
use tonic::Code;

use crate::{
    service::{
        Service,
        transport::Call,
        wire::{check, pattern, refusal::Refusal, task},
    },
    supervisor::{PatternChange, UpdateOutcome},
    task::{MOST_PATTERNS, TaskId},
};

pub(super) async fn update_task(
    service: &Service,
    request: v1::UpdateTaskRequest,
    call: &Call,
) -> Result<v1::UpdateTaskResponse, Refusal> {
    let (id, change) = service.check_patterns(call, move || check(request)).await?;
    service.check_acts(&id).await?;
    let answer = service.supervisor.change_patterns(&id, change).await?;
    let answer = answer.ok_or_else(|| Refusal::task_not_found(id.as_str()))?;
    let changed = &answer.standing.task;
    match answer.outcome {
        UpdateOutcome::Updated => Ok(v1::UpdateTaskResponse {
            task: Some(task::show(changed)),
        }),
        UpdateOutcome::AlreadyFinished => Err(finished(&id, task::state_name(changed))),
        UpdateOutcome::NoOutput => Err(Refusal::field(
            "task_id",
            "names a HOSTED task, which has no output",
        )),
        UpdateOutcome::TooManyPatterns(patterns) => Err(Refusal::field(
            "set_patterns",
            format!("would give the task {patterns} patterns: {MOST_PATTERNS} are possible"),
        )),
    }
}

fn finished(id: &TaskId, state: &str) -> Refusal {
    let message = format!("task {id} is finished: only a live task can be changed");
    let reason = v1::ErrorReason::TaskFinished;
    Refusal::new(Code::FailedPrecondition, reason, message)
        .with("task_id", id)
        .with("state", state)
}

pub(super) fn check(request: v1::UpdateTaskRequest) -> Result<(TaskId, PatternChange), Refusal> {
    let id = check::task_id("task_id", &request.task_id)?;
    let set = pattern::read_all("set_patterns", request.set_patterns)?;
    if set.is_empty() && request.remove_patterns.is_empty() {
        return Err(Refusal::field(
            "set_patterns",
            "and remove_patterns are empty: nothing is to be changed",
        ));
    }
    for (at, name) in request.remove_patterns.iter().enumerate() {
        if set.iter().any(|pattern| pattern.name == *name) {
            let field = format!("remove_patterns[{at}]");
            return Err(Refusal::field(field, "is named in set_patterns, too"));
        }
    }
    let change = PatternChange {
        set,
        remove: request.remove_patterns,
    };
    Ok((id, change))
}
