//! The number of live tasks of each session. It is counted where the order of facts is made, so each event
//! carries the counts that are true right after it, and an idle session is reported once.
//!
//! Only sessions with a live task cost memory. A task without a session is not counted.

use std::{collections::HashMap, sync::Arc};

use rusqlite::params;

use super::operation::Batch;
use crate::{
    journal::{
        JournalError,
        read::SizedFact,
        record::{self, FORMAT, int},
        sql,
    },
    task::{Activity, EventRole, Fact, SessionIdle, Task},
};

/// The counts as of the latest commit, without idle sessions.
#[derive(Debug, Default)]
pub(super) struct SessionCounts(HashMap<String, Activity>);

/// The counts in an open transaction, which may yet be rolled back.
#[derive(Debug)]
pub(super) struct PendingCounts<'a> {
    committed: &'a SessionCounts,
    changes: Changes,
}

/// The sessions whose counts a transaction has changed.
pub(super) type Changes = HashMap<String, Activity>;

impl SessionCounts {
    /// Counts the live tasks.
    pub(super) fn new<'a>(live: impl IntoIterator<Item = &'a Task>) -> Self {
        let mut sessions = HashMap::new();
        let specs = live.into_iter().map(|task| &task.spec);
        for spec in specs.filter(|spec| !spec.session_id.is_empty()) {
            let activity: &mut Activity = sessions.entry(spec.session_id.clone()).or_default();
            *activity = activity.with(spec.kind);
        }
        Self(sessions)
    }

    pub(super) fn pending(&self) -> PendingCounts<'_> {
        PendingCounts {
            committed: self,
            changes: Changes::new(),
        }
    }

    /// Applies the changes of a committed transaction.
    pub(super) fn apply(&mut self, changes: Changes) {
        for (session, activity) in changes {
            match activity.is_idle() {
                true => drop(self.0.remove(&session)),
                false => drop(self.0.insert(session, activity)),
            }
        }
    }
}

impl PendingCounts<'_> {
    /// Counts an event, and returns the counts of its session after it; none if they stay the same.
    /// The order of a task's events is checked elsewhere.
    pub(super) fn count(&mut self, role: EventRole, task: &Task) -> Option<Activity> {
        let spec = &task.spec;
        let session = &spec.session_id;
        if session.is_empty() {
            return None;
        }
        let before = self.changes.get(session).or(self.committed.0.get(session));
        let before = before.copied().unwrap_or_default();
        let after = match (role, task.is_live()) {
            (EventRole::Creation, true) => before.with(spec.kind),
            (EventRole::Change, false) => before.without(spec.kind),
            // A task that is finished when it is created was never counted.
            (EventRole::Creation, false) | (EventRole::Change, true) | (EventRole::Removal, _) => {
                return None;
            }
        };
        self.changes.insert(session.clone(), after);
        Some(after)
    }

    pub(super) fn into_changes(self) -> Changes {
        self.changes
    }
}

/// Appends that a session has become idle.
pub(super) fn append_idle(batch: &mut Batch<'_>, session_id: &str) -> Result<(), JournalError> {
    let (revision, at) = (batch.next_revision, batch.at);
    let record = record::encode_idle(session_id);
    batch
        .connection
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
    batch.push(SizedFact {
        fact: Fact::SessionIdle(Arc::new(idle)),
        bytes: record.len(),
    });
    Ok(())
}
