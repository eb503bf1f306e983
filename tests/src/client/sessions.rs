//! The session activity in a history, checked against counts made from its tasks alone.

use std::collections::{BTreeMap, BTreeSet};

use heeler_proto::v1::{BackgroundTask, SessionActivity, TaskEvent, TaskEventType, TaskKind};

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

/// The number of ids of a kind that an activity names.
const MOST_NAMED: usize = 64;

/// The live tasks of a session, as its events tell.
#[derive(Default)]
struct Live {
    activity: SessionActivity,
    stale: BTreeSet<String>,
}

/// The faults in the activity of a whole history.
pub fn faults(history: &[TaskEvent]) -> Vec<String> {
    let mut live: BTreeMap<String, Live> = BTreeMap::new();
    let mut idle_due: Option<String> = None;
    let mut faults = Vec::new();
    for event in history {
        let due = idle_due.take();
        let expected = match &event.task {
            Some(task) if !task.session().is_empty() => {
                let session = live.entry(task.session().to_owned()).or_default();
                task.session().clone_into(&mut session.activity.session_id);
                count(session, event.r#type(), task).then(|| session.activity.clone())
            }
            Some(_) => None,
            None => due.clone().map(empty),
        };
        let is_idle = event.r#type() == TaskEventType::SessionIdle;
        let found = event.session_activity.clone();
        if found.map(comparable) != expected.clone().map(comparable) || due.is_some() != is_idle {
            faults.push(format!("{expected:?} expected, idle {due:?} in {event:?}"));
        }
        idle_due = expected
            .filter(|activity| !is_idle && *activity == empty(activity.session_id.clone()))
            .map(|activity| activity.session_id);
    }
    faults.extend(idle_due.map(|session| format!("{session} has no SESSION_IDLE event")));
    faults
}

/// The activity with its ids in a fixed order: tasks that are spawned at the same time are recorded in any.
fn comparable(mut activity: SessionActivity) -> SessionActivity {
    let ids = [
        &mut activity.agent_ids,
        &mut activity.shell_ids,
        &mut activity.hosted_ids,
    ];
    for ids in ids {
        ids.sort_unstable();
        if ids.len() >= MOST_NAMED {
            ids.clear();
        }
    }
    activity
}

fn empty(session_id: String) -> SessionActivity {
    SessionActivity {
        session_id,
        ..Default::default()
    }
}

/// Counts an event; returns true if it changed the activity.
fn count(session: &mut Live, kind: TaskEventType, task: &BackgroundTask) -> bool {
    let Live { activity, stale } = session;
    let (number, ids) = match task.kind() {
        TaskKind::Agent => (&mut activity.agents, &mut activity.agent_ids),
        TaskKind::Shell => (&mut activity.shells, &mut activity.shell_ids),
        TaskKind::Hosted => (&mut activity.hosted, &mut activity.hosted_ids),
        TaskKind::Unspecified => return false,
    };
    let has_changed = match kind {
        TaskEventType::Created => {
            *number += 1;
            ids.push(task.id.clone());
            true
        }
        TaskEventType::Ended => {
            *number -= 1;
            ids.retain(|id| *id != task.id);
            stale.remove(&task.id);
            true
        }
        TaskEventType::Unspecified | TaskEventType::Removed | TaskEventType::SessionIdle => false,
        TaskEventType::Admitted
        | TaskEventType::Started
        | TaskEventType::Restarting
        | TaskEventType::Restarted
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
        | TaskEventType::Updated => match task.stale {
            true => stale.insert(task.id.clone()),
            false => stale.remove(&task.id),
        },
    };
    activity.stale = stale.len() as u32;
    has_changed
}
