//! How many tasks of each session are live, where the order of facts is made: so each fact is told
//! with the numbers that are true right after it, and a session that falls idle is told once.
//!
//! Only sessions with a live task cost memory. A task without a session is not counted.

use std::{collections::HashMap, sync::Arc};

use rusqlite::{Connection, params};

use super::{
    JournalError,
    record::{self, FORMAT, int},
    ring::Weighed,
    sql,
};
use crate::task::{Activity, EventKind, Fact, Revision, SessionIdle, Task, Timestamp};

/// As of the latest commit; none of them is idle.
#[derive(Debug, Default)]
pub(super) struct Sessions(HashMap<String, Activity>);

/// The same as of the fact that is being written, in a transaction that may yet be rolled back.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    committed: &'a Sessions,
    changes: Changes,
}

/// What a transaction has made of the sessions that it touched.
pub(super) type Changes = HashMap<String, Activity>;

impl Sessions {
    /// Of those that are live.
    pub(super) fn of<'a>(live: impl IntoIterator<Item = &'a Task>) -> Self {
        let mut sessions = HashMap::new();
        let specs = live.into_iter().map(|task| &task.spec);
        for spec in specs.filter(|spec| !spec.session_id.is_empty()) {
            let activity: &mut Activity = sessions.entry(spec.session_id.clone()).or_default();
            *activity = activity.with(spec.kind);
        }
        Self(sessions)
    }

    /// For one transaction.
    pub(super) fn tally(&self) -> Tally<'_> {
        Tally {
            committed: self,
            changes: Changes::new(),
        }
    }

    /// Takes in what has been committed.
    pub(super) fn settle(&mut self, changes: Changes) {
        for (session, activity) in changes {
            match activity.is_idle() {
                true => drop(self.0.remove(&session)),
                false => drop(self.0.insert(session, activity)),
            }
        }
    }
}

impl Tally<'_> {
    /// What a fact makes of its session; none if that has as many live tasks as before. That the
    /// fact is in its place, the ledger sees to.
    pub(super) fn take(&mut self, kind: EventKind, task: &Task) -> Option<Activity> {
        let spec = &task.spec;
        let session = &spec.session_id;
        if session.is_empty() {
            return None;
        }
        let before = self.changes.get(session).or(self.committed.0.get(session));
        let before = before.copied().unwrap_or_default();
        let after = match (kind, task.is_live()) {
            (EventKind::Created, true) => before.with(spec.kind),
            // Over from the start: it never counted.
            (EventKind::Created, false) | (EventKind::Removed, _) => return None,
            (
                EventKind::Admitted
                | EventKind::Started
                | EventKind::Stopping
                | EventKind::LeaderExited
                | EventKind::Detached
                | EventKind::Stale
                | EventKind::Active
                | EventKind::KillOverdue
                | EventKind::Ended,
                live,
            ) => match live {
                true => return None,
                false => before.without(spec.kind),
            },
        };
        self.changes.insert(session.clone(), after);
        Some(after)
    }

    pub(super) fn into_changes(self) -> Changes {
        self.changes
    }
}

/// Writes down that a session has become idle.
pub(super) fn record_idle(
    connection: &Connection,
    session_id: &str,
    revision: Revision,
    at: Timestamp,
) -> Result<Weighed, JournalError> {
    let record = record::encode_idle(session_id);
    connection
        .prepare_cached(sql::INSERT_SESSION_EVENT)
        .and_then(|mut insert| {
            let (revision, at) = (int(revision.0), int(at.0));
            insert.execute(params![revision, at, record::SESSION_IDLE, FORMAT, record])
        })
        .map_err(JournalError::storage("appending an event of a session"))?;
    let idle = SessionIdle {
        revision,
        at,
        session_id: session_id.to_owned(),
    };
    Ok(Weighed {
        fact: Fact::SessionIdle(Arc::new(idle)),
        bytes: record.len(),
    })
}
