//! One event of the journal as a line: revision, time, task, type, state, and a detail.

use heeler_client::v1::{BackgroundTask, OutputLimit, OutputMatch, TaskEvent, TaskEventType};

use super::{attempts, causes, outcome, policies, progress, proof, spec, status, units};

pub(crate) fn line(event: &TaskEvent) -> String {
    let at = event.event_time.map(units::timestamp).unwrap_or_default();
    let kind = type_name(event.r#type());
    let revision = event.revision;
    let Some(task) = &event.task else {
        let session = event.session_activity.as_ref();
        let session = session.map_or("", |activity| &activity.session_id);
        return format!("{revision} {at} - {kind} {session}");
    };
    let (id, state) = (&task.id, status::state(task));
    let detail = detail(event, task);
    let line = format!("{revision} {at} {id} {kind} {state} {detail}");
    let line = line.trim_end();
    match &event.session_activity {
        Some(activity) => format!("{line} [{}]", status::session_activity(activity)),
        None => line.to_owned(),
    }
}

/// `STARTED`, `ENDED` and so on.
fn type_name(kind: TaskEventType) -> &'static str {
    let name = kind.as_str_name();
    name.strip_prefix("TASK_EVENT_TYPE_").unwrap_or(name)
}

fn detail(event: &TaskEvent, task: &BackgroundTask) -> String {
    let detail = match event.r#type() {
        TaskEventType::Created => Some(spec::command(task)),
        TaskEventType::Admitted => Some(spec::admission(task)),
        TaskEventType::Started => pid(task),
        TaskEventType::Restarting => Some(attempts::failed(task)),
        TaskEventType::Restarted => {
            let attempt = attempts::latest(task);
            pid(task).map(|pid| format!("{attempt}, {pid}"))
        }
        TaskEventType::Detached => task.detachment.as_ref().map(causes::detach),
        TaskEventType::Stale => {
            spec::stale_after(task).map(|span| format!("silent for {}", units::duration(span)))
        }
        TaskEventType::Active => Some(format!("{} bytes written", task.output_bytes)),
        TaskEventType::Progress => task.progress.as_ref().map(progress::clause),
        TaskEventType::Stopping => task.stop.as_ref().map(causes::stop),
        TaskEventType::KillOverdue => proof::of(task).map(proof::clause),
        TaskEventType::OutputLimit => task.output_limit.as_ref().map(limit),
        TaskEventType::LeaderExited | TaskEventType::Ended => outcome::with_cause(task),
        TaskEventType::Matched => event.r#match.as_ref().map(matched),
        TaskEventType::NotReady => Some(policies::ready(task)),
        TaskEventType::Ready
        | TaskEventType::NeedsInput
        | TaskEventType::Updated
        | TaskEventType::Removed
        | TaskEventType::SessionIdle
        | TaskEventType::Unspecified => None,
    };
    detail.unwrap_or_default()
}

fn pid(task: &BackgroundTask) -> Option<String> {
    let leader = task.leader.as_ref();
    leader.map(|leader| format!("pid {}", leader.pid))
}

/// The event has the time.
fn limit(limit: &OutputLimit) -> String {
    policies::dropped(&OutputLimit {
        limit_time: None,
        ..*limit
    })
}

/// The pattern and the first line; the number of lines, if there are more.
fn matched(matched: &OutputMatch) -> String {
    let first = matched.lines.first();
    let text = first.and_then(|line| line.text.as_deref()).unwrap_or("-");
    match matched.count {
        0 | 1 => format!("{}: {text}", matched.pattern),
        count => format!("{} ({count} lines): {text}", matched.pattern),
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{Outcome, SessionActivity, TaskState, outcome};
    use prost_types::Timestamp;

    use super::*;

    #[test]
    fn a_line_has_revision_time_id_type_state_and_detail() {
        let task = BackgroundTask {
            id: "shell-a".to_owned(),
            state: TaskState::Completed.into(),
            outcome: Some(Outcome {
                result: Some(outcome::Result::ExitCode(0)),
            }),
            ..BackgroundTask::default()
        };
        let event = TaskEvent {
            revision: 7,
            event_time: Some(Timestamp::default()),
            r#type: TaskEventType::Ended.into(),
            task: Some(task),
            ..TaskEvent::default()
        };
        assert_eq!(
            line(&event),
            "7 1970-01-01T00:00:00.000Z shell-a ENDED COMPLETED exit code 0"
        );
        let activity = SessionActivity {
            session_id: "s1".to_owned(),
            shells: 2,
            ..SessionActivity::default()
        };
        let counted = TaskEvent {
            session_activity: Some(activity),
            ..event
        };
        assert_eq!(
            line(&counted),
            "7 1970-01-01T00:00:00.000Z shell-a ENDED COMPLETED exit code 0 [s1: 2 shells]"
        );
    }

    /// E9
    #[test]
    fn the_line_of_an_idle_session_names_the_session() {
        let activity = SessionActivity {
            session_id: "s1".to_owned(),
            ..SessionActivity::default()
        };
        let event = TaskEvent {
            revision: 8,
            r#type: TaskEventType::SessionIdle.into(),
            session_activity: Some(activity),
            ..TaskEvent::default()
        };
        assert_eq!(line(&event), "8  - SESSION_IDLE s1");
    }
}
