//! Pruning of events and finished tasks.

use super::*;
use crate::{
    journal::{Candidate, FinishedClass, JournalError, ReadError},
    task::{Foreground, OnDisconnect, OnForegroundTimeout, TaskId},
};

async fn prune(journal: &Journal, up_to: u64) {
    while journal.prune_events(Revision(up_to)).await.unwrap() {}
}

fn rows(dir: &Path, table: &str) -> i64 {
    let count = format!("SELECT count(*) FROM {table}");
    raw(dir).query_row(&count, [], |row| row.get(0)).unwrap()
}

async fn oldest(journal: &Journal, class: FinishedClass, limit: usize) -> Vec<Candidate> {
    let found = journal.oldest_finished(class, Revision(0), limit).await;
    found.unwrap()
}

fn ids(found: &[Candidate]) -> Vec<TaskId> {
    found.iter().map(|candidate| candidate.id.clone()).collect()
}

/// E4
#[tokio::test]
async fn a_pruned_revision_is_out_of_range_and_the_later_events_have_no_gap() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    for _ in 0..400 {
        finish_one(&journal).await;
    }
    prune(&journal, 1000).await;
    assert_eq!(journal.oldest(), Revision(1000));
    for after in [0, 500, 998] {
        match journal.facts_after(Revision(after), 10).await {
            Err(ReadError::OutOfRange { oldest, newest }) => {
                assert_eq!((oldest, newest), (Revision(1000), Revision(1200)));
            }
            other => panic!("{after}: {other:?}"),
        }
    }
    let rest = all_after(&journal, Revision(999), 7).await;
    assert!(rest.iter().map(|event| event.revision.0).eq(1000..=1200));
    assert_eq!(journal.fact_at(Revision(999)).await.unwrap(), None);
    drop(journal);
    assert_eq!(
        open(dir.path()).oldest(),
        Revision(1000),
        "also after a restart"
    );
}

/// E2: tasks and requests stay the same, also after a restart.
#[tokio::test]
async fn pruning_keeps_the_events_that_hold_the_state_of_a_task() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut asked = new_task(&journal);
    let created = Entry {
        request: Some(request(Some("r1"))),
        ..entry(EventKind::Created, &asked)
    };
    journal.append(created).await.unwrap();
    start(&mut asked);
    let answer = append(&journal, EventKind::Started, &asked).await;
    end(&mut asked, EndState::Failed);
    asked.revision = append(&journal, EventKind::Ended, &asked).await.revision;
    let mut live = new_task(&journal);
    append(&journal, EventKind::Created, &live).await;
    start(&mut live);
    live.revision = append(&journal, EventKind::Started, &live).await.revision;
    let plain = finish_one(&journal).await;
    let last = finish_one(&journal).await;
    prune(&journal, u64::MAX).await;
    assert_eq!(journal.oldest(), journal.head(), "the latest event stays");
    // The answer and the end of the first task, both of the live one, the ends of the others.
    assert_eq!(rows(dir.path(), "events"), 2 + 2 + 1 + 1);

    for journal in [journal, open(dir.path())] {
        for task in [&asked, &live, &plain, &last] {
            assert_eq!(*journal.task(&task.id).await.unwrap().unwrap(), *task);
        }
        let prior = journal
            .find_request(&request(Some("r1")))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(prior.answer.unwrap().revision, answer.revision);
        assert!(journal.first_answer(&live.id).await.unwrap().is_some());
        assert_eq!(journal.live().await.unwrap().len(), 1);
        assert_eq!(journal.head(), last.revision);
    }
}

#[tokio::test]
async fn events_that_were_kept_for_a_task_go_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut task = new_task(&journal);
    append(&journal, EventKind::Created, &task).await;
    start(&mut task);
    append(&journal, EventKind::Started, &task).await;
    append(&journal, EventKind::Stopping, &task).await;
    finish_one(&journal).await;
    prune(&journal, u64::MAX).await;
    end(&mut task, EndState::Cancelled);
    append(&journal, EventKind::KillOverdue, &task).await;
    let other = finish_one(&journal).await;
    prune(&journal, u64::MAX).await;
    journal.remove(vec![task.id.clone()]).await.unwrap();
    prune(&journal, u64::MAX).await;
    let kept = all_after(&journal, Revision(journal.oldest().0 - 1), 10).await;
    assert_eq!(kept.len(), 1, "the Removed event");
    // The ends of the other two tasks, and the Removed event.
    assert_eq!(rows(dir.path(), "events"), 3);
    assert_eq!(*journal.task(&other.id).await.unwrap().unwrap(), other);
}

/// L7
#[tokio::test]
async fn delivered_ends_are_pruned_before_undelivered_ones() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut tasks = Vec::new();
    for _ in 0..4 {
        tasks.push(finish_one(&journal).await);
    }
    let live = new_task(&journal);
    append(&journal, EventKind::Created, &live).await;
    for task in [&tasks[3], &tasks[1], &live] {
        journal.note_delivered(task);
    }
    journal.write_delivered().await.unwrap();
    for journal in [journal.clone(), open(dir.path())] {
        let delivered = oldest(&journal, FinishedClass::Delivered, 10).await;
        assert_eq!(ids(&delivered), [tasks[1].id.clone(), tasks[3].id.clone()]);
        assert!(delivered[0].ended <= delivered[1].ended);
        assert!(delivered[0].ended > Timestamp(0));
        let all = oldest(&journal, FinishedClass::All, 2).await;
        assert_eq!(ids(&all), [tasks[0].id.clone(), tasks[1].id.clone()]);
    }
    journal
        .remove(ids(&oldest(&journal, FinishedClass::Delivered, 10).await))
        .await
        .unwrap();
    assert!(
        oldest(&journal, FinishedClass::Delivered, 10)
            .await
            .is_empty()
    );
    assert_eq!(rows(dir.path(), "delivered"), 0);
}

/// Finishes a task that was spawned in the foreground.
async fn finish_in_foreground(journal: &Journal, change: impl FnOnce(&mut Task)) -> Task {
    let mut task = new_task(journal);
    let spec = Spec {
        foreground: Some(Foreground {
            timeout: Duration::from_secs(60),
            on_timeout: OnForegroundTimeout::Detach,
            on_disconnect: OnDisconnect::Cancel,
            reattach_window: Duration::ZERO,
        }),
        ..Spec::clone(&task.spec)
    };
    task.spec = Arc::new(spec);
    append(journal, EventKind::Created, &task).await;
    start(&mut task);
    change(&mut task);
    end(&mut task, EndState::Completed);
    task.revision = append(journal, EventKind::Ended, &task).await.revision;
    task
}

/// F12
#[tokio::test]
async fn tasks_that_finished_in_the_foreground_are_found_oldest_first() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut tasks = Vec::new();
    for _ in 0..4 {
        finish_one(&journal).await;
        finish_in_foreground(&journal, |task| task.orphans_tracked = true).await;
        tasks.push(finish_in_foreground(&journal, |_| {}).await);
    }
    for task in [&tasks[3], &tasks[0], &tasks[2]] {
        journal.note_delivered(task);
    }
    journal.note_delivered(&finish_one(&journal).await);
    journal.write_delivered().await.unwrap();
    let id = |number: usize| tasks[number].id.clone();
    for journal in [journal.clone(), open(dir.path())] {
        let all = oldest(&journal, FinishedClass::Foreground, 10).await;
        assert_eq!(ids(&all), [id(0), id(1), id(2), id(3)]);
        let delivered = oldest(&journal, FinishedClass::DeliveredForeground, 10).await;
        assert_eq!(ids(&delivered), [id(0), id(2), id(3)]);
        assert_eq!(delivered[1].end, tasks[2].revision);
        let class = FinishedClass::DeliveredForeground;
        let next = journal.oldest_finished(class, delivered[0].end, 1).await;
        assert_eq!(ids(&next.unwrap()), [id(2)]);
        for (kept, before) in [(0, Some(3)), (1, Some(2)), (2, Some(0)), (3, None)] {
            let found = journal.delivered_foreground_before(kept).await.unwrap();
            assert_eq!(found, before.map(|number: usize| tasks[number].revision));
        }
    }
    journal.remove(vec![id(0), id(2)]).await.unwrap();
    let left = oldest(&journal, FinishedClass::DeliveredForeground, 10).await;
    assert_eq!(ids(&left), [id(3)]);
}

/// L7
#[tokio::test]
async fn no_delivery_of_a_removed_task_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let task = finish_one(&journal).await;
    journal.note_delivered(&task);
    journal.remove(vec![task.id.clone()]).await.unwrap();
    journal.write_delivered().await.unwrap();
    assert_eq!(rows(dir.path(), "delivered"), 0);
}

/// L7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_count_of_finished_tasks_is_exact_while_others_write() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut removable = Vec::new();
    for _ in 0..200 {
        removable.push(finish_one(&journal).await.id);
    }
    let journal = {
        drop(journal);
        open(dir.path())
    };
    let writing = tokio::spawn({
        let journal = journal.clone();
        async move {
            for id in removable.into_iter().take(150) {
                finish_one(&journal).await;
                journal.remove(vec![id]).await.unwrap();
            }
            finish_one(&journal).await;
        }
    });
    while !writing.is_finished() {
        journal.count_finished().await.unwrap();
    }
    writing.await.unwrap();
    assert_eq!(journal.finished_totals().tasks, 201);
    assert_eq!(rows(dir.path(), "tasks"), 201);
}

/// E4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_pruning_overtakes_gets_an_error_and_no_gap() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    for _ in 0..1500 {
        finish_one(&journal).await;
    }
    let pruning = tokio::spawn({
        let journal = journal.clone();
        async move {
            for up_to in (1..4000).step_by(100) {
                prune(&journal, up_to).await;
            }
        }
    });
    let mut overtaken = 0;
    let mut cursor = Revision(0);
    while cursor < journal.head() {
        match journal.facts_after(cursor, 20).await {
            Ok(events) => {
                let next = (cursor.0 + 1..).take(events.len());
                assert!(events.iter().map(|event| event.revision().0).eq(next));
                cursor = events.last().unwrap().revision();
            }
            Err(ReadError::OutOfRange { oldest, .. }) => {
                assert!(oldest.0 > cursor.0 + 1);
                overtaken += 1;
                cursor = Revision(oldest.0 - 1);
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    pruning.await.unwrap();
    println!("overtaken {overtaken} times");
}

#[tokio::test]
async fn the_pages_of_pruned_events_are_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut sizes = Vec::new();
    for _ in 0..4 {
        for _ in 0..500 {
            let task = finish_one(&journal).await;
            journal.remove(vec![task.id]).await.unwrap();
        }
        prune(&journal, journal.head().0).await;
        sizes.push(
            raw(dir.path())
                .query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))
                .unwrap(),
        );
    }
    assert!(sizes[3] <= sizes[0] * 11 / 10, "{sizes:?}");
}

/// R4
#[tokio::test]
async fn a_missing_event_is_an_error_with_its_revision() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    for _ in 0..3 {
        finish_one(&journal).await;
    }
    journal.close().await.unwrap();
    drop(journal);
    raw(dir.path())
        .execute("DELETE FROM events WHERE revision = 5", [])
        .unwrap();
    let journal = open(dir.path());
    let before = journal.facts_after(Revision(0), 100).await.unwrap();
    assert_eq!(before.last().unwrap().revision(), Revision(4));
    let missing = journal.facts_after(Revision(4), 100).await.unwrap_err();
    assert!(
        matches!(
            missing,
            ReadError::Journal(JournalError::Damaged {
                revision: Revision(5),
                ..
            })
        ),
        "{missing:?}"
    );
    assert_eq!(
        journal.facts_after(Revision(5), 100).await.unwrap().len(),
        4
    );
}
