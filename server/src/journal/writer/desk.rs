//! What lies at the one place where anything is written, and how it is dealt with.

use std::sync::Arc;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::mpsc;

use super::{BATCH, Job, Reply};
use crate::{
    crash,
    journal::{JournalError, ledger, present::Present, ring::Weighed},
    task::{Event, Revision, Timestamp},
};

/// How many facts go into the WAL before they are moved on: 18 MiB of it if each has a commit of its
/// own, which a returning server reads in some 20 ms.
const CHECKPOINT_EVENTS: u64 = 1024;

/// The connection that writes, and what is to be written.
#[derive(Debug)]
pub(super) struct Desk {
    connection: Connection,
    present: Arc<Present>,
    jobs: mpsc::Receiver<Job>,
    /// The head at the last checkpoint.
    checkpointed: Revision,
}

/// What the transaction made of a job.
struct Written {
    first: Revision,
    at: Timestamp,
    removed: Vec<Weighed>,
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
}

impl Desk {
    pub(super) fn new(
        connection: Connection,
        present: Arc<Present>,
        jobs: mpsc::Receiver<Job>,
    ) -> Self {
        let checkpointed = present.head();
        Self {
            connection,
            present,
            jobs,
            checkpointed,
        }
    }

    pub(super) fn has_work(&self) -> bool {
        !self.jobs.is_empty()
    }

    pub(super) fn needs_checkpoint(&self) -> bool {
        self.present.head().0 - self.checkpointed.0 >= CHECKPOINT_EVENTS
    }

    /// Whether one is due; whoever asks makes it.
    pub(super) fn take_checkpoint(&mut self) -> bool {
        let due = self.needs_checkpoint();
        if due {
            self.checkpointed = self.present.head();
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
                let done = batch
                    .into_iter()
                    .zip(written)
                    .map(|(job, written)| job.done(written));
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
        let at = Timestamp::now();
        let mut first = Revision(self.present.head().0 + 1);
        let mut written = Vec::with_capacity(batch.len());
        for job in batch {
            let (events, removed) = match job {
                Job::Append { draft, .. } => {
                    ledger::append(&transaction, draft, first, at)?;
                    (1, Vec::new())
                }
                Job::Remove { ids, .. } => {
                    let removed = ledger::remove(&transaction, &self.present, ids, first, at)?;
                    (removed.len() as u64, removed)
                }
            };
            written.push(Written { first, at, removed });
            first.0 += events;
        }
        crash::point("journal.before-commit");
        transaction.commit().map_err(doing())?;
        crash::point("journal.committed");
        Ok(written)
    }

    /// First what is read, then the number that says so, then the answers: whoever is woken reads
    /// the truth.
    fn publish(&self, done: Vec<Done>) {
        self.present
            .publish(done.iter().flat_map(Done::events).cloned());
        done.into_iter().for_each(Done::answer);
    }
}

impl Job {
    fn done(self, written: Written) -> Done {
        match self {
            Self::Append { draft, reply } => Done::Appended {
                event: draft.into_event(written.first, written.at),
                reply,
            },
            Self::Remove { reply, .. } => Done::Removed {
                events: written.removed,
                reply,
            },
        }
    }

    fn fail(self, error: JournalError) {
        // Who does not wait any more need not know.
        match self {
            Self::Append { reply, .. } => drop(reply.send(Err(error))),
            Self::Remove { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}

impl Done {
    fn events(&self) -> &[Weighed] {
        match self {
            Self::Appended { event, .. } => std::slice::from_ref(event),
            Self::Removed { events, .. } => events,
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
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::{
        journal::{Durability, ledger::Draft, schema, startup, tests},
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
            let path = schema::file(dir.path());
            let (connection, _) = schema::open_writer(&path, Durability::Process).unwrap();
            let present = Arc::new(Present::new(Revision(0), Vec::new()));
            let (jobs, queue) = mpsc::channel(10);
            Self {
                desk: Desk::new(connection, present, queue),
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
