//! Files that an earlier version has left.

use super::*;
use crate::{
    journal::{ListQuery, schema::STEPS},
    task::{Activity, TaskId},
};

const VERSION_1: &str = include_str!("../schema/version-1.sql");

fn old_file(dir: &Path) {
    raw(dir).execute_batch(VERSION_1).expect("the file is made");
}

fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

/// R8
#[tokio::test]
async fn a_file_of_the_first_version_is_taken_over_with_all_that_is_in_it() {
    let dir = tempfile::tempdir().unwrap();
    old_file(dir.path());
    let journal = open(dir.path());
    assert_eq!(
        (journal.oldest(), journal.head()),
        (Revision(1), Revision(8))
    );
    assert_eq!(
        journal.next_seq(),
        Seq(15),
        "a removed task's number is not used again"
    );
    let finished = journal.task(&id("shell-k3v7q2mzha")).await.unwrap();
    assert_eq!(finished.unwrap().output_bytes, 812);
    let prior = journal.find_request("r1").await.unwrap().unwrap();
    assert_eq!(prior.answer.unwrap().revision, Revision(2));
    let live: Vec<_> = journal.live().await.unwrap();
    assert_eq!(live.len(), 1);
    assert_eq!(live[0].id, id("shell-abcdefghij"));
    assert_eq!(all_after(&journal, Revision(0), 3).await.len(), 8);
    let query = ListQuery {
        include_finished: true,
        page_size: 10,
        ..Default::default()
    };
    assert_eq!(journal.list(query).await.unwrap().tasks.len(), 2);
}

/// R8, L7: what retention goes by is there for the tasks of old as well.
#[tokio::test]
async fn the_tasks_of_an_old_file_are_counted_and_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    old_file(dir.path());
    let journal = open(dir.path());
    journal.census().await.unwrap();
    let held = journal.finished_holdings();
    assert_eq!((held.tasks, held.output_bytes), (1, 812));
    let oldest = journal.oldest_finished(10).await.unwrap();
    assert_eq!(oldest.len(), 1);
    assert_eq!(oldest[0].ended, Timestamp(1_763_000_000_000_005));
    journal.remove(vec![oldest[0].id.clone()]).await.unwrap();
    assert_eq!(journal.finished_holdings().tasks, 0);
}

/// R8
#[tokio::test]
async fn a_file_that_was_taken_over_is_what_a_new_one_is() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    old_file(old.path());
    drop(open(old.path()));
    drop(open(new.path()));
    let tables = |dir: &Path| -> Vec<(String, String)> {
        let file = raw(dir);
        let mut select = file
            .prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
            .unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    };
    assert_eq!(tables(old.path()), tables(new.path()));
}

/// R8: an upgrade that fails half-way leaves the file as it was, for the older server too.
#[tokio::test]
async fn an_upgrade_that_fails_leaves_the_file_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    old_file(dir.path());
    raw(dir.path())
        .execute_batch("CREATE TABLE seen (in_the_way INTEGER)")
        .unwrap();
    let refused = Journal::open(dir.path(), Durability::Process, BOOT).unwrap_err();
    assert!(refused.to_string().contains("journal.db"), "{refused}");
    let file = raw(dir.path());
    let version: i32 = file
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 1);
    file.execute_batch("DROP TABLE seen").unwrap();
    drop(file);
    assert_eq!(open(dir.path()).head(), Revision(8));
}

/// R8, E9: the second version did not count; what is live in its file is counted all the same.
#[tokio::test]
async fn the_sessions_of_an_older_file_are_counted_from_its_live_tasks_on() {
    let dir = tempfile::tempdir().unwrap();
    old_file(dir.path());
    let file = raw(dir.path());
    file.execute_batch(STEPS[1]).unwrap();
    file.pragma_update(None, "user_version", 2).unwrap();
    drop(file);
    let journal = open(dir.path());
    let told = all_after(&journal, Revision(0), 3).await;
    assert!(told.iter().all(|event| event.activity.is_none()));
    let live = journal.task(&id("shell-abcdefghij")).await.unwrap();
    let mut task = Task::clone(&live.unwrap());
    end(&mut task, EndState::Completed);
    let ended = append(&journal, EventKind::Ended, &task).await;
    assert_eq!(ended.activity, Some(Activity::default()));
    match journal.fact_at(Revision(10)).await.unwrap() {
        Some(Fact::SessionIdle(idle)) => assert_eq!(idle.session_id, "s1"),
        other => panic!("{other:?}"),
    }
}
