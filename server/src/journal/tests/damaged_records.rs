//! A damaged record costs itself.

use super::*;
use crate::journal::{JournalError, ListQuery, ReadError};

const BIT_FLIPPED: &str =
    "UPDATE events SET record = '{' || char(35) || substr(record, 3) WHERE revision = ?1";
const TRUNCATED: &str =
    "UPDATE events SET record = substr(record, 1, length(record) / 2) WHERE revision = ?1";
const UNKNOWN_FORMAT: &str = "UPDATE events SET format = 99 WHERE revision = ?1";

/// A journal with three finished tasks and a live one, and damaged records at these revisions.
async fn damaged(dir: &Path, revisions: &[i64], damage: &str) -> (Journal, Vec<Task>, Task) {
    let journal = open(dir);
    let mut finished = Vec::new();
    for _ in 0..3 {
        finished.push(finish_one(&journal).await);
    }
    let mut live = new_task(&journal);
    append(&journal, EventKind::Created, &live).await;
    start(&mut live);
    live.revision = append(&journal, EventKind::Started, &live).await.revision;
    journal.close().await.expect("the journal closes");
    drop(journal);
    for revision in revisions {
        let rows = raw(dir)
            .execute(damage, [*revision])
            .expect("the file can be written");
        assert_eq!(rows, 1, "one record is damaged");
    }
    (open(dir), finished, live)
}

fn names_six(error: &JournalError) -> bool {
    matches!(
        error,
        JournalError::Damaged {
            revision: Revision(6),
            ..
        }
    )
}

/// R4
#[tokio::test]
async fn a_damaged_end_is_an_error_with_its_revision_and_all_other_records_are_readable() {
    for damage in [BIT_FLIPPED, TRUNCATED, UNKNOWN_FORMAT] {
        let dir = tempfile::tempdir().unwrap();
        let (journal, finished, live) = damaged(dir.path(), &[6], damage).await;
        let [first, second, third] = &finished[..] else {
            panic!("three are finished")
        };
        assert!(names_six(&journal.fact_at(Revision(6)).await.unwrap_err()));
        assert!(names_six(&journal.task(&second.id).await.unwrap_err()));
        assert!(names_six(
            &journal.remove(vec![second.id.clone()]).await.unwrap_err()
        ));
        assert_eq!(*journal.task(&third.id).await.unwrap().unwrap(), *third);

        let query = ListQuery {
            include_finished: true,
            page_size: 10,
            ..Default::default()
        };
        let listed = journal.list(query).await.unwrap();
        let ids: Vec<_> = listed.tasks.iter().map(|task| &task.id).collect();
        assert_eq!(ids, [&live.id, &third.id, &first.id]);
        finish_one(&journal).await;
    }
}

/// R4
#[tokio::test]
async fn a_watcher_gets_the_events_before_a_damaged_one_and_can_go_on_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _, _) = damaged(dir.path(), &[6], BIT_FLIPPED).await;
    let before = journal.facts_after(Revision(0), 100).await.unwrap();
    assert_eq!(before.last().unwrap().revision(), Revision(5));
    let at = journal.facts_after(Revision(5), 100).await.unwrap_err();
    assert!(matches!(at, ReadError::Journal(error) if names_six(&error)));
    let behind = journal.facts_after(Revision(6), 100).await.unwrap();
    assert!(behind.iter().map(|event| event.revision().0).eq(7..=11));
}

/// R4
#[tokio::test]
async fn a_live_task_with_a_damaged_record_is_read_from_an_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _, live) = damaged(dir.path(), &[11], BIT_FLIPPED).await;
    let known = journal.live().await.unwrap();
    assert_eq!(known.len(), 1);
    assert_eq!((&known[0].id, known[0].revision), (&live.id, Revision(10)));
}

/// R4
#[tokio::test]
async fn a_journal_opens_without_a_live_task_that_has_no_readable_record() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, finished, live) = damaged(dir.path(), &[10, 11], BIT_FLIPPED).await;
    assert!(journal.live().await.unwrap().is_empty());
    assert_eq!(journal.task(&live.id).await.unwrap(), None);
    assert_eq!(journal.head(), Revision(11));
    assert_eq!(
        *journal.task(&finished[0].id).await.unwrap().unwrap(),
        finished[0]
    );
}
