//! The session activity in a history, checked against counts made from its tasks alone.

use std::collections::BTreeMap;

use heeler_proto::v1::{SessionActivity, TaskEvent, TaskEventType, TaskKind};

use crate::TaskSpecExt as _;

/// The sessions that became idle, in order.
pub fn idle(history: &[TaskEvent]) -> Vec<&str> {
    let idle = history
        .iter()
        .filter(|event| event.r#type() == TaskEventType::SessionIdle);
    idle.map(|event| &*activity_of(event).session_id).collect()
}

/// The activity that an event must carry.
#[track_caller]
pub fn activity_of(event: &TaskEvent) -> &SessionActivity {
    let activity = event.session_activity.as_ref();
    activity.expect("an event with session activity")
}

/// The faults in the activity of a whole history.
pub fn faults(history: &[TaskEvent]) -> Vec<String> {
    let mut live: BTreeMap<String, SessionActivity> = BTreeMap::new();
    let mut idle_due: Option<String> = None;
    let mut faults = Vec::new();
    for event in history {
        let due = idle_due.take();
        let expected = match &event.task {
            Some(task) if !task.session().is_empty() => {
                let session = live.entry(task.session().to_owned()).or_default();
                task.session().clone_into(&mut session.session_id);
                count(session, event.r#type(), task.kind()).then(|| session.clone())
            }
            Some(_) => None,
            None => due.clone().map(empty),
        };
        let is_idle = event.r#type() == TaskEventType::SessionIdle;
        if event.session_activity != expected || due.is_some() != is_idle {
            faults.push(format!("{expected:?} expected, idle {due:?} in {event:?}"));
        }
        idle_due = expected
            .filter(|activity| !is_idle && *activity == empty(activity.session_id.clone()))
            .map(|activity| activity.session_id);
    }
    faults.extend(idle_due.map(|session| format!("{session} has no SESSION_IDLE event")));
    faults
}

fn empty(session_id: String) -> SessionActivity {
    SessionActivity {
        session_id,
        ..Default::default()
    }
}

/// Counts an event; returns true if it changed the number of live tasks.
fn count(session: &mut SessionActivity, kind: TaskEventType, of: TaskKind) -> bool {
    let number = match of {
        TaskKind::Agent => &mut session.agents,
        TaskKind::Shell => &mut session.shells,
        TaskKind::Hosted => &mut session.hosted,
        TaskKind::Unspecified => return false,
    };
    match kind {
        TaskEventType::Created => *number += 1,
        TaskEventType::Ended => *number -= 1,
        TaskEventType::Unspecified
        | TaskEventType::Admitted
        | TaskEventType::Started
        | TaskEventType::Stopping
        | TaskEventType::LeaderExited
        | TaskEventType::Detached
        | TaskEventType::Stale
        | TaskEventType::Active
        | TaskEventType::Ready
        | TaskEventType::NotReady
        | TaskEventType::NeedsInput
        | TaskEventType::Progress
        | TaskEventType::KillOverdue
        | TaskEventType::OutputLimit
        | TaskEventType::Matched
        | TaskEventType::Updated
        | TaskEventType::Removed
        | TaskEventType::SessionIdle => return false,
    }
    true
}
