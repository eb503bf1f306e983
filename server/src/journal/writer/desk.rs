//! What lies at the one place where anything is written, and how it is dealt with.

use std::{path::Path, sync::Arc};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::mpsc;

use super::{BATCH, Job, Reply};
use crate::{
    crash,
    journal::{
        JournalError, epoch, file,
        holdings::Holdings,
        ledger::{self, Draft, Place},
        present::Present,
        ring::{TaskRecord, Weighed},
        sessions::{self, Sessions, Tally},
    },
    task::{Activity, Event, Revision, Task, Timestamp},
};

/// How many facts go into the WAL before they are moved on: 18 MiB of it if each has a commit of its
/// own, which a returning server reads in some 20 ms.
const CHECKPOINT_EVENTS: u64 = 1024;

/// How many dropped events weigh as much in the WAL as one that is appended: they lie side by side.
const DROPPED_PER_EVENT: u64 = 4;

/// The connection that writes, and what is to be written.
#[derive(Debug)]
pub(super) struct Desk {
    connection: Connection,
    present: Arc<Present>,
    holdings: Arc<Holdings>,
    sessions: Sessions,
    jobs: mpsc::Receiver<Job>,
    /// What has gone into the WAL since the last checkpoint, in events.
    unmoved: u64,
}

/// What the transaction made of a job.
enum Written {
    Appended { place: Place, idle: Option<Weighed> },
    Removed(Vec<TaskRecord>),
    Compacted { oldest: Revision, dropped: u64 },
    Marked,
}

/// A job that is durable, and who waits for it.
enum Done {
    Appended {
        event: TaskRecord,
        /// That its session has become idle by it.
        idle: Option<Weighed>,
        reply: Reply<Arc<Event>>,
    },
    Removed {
        events: Vec<TaskRecord>,
        reply: Reply<Vec<Arc<Event>>>,
    },
    /// Nothing has happened that anybody is to be told of.
    Tidied { reply: Reply<()> },
}

impl Desk {
    pub(super) fn new(
        connection: Connection,
        present: Arc<Present>,
        holdings: Arc<Holdings>,
        jobs: mpsc::Receiver<Job>,
    ) -> Self {
        let live = present.live();
        Self {
            connection,
            sessions: Sessions::of(live.iter().map(|task| &**task)),
            present,
            holdings,
            jobs,
            unmoved: 0,
        }
    }

    pub(super) fn has_work(&self) -> bool {
        !self.jobs.is_empty()
    }

    pub(super) fn needs_checkpoint(&self) -> bool {
        self.unmoved >= CHECKPOINT_EVENTS
    }

    /// Whether one is due; whoever asks makes it.
    pub(super) fn take_checkpoint(&mut self) -> bool {
        let due = self.needs_checkpoint();
        if due {
            self.unmoved = 0;
        }
        due
    }

    /// One transaction.
    pub(super) fn serve_up_to(&mut self, limit: usize) {
        let batch = std::iter::from_fn(|| self.jobs.try_recv().ok())
            .take(limit)
            .collect();
        self.serve(batch);
    }

    /// Takes no more jobs, does those that were taken, and leaves no WAL behind.
    pub(super) fn finish(&mut self) -> rusqlite::Result<()> {
        self.jobs.close();
        let mut batch = Vec::new();
        while self.jobs.blocking_recv_many(&mut batch, BATCH) > 0 {
            self.serve(std::mem::take(&mut batch));
        }
        epoch::close(&self.connection);
        self.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }

    fn serve(&mut self, mut batch: Vec<Job>) {
        if batch.is_empty() {
            return;
        }
        match self.commit(&batch) {
            Ok(written) => {
                self.unmoved += written.iter().map(Written::weight).sum::<u64>();
                self.follow(&written);
                let done = batch
                    .into_iter()
                    .zip(written)
                    .filter_map(|(job, written)| job.done(written));
                self.publish(done.collect());
            }
            Err(error) if batch.len() == 1 => {
                let path = self.connection.path().map(Path::new);
                let wal = file::wal(path.unwrap_or(Path::new("")));
                batch.remove(0).fail(error.looked_into(&wal));
            }
            Err(_) => batch.into_iter().for_each(|job| self.serve(vec![job])),
        }
    }

    /// All of the jobs, or none.
    fn commit(&mut self, batch: &[Job]) -> Result<Vec<Written>, JournalError> {
        let doing = || JournalError::storage("committing");
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(doing())?;
        let (at, mut oldest) = (Timestamp::now(), self.holdings.oldest());
        let mut next = Revision(self.present.head().0 + 1);
        let mut tally = self.sessions.tally();
        let mut written = Vec::with_capacity(batch.len());
        for job in batch {
            let made = match job {
                Job::Append { draft, .. } => {
                    let appended = append(&transaction, draft, &mut tally, next, at)?;
                    drop_superseded(&transaction, &self.present, draft.task(), oldest)?;
                    appended
                }
                Job::Remove { ids, .. } => {
                    let present = &self.present;
                    let removed = ledger::remove(&transaction, present, ids, oldest, next, at)?;
                    Written::Removed(removed)
                }
                Job::Compact { up_to, .. } => {
                    let up_to = *up_to.max(&oldest);
                    ledger::compact(&transaction, oldest..up_to)?;
                    let dropped = up_to.0 - oldest.0;
                    oldest = up_to;
                    Written::Compacted { oldest, dropped }
                }
                Job::MarkSeen { seqs, .. } => {
                    ledger::mark_seen(&transaction, seqs)?;
                    Written::Marked
                }
                Job::SetQueue { name, settings, .. } => {
                    ledger::set_queue(&transaction, name, *settings)?;
                    Written::Marked
                }
            };
            next.0 += made.revisions();
            written.push(made);
        }
        let tells = next.0 > self.present.head().0 + 1;
        match tells {
            true => crash::point("journal.before-commit"),
            false => crash::point("upkeep.before-commit"),
        }
        let changes = tally.into_changes();
        transaction.commit().map_err(doing())?;
        self.sessions.settle(changes);
        match tells {
            true => crash::point("journal.committed"),
            false => crash::point("upkeep.committed"),
        }
        Ok(written)
    }

    /// What is no longer told is known before anybody can look for it in vain.
    fn follow(&self, written: &[Written]) {
        for written in written {
            if let Written::Compacted { oldest, .. } = written {
                self.holdings.raise_oldest(*oldest);
            }
        }
    }

    /// First what is read, then the number that says so, then the answers: whoever is woken reads
    /// the truth.
    fn publish(&self, done: Vec<Done>) {
        let told: Vec<Weighed> = done.iter().flat_map(Done::told).collect();
        for weighed in &told {
            self.holdings.follow(&weighed.fact);
        }
        self.present.publish(told);
        done.into_iter().for_each(Done::answer);
    }
}

/// Writes a fact and, if it is the end of the last live task of a session, that the session is idle.
fn append(
    connection: &Connection,
    draft: &Draft,
    tally: &mut Tally<'_>,
    revision: Revision,
    at: Timestamp,
) -> Result<Written, JournalError> {
    let activity = tally.take(draft.kind(), draft.task());
    let place = Place {
        revision,
        at,
        activity,
    };
    ledger::append(connection, draft, place)?;
    let idle = match activity.is_some_and(Activity::is_idle) {
        true => {
            let session = &draft.task().spec.session_id;
            let next = Revision(revision.0 + 1);
            Some(sessions::record_idle(connection, session, next, at)?)
        }
        false => None,
    };
    Ok(Written::Appended { place, idle })
}

/// What a task was known by below the `oldest` event that is told was only kept for it.
fn drop_superseded(
    connection: &Connection,
    present: &Present,
    task: &Task,
    oldest: Revision,
) -> Result<(), JournalError> {
    if oldest.0 <= 1 {
        return Ok(());
    }
    match present.task(&task.id) {
        Some(live) if live.task.revision < oldest => {
            ledger::drop_superseded(connection, &live.task)
        }
        Some(_) | None => Ok(()),
    }
}

impl Written {
    fn revisions(&self) -> u64 {
        match self {
            Self::Appended { idle, .. } => 1 + u64::from(idle.is_some()),
            Self::Removed(events) => events.len() as u64,
            Self::Compacted { .. } | Self::Marked => 0,
        }
    }

    fn weight(&self) -> u64 {
        match self {
            Self::Appended { .. } | Self::Removed(_) => self.revisions(),
            Self::Marked => 1,
            Self::Compacted { dropped, .. } => dropped.div_ceil(DROPPED_PER_EVENT),
        }
    }
}

impl Job {
    /// None where what was written is not what the job was, which cannot be.
    fn done(self, written: Written) -> Option<Done> {
        match (self, written) {
            (Self::Append { draft, reply }, Written::Appended { place, idle }) => {
                let event = draft.into_event(place);
                Some(Done::Appended { event, idle, reply })
            }
            (Self::Remove { reply, .. }, Written::Removed(events)) => {
                Some(Done::Removed { events, reply })
            }
            (Self::Compact { reply, .. }, Written::Compacted { .. })
            | (Self::MarkSeen { reply, .. } | Self::SetQueue { reply, .. }, Written::Marked) => {
                Some(Done::Tidied { reply })
            }
            (
                Self::Append { .. }
                | Self::Remove { .. }
                | Self::Compact { .. }
                | Self::MarkSeen { .. }
                | Self::SetQueue { .. },
                _,
            ) => None,
        }
    }

    fn fail(self, error: JournalError) {
        // Who does not wait any more need not know.
        match self {
            Self::Append { reply, .. } => drop(reply.send(Err(error))),
            Self::Remove { reply, .. } => drop(reply.send(Err(error))),
            Self::Compact { reply, .. }
            | Self::MarkSeen { reply, .. }
            | Self::SetQueue { reply, .. } => {
                drop(reply.send(Err(error)));
            }
        }
    }
}

impl Done {
    /// What has happened, in order.
    fn told(&self) -> impl Iterator<Item = Weighed> {
        let (events, idle) = match self {
            Self::Appended { event, idle, .. } => (std::slice::from_ref(event), idle.clone()),
            Self::Removed { events, .. } => (&**events, None),
            Self::Tidied { .. } => (Default::default(), None),
        };
        events.iter().cloned().map(Weighed::from).chain(idle)
    }

    fn answer(self) {
        match self {
            Self::Appended { event, reply, .. } => drop(reply.send(Ok(event.event))),
            Self::Removed { events, reply } => {
                drop(reply.send(Ok(events.into_iter().map(|record| record.event).collect())));
            }
            Self::Tidied { reply } => drop(reply.send(Ok(()))),
        }
    }
}

#[cfg(test)]
mod tests;
