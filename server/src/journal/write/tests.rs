//! Several operations in one transaction.

use super::*;
use crate::{
    journal::{DiskTrouble, file, read, tests},
    task::{EndState, EventKind, IdKey, Revision, Seq, Spec, Task},
};

type Answer = oneshot::Receiver<Written>;

struct Scene {
    batcher: WriteBatcher,
    key: RequestKey,
    operations: mpsc::Sender<WriteOperation>,
    _dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = file::path(dir.path());
        let durability = Durability::Process;
        let (connection, identity) = file::open_writer(&path, durability, tests::BOOT).unwrap();
        let live = Arc::new(LiveState::new(Revision(0), Vec::new()));
        let waiting = WaitingRequests::open(dir.path(), durability, std::iter::empty());
        let totals = Arc::new(Totals::new(Revision(1)));
        let (operations, queue) = mpsc::channel(10);
        Self {
            batcher: WriteBatcher::new(
                connection,
                live,
                totals,
                Arc::new(waiting),
                identity.id_key,
                queue,
            ),
            key: identity.request_key,
            operations,
            _dir: dir,
        }
    }

    fn submit(&self, kind: EventKind, task: &Task) -> Answer {
        let (reply, answer) = oneshot::channel();
        let change = Change::append(tests::entry(kind, task), &self.key).unwrap();
        let operation = WriteOperation { change, reply };
        self.operations.try_send(operation).unwrap();
        answer
    }

    fn limit_pages(&self, count: u32) {
        let pragma = format!("PRAGMA max_page_count = {count}");
        let connection = &self.batcher.connection;
        connection.query_row(&pragma, [], |_| Ok(())).unwrap();
    }
}

fn task(seq: u64, spec: Spec) -> Task {
    tests::task_with(IdKey(1), Seq(seq), spec)
}

fn revision(mut answer: Answer) -> u64 {
    let events = answer.try_recv().unwrap().unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].task.revision, events[0].revision);
    events[0].revision.0
}

#[test]
fn a_refused_operation_does_not_fail_its_batch() {
    let mut scene = Scene::new();
    let first = scene.submit(EventKind::Created, &task(1, tests::spec()));
    let mut wrong = scene.submit(EventKind::Started, &task(2, tests::spec()));
    let third = scene.submit(EventKind::Created, &task(3, tests::spec()));
    scene.batcher.write_up_to(10);
    assert_eq!((revision(first), revision(third)), (1, 2));
    assert!(matches!(
        wrong.try_recv().unwrap(),
        Err(JournalError::Misplaced { .. })
    ));
    let (_, head) = read::bounds(&scene.batcher.connection).unwrap();
    assert_eq!(head, Revision(2));
}

/// E9
#[test]
fn a_session_that_becomes_idle_by_several_ends_of_one_batch_is_reported_once_after_the_last() {
    let mut scene = Scene::new();
    let spec = Spec {
        session_id: "s1".into(),
        ..tests::spec()
    };
    let mut tasks = [1, 2, 3].map(|seq| task(seq, spec.clone()));
    for task in &tasks {
        drop(scene.submit(EventKind::Created, task));
    }
    scene.batcher.write_up_to(10);
    for task in &mut tasks {
        tests::end(task, EndState::Completed);
    }
    let ends = [0, 1].map(|one| scene.submit(EventKind::Ended, &tasks[one]));
    // It is counted before it is refused, in a transaction that is rolled back.
    let wrong = scene.submit(EventKind::Ended, &tasks[0]);
    let last = scene.submit(EventKind::Ended, &tasks[2]);
    let next = scene.submit(EventKind::Created, &task(4, spec));
    scene.batcher.write_up_to(10);
    assert_eq!(ends.map(revision), [4, 5]);
    drop(wrong);
    assert_eq!((revision(last), revision(next)), (6, 8));
    let facts = scene.batcher.live.after(Revision(0), 10).unwrap();
    let idle = facts.iter().filter(|fact| fact.event().is_none());
    assert!(idle.map(|fact| fact.revision().0).eq([7]));
    let activity = |revision: usize| {
        facts[revision - 1]
            .event()
            .unwrap()
            .activity
            .clone()
            .unwrap()
    };
    assert!(activity(6).is_idle());
    assert_eq!(activity(8).shells, 1);
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
    let mut refused = scene.submit(EventKind::Created, &huge);
    scene.batcher.write_up_to(10);
    let error = refused.try_recv().unwrap().unwrap_err();
    assert_eq!(error.disk_trouble(), Some(DiskTrouble::Full));
    assert!(scene.batcher.live.tasks().is_empty());
    scene.limit_pages(1_000_000);
    let accepted = scene.submit(EventKind::Created, &huge);
    scene.batcher.write_up_to(10);
    assert_eq!(revision(accepted), 1);
}

/// O14
#[test]
fn a_read_only_disk_is_named_and_the_next_append_works_once_it_can_be_written() {
    let mut scene = Scene::new();
    let set_read_only = |scene: &Scene, value: &str| {
        let connection = &scene.batcher.connection;
        connection.pragma_update(None, "query_only", value).unwrap();
    };
    set_read_only(&scene, "ON");
    let mut refused = scene.submit(EventKind::Created, &task(1, tests::spec()));
    scene.batcher.write_up_to(10);
    let error = refused.try_recv().unwrap().unwrap_err();
    assert_eq!(error.disk_trouble(), Some(DiskTrouble::ReadOnly));
    set_read_only(&scene, "OFF");
    let accepted = scene.submit(EventKind::Created, &task(1, tests::spec()));
    scene.batcher.write_up_to(10);
    assert_eq!(revision(accepted), 1);
}
