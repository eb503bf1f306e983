//! The live tasks of each session. They are counted where the order of facts is made, so each event
//! carries the counts that are true right after it, and an idle session is reported once.
//!
//! Only sessions with a live task cost memory. A task without a session is not counted.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use rusqlite::params;

use super::operation::Batch;
use crate::{
    journal::{
        JournalError,
        read::SizedFact,
        record::{self, FORMAT, int},
        sql,
    },
    task::{Activity, EventRole, Fact, Kind, Seq, SessionIdle, Task},
};

const KINDS: [Kind; 3] = [Kind::Agent, Kind::Shell, Kind::Hosted];

/// A live task of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Active,
    Stale,
}

impl Member {
    fn of(task: &Task) -> Self {
        match task.stale {
            Some(_) => Self::Stale,
            None => Self::Active,
        }
    }
}

/// Something for each kind of task.
#[derive(Debug, Clone, Default)]
struct ByKind<T> {
    agents: T,
    shells: T,
    hosted: T,
}

impl<T> ByKind<T> {
    fn get(&self, kind: Kind) -> &T {
        match kind {
            Kind::Agent => &self.agents,
            Kind::Shell => &self.shells,
            Kind::Hosted => &self.hosted,
        }
    }

    fn get_mut(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::Agent => &mut self.agents,
            Kind::Shell => &mut self.shells,
            Kind::Hosted => &mut self.hosted,
        }
    }
}

/// The live tasks of one session.
#[derive(Debug, Default)]
struct LiveSession {
    members: ByKind<BTreeMap<Seq, Member>>,
    stale: u32,
}

impl LiveSession {
    fn set(&mut self, kind: Kind, seq: Seq, member: Option<Member>) {
        let members = self.members.get_mut(kind);
        let before = match member {
            Some(member) => members.insert(seq, member),
            None => members.remove(&seq),
        };
        self.stale -= u32::from(before == Some(Member::Stale));
        self.stale += u32::from(member == Some(Member::Stale));
    }

    fn is_idle(&self) -> bool {
        KINDS.iter().all(|kind| self.members.get(*kind).is_empty())
    }
}

/// The sessions as of the latest commit, without idle ones.
#[derive(Debug, Default)]
pub(super) struct SessionCounts(HashMap<String, LiveSession>);

/// The sessions in an open transaction, which may yet be rolled back.
#[derive(Debug)]
pub(super) struct PendingCounts<'a> {
    committed: &'a SessionCounts,
    changes: Changes,
}

/// The sessions that a transaction has changed.
pub(super) type Changes = HashMap<String, SessionChange>;

/// The tasks of a session that a transaction has changed; those that are no longer live are `None`.
#[derive(Debug, Default)]
pub(super) struct SessionChange(ByKind<BTreeMap<Seq, Option<Member>>>);

impl SessionCounts {
    /// Counts the live tasks.
    pub(super) fn new<'a>(live: impl IntoIterator<Item = &'a Task>) -> Self {
        let mut sessions: HashMap<String, LiveSession> = HashMap::new();
        let with_session = |task: &&Task| !task.spec.session_id.is_empty();
        for task in live.into_iter().filter(with_session) {
            let session = sessions.entry(task.spec.session_id.clone()).or_default();
            session.set(task.spec.kind, task.seq, Some(Member::of(task)));
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
        for (id, SessionChange(change)) in changes {
            let session = self.0.entry(id.clone()).or_default();
            for kind in KINDS {
                for (seq, member) in change.get(kind) {
                    session.set(kind, *seq, *member);
                }
            }
            if session.is_idle() {
                self.0.remove(&id);
            }
        }
    }
}

impl PendingCounts<'_> {
    /// Counts an event, and returns the activity of its session after it; none if it stays the same.
    /// The order of a task's events is checked elsewhere.
    pub(super) fn count(&mut self, role: EventRole, task: &Task) -> Option<Activity> {
        let (session, kind) = (&task.spec.session_id, task.spec.kind);
        if session.is_empty() {
            return None;
        }
        let after = match (role, task.is_live()) {
            (EventRole::Creation | EventRole::Change, true) => Some(Member::of(task)),
            (EventRole::Change, false) => None,
            // A task that is finished when it is created was never counted.
            (EventRole::Creation, false) | (EventRole::Removal, _) => return None,
        };
        if self.member(session, kind, task.seq) == after {
            return None;
        }
        let change = self.changes.entry(session.clone()).or_default();
        change.0.get_mut(kind).insert(task.seq, after);
        Some(self.activity(session))
    }

    fn member(&self, session: &str, kind: Kind, seq: Seq) -> Option<Member> {
        let changed = self.changes.get(session);
        let changed = changed.and_then(|change| change.0.get(kind).get(&seq));
        let committed = || self.committed.0.get(session)?.members.get(kind).get(&seq);
        match changed {
            Some(member) => *member,
            None => committed().copied(),
        }
    }

    /// The activity of a session with all changes so far. Its cost does not grow with the session.
    fn activity(&self, session: &str) -> Activity {
        let (none, unchanged) = (LiveSession::default(), SessionChange::default());
        let committed = self.committed.0.get(session).unwrap_or(&none);
        let SessionChange(change) = self.changes.get(session).unwrap_or(&unchanged);
        let mut activity = Activity {
            stale: committed.stale,
            ..Activity::default()
        };
        for kind in KINDS {
            let (before, changed) = (committed.members.get(kind), change.get(kind));
            let mut live = before.len();
            for (seq, after) in changed {
                let before = before.get(seq);
                live += usize::from(before.is_none() && after.is_some());
                live -= usize::from(before.is_some() && after.is_none());
                activity.stale += u32::from(*after == Some(Member::Stale));
                activity.stale -= u32::from(before == Some(&Member::Stale));
            }
            let kept = before.keys().rev().filter(|seq| !changed.contains_key(seq));
            let added = changed.iter().filter(|(_, member)| member.is_some());
            let mut newest: Vec<Seq> = kept.take(Activity::MOST_NAMED).copied().collect();
            newest.extend(added.map(|(seq, _)| *seq));
            newest.sort_unstable();
            newest.drain(..newest.len().saturating_sub(Activity::MOST_NAMED));
            let (count, seqs) = activity.of_kind(kind);
            *count = u32::try_from(live).unwrap_or(u32::MAX);
            *seqs = newest;
        }
        activity
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
