//! What lies at the one place where anything is written, and how it is dealt with.

use std::sync::Arc;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::mpsc;

use super::{BATCH, Job, Reply};
use crate::{
    crash,
    journal::{JournalError, holdings::Holdings, ledger, present::Present, ring::Weighed},
    task::{Event, Revision, Timestamp},
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
    jobs: mpsc::Receiver<Job>,
    /// What has gone into the WAL since the last checkpoint, in events.
    unmoved: u64,
}

/// What the transaction made of a job.
enum Written {
    Appended { revision: Revision, at: Timestamp },
    Removed(Vec<Weighed>),
    Compacted { oldest: Revision, dropped: u64 },
    Marked,
}

/// A job that is durable, and who waits for it.
enum Done {
    Appended {
        event: Weighed,
        reply: Reply<Arc<Event>>,
    },
    Removed {
        events: Vec<Weighed>,
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
        Self {
            connection,
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
            Err(error) if batch.len() == 1 => batch.remove(0).fail(error),
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
        let mut written = Vec::with_capacity(batch.len());
        for job in batch {
            let made = match job {
                Job::Append { draft, .. } => {
                    ledger::append(&transaction, draft, next, at)?;
                    drop_superseded(&transaction, &self.present, draft, oldest)?;
                    Written::Appended { revision: next, at }
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
            };
            next.0 += made.revisions();
            written.push(made);
        }
        let tells = next.0 > self.present.head().0 + 1;
        match tells {
            true => crash::point("journal.before-commit"),
            false => crash::point("upkeep.before-commit"),
        }
        transaction.commit().map_err(doing())?;
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
        for weighed in done.iter().flat_map(Done::events) {
            self.holdings.follow(&weighed.event);
        }
        self.present
            .publish(done.iter().flat_map(Done::events).cloned());
        done.into_iter().for_each(Done::answer);
    }
}

/// What a task was known by below the `oldest` event that is told was only kept for it.
fn drop_superseded(
    connection: &Connection,
    present: &Present,
    draft: &ledger::Draft,
    oldest: Revision,
) -> Result<(), JournalError> {
    if oldest.0 <= 1 {
        return Ok(());
    }
    match present.task(draft.task_id()) {
        Some(live) if live.task.revision < oldest => {
            ledger::drop_superseded(connection, &live.task)
        }
        Some(_) | None => Ok(()),
    }
}

impl Written {
    fn revisions(&self) -> u64 {
        match self {
            Self::Appended { .. } => 1,
            Self::Removed(events) => events.len() as u64,
            Self::Compacted { .. } | Self::Marked => 0,
        }
    }

    fn weight(&self) -> u64 {
        match self {
            Self::Appended { .. } | Self::Marked => 1,
            Self::Removed(events) => events.len() as u64,
            Self::Compacted { dropped, .. } => dropped.div_ceil(DROPPED_PER_EVENT),
        }
    }
}

impl Job {
    /// None where what was written is not what the job was, which cannot be.
    fn done(self, written: Written) -> Option<Done> {
        match (self, written) {
            (Self::Append { draft, reply }, Written::Appended { revision, at }) => {
                let event = draft.into_event(revision, at);
                Some(Done::Appended { event, reply })
            }
            (Self::Remove { reply, .. }, Written::Removed(events)) => {
                Some(Done::Removed { events, reply })
            }
            (Self::Compact { reply, .. }, Written::Compacted { .. })
            | (Self::MarkSeen { reply, .. }, Written::Marked) => Some(Done::Tidied { reply }),
            (
                Self::Append { .. }
                | Self::Remove { .. }
                | Self::Compact { .. }
                | Self::MarkSeen { .. },
                _,
            ) => None,
        }
    }

    fn fail(self, error: JournalError) {
        // Who does not wait any more need not know.
        match self {
            Self::Append { reply, .. } => drop(reply.send(Err(error))),
            Self::Remove { reply, .. } => drop(reply.send(Err(error))),
            Self::Compact { reply, .. } | Self::MarkSeen { reply, .. } => {
                drop(reply.send(Err(error)));
            }
        }
    }
}

impl Done {
    fn events(&self) -> &[Weighed] {
        match self {
            Self::Appended { event, .. } => std::slice::from_ref(event),
            Self::Removed { events, .. } => events,
            Self::Tidied { .. } => &[],
        }
    }

    fn answer(self) {
        match self {
            Self::Appended { event, reply } => drop(reply.send(Ok(event.event))),
            Self::Removed { events, reply } => {
                drop(reply.send(Ok(
                    events.into_iter().map(|weighed| weighed.event).collect(),
                )));
            }
            Self::Tidied { reply } => drop(reply.send(Ok(()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::{
        journal::{Durability, file, ledger::Draft, startup, tests},
        task::{EventKind, IdKey, Seq, Spec, Task},
    };

    type Answer = oneshot::Receiver<Result<Arc<Event>, JournalError>>;

    struct Scene {
        desk: Desk,
        jobs: mpsc::Sender<Job>,
        _dir: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = file::file(dir.path());
            let (connection, _) = file::open_writer(&path, Durability::Process).unwrap();
            let present = Arc::new(Present::new(Revision(0), Vec::new()));
            let holdings = Arc::new(Holdings::new(Revision(1)));
            let (jobs, queue) = mpsc::channel(10);
            Self {
                desk: Desk::new(connection, present, holdings, queue),
                jobs,
                _dir: dir,
            }
        }

        fn hand_in(&self, kind: EventKind, task: &Task) -> Answer {
            let (reply, answer) = oneshot::channel();
            let draft = Box::new(Draft::new(tests::entry(kind, task)).unwrap());
            self.jobs.try_send(Job::Append { draft, reply }).unwrap();
            answer
        }

        fn limit_pages(&self, count: u32) {
            let pragma = format!("PRAGMA max_page_count = {count}");
            self.desk
                .connection
                .query_row(&pragma, [], |_| Ok(()))
                .unwrap();
        }
    }

    fn task(seq: u64, spec: Spec) -> Task {
        tests::task_with(IdKey(1), Seq(seq), spec)
    }

    fn revision(mut answer: Answer) -> u64 {
        answer.try_recv().unwrap().unwrap().revision.0
    }

    #[test]
    fn one_that_is_refused_does_not_spoil_its_batch() {
        let mut scene = Scene::new();
        let first = scene.hand_in(EventKind::Created, &task(1, tests::spec()));
        let mut wrong = scene.hand_in(EventKind::Started, &task(2, tests::spec()));
        let third = scene.hand_in(EventKind::Created, &task(3, tests::spec()));
        scene.desk.serve_up_to(10);
        assert_eq!((revision(first), revision(third)), (1, 2));
        assert!(matches!(
            wrong.try_recv().unwrap(),
            Err(JournalError::Misplaced { .. })
        ));
        assert_eq!(
            startup::bounds(&scene.desk.connection).unwrap().1,
            Revision(2)
        );
    }

    /// O14
    #[test]
    fn a_full_disk_fails_the_append_and_the_next_one_works_once_there_is_space() {
        let mut scene = Scene::new();
        scene.limit_pages(1);
        let huge = task(
            1,
            Spec {
                name: "x".repeat(100_000),
                ..tests::spec()
            },
        );
        let mut refused = scene.hand_in(EventKind::Created, &huge);
        scene.desk.serve_up_to(10);
        match refused.try_recv().unwrap() {
            Err(JournalError::Storage { source, .. }) => {
                assert_eq!(
                    source.sqlite_error_code(),
                    Some(rusqlite::ErrorCode::DiskFull)
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(scene.desk.present.live().is_empty());
        scene.limit_pages(1_000_000);
        let accepted = scene.hand_in(EventKind::Created, &huge);
        scene.desk.serve_up_to(10);
        assert_eq!(revision(accepted), 1);
    }
}
