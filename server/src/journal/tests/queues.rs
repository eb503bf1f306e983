//! Requests of waiting tasks, settings of queues, and sessions with owners.

use std::time::Duration;

use super::*;
use crate::task::{Exclusive, ExclusiveMode, QueueSettings, Queued};

fn waiting_task(journal: &Journal, spec: Spec) -> Task {
    let mut task = task_with(journal.id_key(), journal.next_seq(), spec);
    task.queued = Some(Queued { admitted: None });
    task
}

async fn create(journal: &Journal, task: &Task, request: SpawnRequest) -> Revision {
    let entry = Entry {
        request: Some(request),
        ..entry(EventKind::Created, task)
    };
    journal.append(entry).await.unwrap().revision
}

fn admit(task: &mut Task) {
    task.queued = Some(Queued {
        admitted: Some(Timestamp::now()),
    });
}

/// The number of requests that are kept for waiting tasks.
fn kept(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("waiting")).unwrap().count()
}

/// X1, N4: the next server can start a waiting task; after that, its secrets are deleted.
#[tokio::test]
async fn a_request_is_kept_until_its_task_has_started() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut task = waiting_task(&journal, spec());
    create(&journal, &task, request(None)).await;
    journal.close().await.unwrap();
    drop(journal);
    let journal = open(dir.path());
    let found = journal.waiting_request(&task).await.unwrap();
    assert_eq!(found, Some(request(None)));
    admit(&mut task);
    append(&journal, EventKind::Admitted, &task).await;
    assert!(journal.waiting_request(&task).await.unwrap().is_some());
    start(&mut task);
    append(&journal, EventKind::Started, &task).await;
    assert_eq!(journal.waiting_request(&task).await.unwrap(), None);
    assert_eq!(kept(dir.path()), 0);
}

/// X1, N4
#[tokio::test]
async fn the_request_of_a_task_that_ends_while_it_waits_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut task = waiting_task(&journal, spec());
    create(&journal, &task, request(None)).await;
    assert_eq!(kept(dir.path()), 1);
    end(&mut task, EndState::Cancelled);
    append(&journal, EventKind::Ended, &task).await;
    assert_eq!(kept(dir.path()), 0);
}

/// X1, N4: a server died between the record of a start and the deletion, or before the record of a task.
#[tokio::test]
async fn requests_that_no_task_needs_are_deleted_when_the_journal_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let waiting = waiting_task(&journal, spec());
    create(&journal, &waiting, request(Some("r"))).await;
    let stored = |seq: u64| dir.path().join("waiting").join(seq.to_string());
    std::fs::copy(stored(waiting.seq.0), stored(77)).unwrap();
    drop(journal);
    let journal = open(dir.path());
    assert_eq!(kept(dir.path()), 1);
    let found = journal.waiting_request(&waiting).await.unwrap();
    assert_eq!(found, Some(request(Some("r"))));
}

/// N4
#[tokio::test]
async fn a_refused_task_leaves_no_request() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let first = waiting_task(&journal, spec());
    create(&journal, &first, request(Some("r"))).await;
    let second = Entry {
        request: Some(request(Some("r"))),
        ..entry(EventKind::Created, &waiting_task(&journal, spec()))
    };
    assert!(journal.append(second).await.is_err(), "the id is taken");
    assert_eq!(kept(dir.path()), 1);
}

/// S9
#[tokio::test]
async fn a_request_that_was_answered_as_waiting_keeps_that_answer() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let spec = Spec {
        queue: Some("q".to_owned()),
        ..spec()
    };
    let mut task = waiting_task(&journal, spec);
    let created = create(&journal, &task, request(Some("r"))).await;
    let id = task.id.clone();
    let answer = async |journal: &Journal| {
        let prior = journal
            .find_request(&request(Some("r")))
            .await
            .unwrap()
            .unwrap();
        let first = journal.first_answer(&id).await.unwrap();
        let prior = prior.answer.map(|event| event.revision);
        assert_eq!(prior, first.map(|event| event.revision));
        prior
    };
    assert_eq!(answer(&journal).await, Some(created));
    admit(&mut task);
    append(&journal, EventKind::Admitted, &task).await;
    start(&mut task);
    append(&journal, EventKind::Started, &task).await;
    assert_eq!(answer(&journal).await, Some(created));
    end(&mut task, EndState::Completed);
    append(&journal, EventKind::Ended, &task).await;
    finish_one(&journal).await;
    while journal.prune_events(journal.head()).await.unwrap() {}
    assert_eq!(
        answer(&journal).await,
        Some(created),
        "also after it was pruned"
    );
    journal.close().await.unwrap();
    drop(journal);
    assert_eq!(answer(&open(dir.path())).await, Some(created));
}

/// S9, X4
#[tokio::test]
async fn a_task_that_waits_for_the_end_of_another_is_answered_when_it_runs() {
    for mode in [ExclusiveMode::Replace, ExclusiveMode::Ensure] {
        answered_when_it_runs(mode).await;
    }
}

async fn answered_when_it_runs(mode: ExclusiveMode) {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let exclusive = Exclusive {
        key: "k".to_owned(),
        mode,
        variables: [].into(),
    };
    let spec = Spec {
        exclusive: Some(exclusive),
        ..spec()
    };
    let mut task = waiting_task(&journal, spec);
    create(&journal, &task, request(Some("r"))).await;
    let prior = journal
        .find_request(&request(Some("r")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(prior.answer, None);
    admit(&mut task);
    append(&journal, EventKind::Admitted, &task).await;
    start(&mut task);
    let started = append(&journal, EventKind::Started, &task).await;
    let prior = journal
        .find_request(&request(Some("r")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(prior.answer, Some(started));
}

/// X1
#[tokio::test]
async fn settings_of_queues_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let [two, paused] =
        [(2, false), (1, true)].map(|(slots, paused)| QueueSettings { slots, paused });
    journal.set_queue("a".into(), two).await.unwrap();
    journal.set_queue("b".into(), two).await.unwrap();
    journal.set_queue("b".into(), paused).await.unwrap();
    journal.set_queue("c".into(), two).await.unwrap();
    journal
        .set_queue("c".into(), QueueSettings::default())
        .await
        .unwrap();
    assert_eq!(journal.head(), Revision(0), "no event");
    drop(journal);
    let mut queues = open(dir.path()).queues().await.unwrap();
    queues.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(queues, [("a".to_owned(), two), ("b".to_owned(), paused)]);
}

#[tokio::test]
async fn a_damaged_row_of_a_queue_costs_itself() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let two = QueueSettings {
        slots: 2,
        paused: false,
    };
    for name in ["a", "b"] {
        journal.set_queue(name.into(), two).await.unwrap();
    }
    raw(dir.path())
        .execute("UPDATE queues SET slots = 'many' WHERE name = 'a'", [])
        .unwrap();
    let queues = journal.queues().await.unwrap();
    assert_eq!(queues, [("b".to_owned(), two)]);
}

/// E10
#[tokio::test]
async fn sessions_with_owners_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let own = |session: &str, window| journal.set_owned(session.to_owned(), window);
    let [long, short] = [Duration::MAX, Duration::from_millis(7)];
    for (session, window) in [("a", long), ("b", long), ("b", short), ("c", short)] {
        own(session, Some(window)).await.unwrap();
    }
    own("c", None).await.unwrap();
    own("never owned", None).await.unwrap();
    assert_eq!(journal.head(), Revision(0), "no event");
    drop(journal);
    let mut owned = open(dir.path()).owned_sessions().await.unwrap();
    owned.sort();
    let longest = Duration::from_micros(i64::MAX.unsigned_abs());
    assert_eq!(owned, [("a".to_owned(), longest), ("b".to_owned(), short)]);
}

/// E10
#[tokio::test]
async fn a_damaged_row_of_a_session_with_owners_costs_itself() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let window = Duration::from_secs(3);
    for session in ["a", "b"] {
        journal
            .set_owned(session.to_owned(), Some(window))
            .await
            .unwrap();
    }
    raw(dir.path())
        .execute(
            "UPDATE owned_sessions SET reattach_window = 'soon' WHERE session_id = 'a'",
            [],
        )
        .unwrap();
    let owned = journal.owned_sessions().await.unwrap();
    assert_eq!(owned, [("b".to_owned(), window)]);
}
