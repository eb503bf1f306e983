//! What one transaction makes of several jobs.

use tokio::sync::oneshot;

use super::*;
use crate::{
    journal::{DiskTrouble, Durability, startup, tests},
    task::{EndState, EventKind, IdKey, Seq, Spec},
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
        let (connection, _) = file::open_writer(&path, Durability::Process, tests::BOOT).unwrap();
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

/// E9
#[test]
fn a_session_that_falls_idle_by_several_ends_of_one_batch_is_told_once_after_the_last() {
    let mut scene = Scene::new();
    let spec = Spec {
        session_id: "s1".into(),
        ..tests::spec()
    };
    let mut tasks = [1, 2, 3].map(|seq| task(seq, spec.clone()));
    for task in &tasks {
        drop(scene.hand_in(EventKind::Created, task));
    }
    scene.desk.serve_up_to(10);
    for task in &mut tasks {
        tests::end(task, EndState::Completed);
    }
    let ends = [0, 1].map(|one| scene.hand_in(EventKind::Ended, &tasks[one]));
    // What is refused has been counted by then, in a transaction that is given up.
    let wrong = scene.hand_in(EventKind::Ended, &tasks[0]);
    let last = scene.hand_in(EventKind::Ended, &tasks[2]);
    let next = scene.hand_in(EventKind::Created, &task(4, spec));
    scene.desk.serve_up_to(10);
    assert_eq!(ends.map(revision), [4, 5]);
    drop(wrong);
    assert_eq!((revision(last), revision(next)), (6, 8));
    let facts = scene.desk.present.after(Revision(0), 10).unwrap();
    let idle = facts.iter().filter(|fact| fact.event().is_none());
    assert!(idle.map(|fact| fact.revision().0).eq([7]));
    let activity = |revision: usize| facts[revision - 1].event().unwrap().activity.unwrap();
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

/// O14
#[test]
fn what_cannot_be_written_now_is_named_and_the_next_append_works_once_it_can() {
    let mut scene = Scene::new();
    let refuse = |scene: &Scene, value: &str| {
        let connection = &scene.desk.connection;
        connection.pragma_update(None, "query_only", value).unwrap();
    };
    refuse(&scene, "ON");
    let mut refused = scene.hand_in(EventKind::Created, &task(1, tests::spec()));
    scene.desk.serve_up_to(10);
    let error = refused.try_recv().unwrap().unwrap_err();
    assert_eq!(error.disk_trouble(), Some(DiskTrouble::ReadOnly));
    refuse(&scene, "OFF");
    let accepted = scene.hand_in(EventKind::Created, &task(1, tests::spec()));
    scene.desk.serve_up_to(10);
    assert_eq!(revision(accepted), 1);
}
