//! Reading, from memory and from the file.

use std::fs;

use super::*;
use crate::{
    journal::{JournalError, ListQuery, PriorRequest, ReadError},
    task::Filter,
};

/// E2
#[tokio::test]
async fn memory_and_file_have_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    // More than memory holds, so a cursor from the first event crosses from file to memory.
    while journal.head() < Revision(3000) {
        finish_one(&journal).await;
    }
    let events = all_after(&journal, Revision(0), 100).await;
    assert!(
        events
            .iter()
            .map(|event| event.revision.0)
            .eq(1..=journal.head().0)
    );
    let reopened = open(dir.path());
    assert_eq!(all_after(&reopened, Revision(0), 64).await, events);
    assert_eq!(
        all_after(&reopened, Revision(2990), 1).await,
        events[2990..]
    );
    for revision in [1, 500, 3000] {
        let event = Some(Fact::Task(Arc::clone(&events[revision - 1])));
        let revision = Revision(revision as u64);
        assert_eq!(journal.fact_at(revision).await.unwrap(), event);
        assert_eq!(reopened.fact_at(revision).await.unwrap(), event);
    }
    assert_eq!(journal.fact_at(Revision(0)).await.unwrap(), None);
    assert_eq!(journal.fact_at(Revision(9999)).await.unwrap(), None);
}

/// E4
#[tokio::test]
async fn an_unknown_revision_is_out_of_range_with_both_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    assert_eq!(
        (journal.oldest(), journal.head()),
        (Revision(1), Revision(0))
    );
    assert_eq!(journal.facts_after(Revision(0), 10).await.unwrap(), []);
    finish_one(&journal).await;
    let last = finish_one(&journal).await;
    let out_of_range = |read: Result<Vec<Fact>, ReadError>| match read {
        Err(ReadError::OutOfRange { oldest, newest }) => (oldest.0, newest.0),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        out_of_range(journal.facts_after(Revision(7), 10).await),
        (1, 6)
    );
    assert_eq!(
        out_of_range(journal.facts_after(Revision(u64::MAX), 10).await),
        (1, 6)
    );
    journal.prune_events(Revision(4)).await.unwrap();
    assert_eq!(
        out_of_range(journal.facts_after(Revision(2), 10).await),
        (4, 6)
    );
    let rest = journal.facts_after(Revision(3), 10).await.unwrap();
    assert_eq!(rest.last().unwrap().revision(), last.revision);
}

#[tokio::test]
async fn a_watcher_is_woken_with_a_revision_that_it_can_read() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut watch = journal.watch();
    assert_eq!(*watch.borrow_and_update(), Revision(0));
    let appended = append(&journal, EventKind::Created, &new_task(&journal)).await;
    watch.changed().await.unwrap();
    assert_eq!(*watch.borrow_and_update(), appended.revision);
    assert_eq!(
        journal.facts_after(Revision(0), 10).await.unwrap(),
        [Fact::Task(appended)]
    );
}

#[tokio::test]
async fn a_task_is_found_live_and_finished_and_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut live = new_task(&journal);
    append(&journal, EventKind::Created, &live).await;
    start(&mut live);
    live.revision = append(&journal, EventKind::Started, &live).await.revision;
    let finished = finish_one(&journal).await;
    let reopened = open(dir.path());
    for journal in [&journal, &reopened] {
        assert_eq!(*journal.task(&live.id).await.unwrap().unwrap(), live);
        assert_eq!(
            *journal.task(&finished.id).await.unwrap().unwrap(),
            finished
        );
        assert_eq!(
            journal
                .task(&"shell-aaaaaaaaaa".parse().unwrap())
                .await
                .unwrap(),
            None
        );
        let started = journal.first_answer(&live.id).await.unwrap().unwrap();
        assert_eq!(
            (started.kind, started.revision),
            (EventKind::Started, live.revision)
        );
        let started = journal.first_answer(&finished.id).await.unwrap().unwrap();
        assert_eq!(
            (started.kind, &started.task.ended),
            (EventKind::Started, &None)
        );
        assert_eq!(journal.live().await.unwrap(), [Arc::new(live.clone())]);
    }
}

async fn find(journal: &Journal, request_id: &str) -> Option<PriorRequest> {
    journal
        .find_request(&request(Some(request_id)))
        .await
        .expect("the journal can be read")
}

fn created(task: &Task, request_id: &str) -> Entry {
    Entry {
        request: Some(request(Some(request_id))),
        ..entry(EventKind::Created, task)
    }
}

/// S9
#[tokio::test]
async fn a_request_is_found_by_its_id_as_long_as_its_task_exists() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut task = new_task(&journal);
    journal.append(created(&task, "r1")).await.unwrap();
    let prior = find(&journal, "r1").await.unwrap();
    assert_eq!((&prior.task.id, prior.is_same), (&task.id, true));
    assert_eq!(prior.answer, None);
    assert!(find(&journal, "r2").await.is_none());

    let taken = journal.append(created(&new_task(&journal), "r1")).await;
    assert!(matches!(taken, Err(JournalError::RequestTaken { request_id }) if request_id == "r1"));
    start(&mut task);
    let started = append(&journal, EventKind::Started, &task).await;
    end(&mut task, EndState::Failed);
    let ended = append(&journal, EventKind::Ended, &task).await;

    let reopened = open(dir.path());
    let prior = find(&reopened, "r1").await.unwrap();
    assert_eq!(
        (prior.answer, prior.task),
        (Some(started), Arc::clone(&ended.task))
    );
    drop(reopened);
    journal.remove(vec![task.id.clone()]).await.unwrap();
    assert!(find(&journal, "r1").await.is_none());
    journal
        .append(created(&new_task(&journal), "r1"))
        .await
        .unwrap();
}

/// S9
#[tokio::test]
async fn a_failed_start_is_answered_with_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut task = new_task(&journal);
    journal.append(created(&task, "r1")).await.unwrap();
    assert_eq!(journal.first_answer(&task.id).await.unwrap(), None);
    end(&mut task, EndState::Failed);
    let ended = append(&journal, EventKind::Ended, &task).await;
    assert_eq!(
        find(&journal, "r1").await.unwrap().answer,
        Some(Arc::clone(&ended))
    );
    assert_eq!(journal.first_answer(&task.id).await.unwrap(), Some(ended));
}

/// N4
#[tokio::test]
async fn a_request_of_a_task_that_does_not_wait_leaves_no_secret_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let holds_secret = || {
        assert!(!dir.path().join("waiting").exists());
        fs::read_dir(dir.path()).unwrap().any(|file| {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            bytes
                .windows(17)
                .any(|window| window == b"xyzzy-is-a-secret")
        })
    };
    for id in [None, Some("r1")] {
        let created = entry(EventKind::Created, &new_task(&journal));
        journal
            .append(Entry {
                request: Some(request(id)),
                ..created
            })
            .await
            .unwrap();
        assert!(!holds_secret());
    }
}

/// S10: pages and batches are bounded in bytes, too.
#[tokio::test]
async fn very_large_tasks_take_more_pages_and_all_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let labels: BTreeMap<_, _> = (0..64)
        .map(|n| (n.to_string(), "x".repeat(16 << 10)))
        .collect();
    for _ in 0..4 {
        let spec = Spec {
            labels: labels.clone(),
            ..spec()
        };
        let mut task = task_with(journal.id_key(), journal.next_seq(), spec);
        append(&journal, EventKind::Created, &task).await;
        end(&mut task, EndState::Lost);
        append(&journal, EventKind::Ended, &task).await;
    }
    let batch = journal.facts_after(Revision(0), 100).await.unwrap();
    assert!(batch.len() < 8, "{} megabytes at once", batch.len());
    assert_eq!(all_after(&journal, Revision(0), 100).await.len(), 8);
    let mut query = ListQuery {
        include_finished: true,
        page_size: 100,
        ..Default::default()
    };
    let mut pages = Vec::new();
    loop {
        let page = journal.list(query.clone()).await.unwrap();
        pages.push(page.tasks.len());
        query.position = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert!(
        pages.len() > 1 && pages.iter().sum::<usize>() == 4,
        "{pages:?}"
    );
}

/// E3
#[tokio::test]
async fn a_snapshot_has_exactly_the_live_tasks_that_match() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let large = Spec {
        name: "x".repeat(1 << 20),
        ..spec()
    };
    let mut seqs = Vec::new();
    for session in ["s1", "s2", "s1", "s1", "s1"] {
        let spec = Spec {
            session_id: session.into(),
            ..large.clone()
        };
        let task = task_with(journal.id_key(), journal.next_seq(), spec);
        append(&journal, EventKind::Created, &task).await;
        seqs.push(task.seq);
    }
    finish_one(&journal).await;
    let filter = Filter {
        session_id: Some("s1".into()),
        ..Default::default()
    };
    let (live, revision) = journal.snapshot(&filter);
    let listed: Vec<Seq> = live.iter().map(|task| task.seq).collect();
    assert_eq!(listed, [seqs[4], seqs[3], seqs[2], seqs[0]]);
    assert_eq!(revision, journal.head());
}

/// S9: a record that a row points to is there, even if it is being deleted.
#[tokio::test]
async fn one_read_sees_one_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let task = finish_one(&journal).await;
    let count = |connection: &rusqlite::Connection| {
        let count = "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM events)";
        let counts = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        connection.query_row(count, [], counts).unwrap()
    };
    let pool = Arc::clone(&journal.shared.pool);
    let (first, second) = pool
        .read(|_, connection| {
            let first = count(connection);
            raw(dir.path())
                .execute_batch("DELETE FROM tasks; DELETE FROM events WHERE revision = 1")
                .unwrap();
            Ok((first, count(connection)))
        })
        .unwrap();
    assert_eq!(first, second);
    let later = pool.read(|_, connection| Ok(count(connection)));
    assert_ne!(later.unwrap(), first, "the next read sees the change");
    assert_eq!(task.revision, journal.head());
}
