//! The present status of a task or a session, in a word or two.

use heeler_client::v1::{
    BackgroundTask, EndReason, Placement, Readiness, SessionActivity, TaskState,
};

use super::{attempts, outcome, spec};

/// `RUNNING`, `TIMED_OUT` and so on.
pub(crate) fn state(task: &BackgroundTask) -> &'static str {
    let name = task.state().as_str_name();
    name.strip_prefix("TASK_STATE_").unwrap_or(name)
}

/// The state, and the outcome if the leader has exited.
pub(crate) fn state_and_outcome(task: &BackgroundTask) -> String {
    match outcome::with_cause(task) {
        Some(outcome) => format!("{}, {outcome}", state(task)),
        None => state(task).to_owned(),
    }
}

/// The note that output is missing, if it could not be captured.
pub(crate) fn missing_output(task: &BackgroundTask) -> Option<String> {
    let BackgroundTask {
        id, capture_error, ..
    } = task;
    let is_missing = !capture_error.is_empty();
    is_missing.then(|| format!("{id}: output is missing: {capture_error}"))
}

pub(crate) fn is_finished(task: &BackgroundTask) -> bool {
    match task.state() {
        TaskState::Completed
        | TaskState::Failed
        | TaskState::Cancelled
        | TaskState::TimedOut
        | TaskState::Lost => true,
        TaskState::Unspecified
        | TaskState::Queued
        | TaskState::Starting
        | TaskState::Running
        | TaskState::Stopping => false,
    }
}

/// The NOTE column of `ps`: facts of a task beside its state.
pub(crate) fn note(task: &BackgroundTask) -> String {
    let mut notes = Vec::new();
    if !task.capture_error.is_empty() {
        notes.push("output missing".to_owned());
    }
    if task.end_reason() == EndReason::OutputLimit {
        notes.push("output limit".to_owned());
    }
    if is_finished(task) {
        return notes.join(" ");
    }
    if task.placement() == Placement::Foreground {
        notes.push("fg".to_owned());
    }
    if task.stale {
        notes.push("stale".to_owned());
    }
    if task.needs_input {
        notes.push("needs input".to_owned());
    }
    if task
        .attempts
        .as_ref()
        .is_some_and(|attempts| attempts.latest > 1)
    {
        notes.push(attempts::latest(task));
    }
    notes.extend(readiness(task).map(str::to_owned));
    let percent = task.progress.as_ref().and_then(|progress| progress.percent);
    notes.extend(percent.map(|percent| format!("{percent}%")));
    let (queue, key) = (spec::queue(task), spec::exclusive_key(task));
    if !queue.is_empty() {
        notes.push(format!("q:{queue}"));
    }
    if task.state() == TaskState::Queued && !key.is_empty() {
        notes.push(format!("k:{key}"));
    }
    notes.join(" ")
}

/// The readiness of a task that has one.
pub(crate) fn readiness(task: &BackgroundTask) -> Option<&'static str> {
    match task.readiness() {
        Readiness::Unspecified => None,
        Readiness::Pending => Some("pending"),
        Readiness::Ready => Some("ready"),
        Readiness::NotReady => Some("not ready"),
    }
}

/// The number of a session's live tasks, such as `s1: 1 agent, 2 shells`.
pub(crate) fn session_activity(activity: &SessionActivity) -> String {
    let counts = [
        (activity.agents, "agent", "agents"),
        (activity.shells, "shell", "shells"),
        (activity.hosted, "hosted", "hosted"),
    ];
    let counts = counts.iter().filter(|(count, ..)| *count > 0);
    let counts = counts.map(|(count, one, many)| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    });
    let counts: Vec<String> = counts.collect();
    let live = match counts.is_empty() {
        true => "none".to_owned(),
        false => counts.join(", "),
    };
    format!("{}: {live}", activity.session_id)
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{ExclusivePolicy, TaskSpec};

    use super::*;

    /// F1, T5
    #[test]
    fn the_note_shows_foreground_silence_readiness_queue_and_awaited_key() {
        let spec = TaskSpec {
            queue: "builds".to_owned(),
            ..TaskSpec::default()
        };
        let mut task = BackgroundTask {
            spec: Some(spec.clone()),
            state: TaskState::Running.into(),
            placement: Placement::Foreground.into(),
            stale: true,
            needs_input: true,
            readiness: Readiness::NotReady.into(),
            ..BackgroundTask::default()
        };
        assert_eq!(note(&task), "fg stale needs input not ready q:builds");
        (task.needs_input, task.readiness) = (false, 0);
        task.state = TaskState::Completed.into();
        assert_eq!(note(&task), "");
        task.spec = Some(TaskSpec {
            exclusive: Some(ExclusivePolicy {
                key: "dev".to_owned(),
                ..ExclusivePolicy::default()
            }),
            ..spec
        });
        task.state = TaskState::Running.into();
        assert_eq!(note(&task), "fg stale q:builds", "the task has the key");
        task.state = TaskState::Queued.into();
        assert_eq!(note(&task), "fg stale q:builds k:dev");
        assert_eq!(note(&BackgroundTask::default()), "");
    }
}
