//! Appending and removing: order, durability, refusals.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
};

use super::*;
use crate::{journal::JournalError, task::TaskId};

/// E1, E2
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_appenders_get_revisions_without_a_gap_in_their_own_order() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut appenders = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let journal = journal.clone();
        appenders.spawn(async move {
            for _ in 0..25 {
                let task = finish_one(&journal).await;
                assert!(
                    task.revision <= journal.head(),
                    "an appended event can be read"
                );
            }
        });
    }
    appenders.join_all().await;

    let events = all_after(&journal, Revision(0), 100).await;
    assert!(
        events
            .iter()
            .map(|event| event.revision.0)
            .eq(1..=16 * 25 * 3)
    );
    let mut lives: BTreeMap<Seq, Vec<EventKind>> = BTreeMap::new();
    for event in &events {
        assert_eq!(event.task.revision, event.revision);
        lives.entry(event.task.seq).or_default().push(event.kind);
    }
    assert_eq!(lives.len(), 16 * 25);
    let life = [EventKind::Created, EventKind::Started, EventKind::Ended];
    assert!(lives.values().all(|kinds| *kinds == life));
    assert!(journal.live().await.unwrap().is_empty());
}

/// R1
#[tokio::test]
async fn every_acknowledged_event_survives_kill_9() {
    const NAME: &str = "journal::tests::appending::every_acknowledged_event_survives_kill_9";
    const VARIABLE: &str = "JOURNAL_TO_BE_KILLED";
    if let Some(dir) = env::var_os(VARIABLE) {
        return append_until_killed(&PathBuf::from(dir)).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(VARIABLE, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = 0;
    // Reads on after the kill: the lines that are still in the pipe were acknowledged, too.
    for line in BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
    {
        let Some(revision) = line.strip_prefix("acknowledged ") else {
            continue;
        };
        acknowledged = revision.parse().unwrap();
        if acknowledged == 2001 {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();

    let journal = open(dir.path());
    assert!(
        acknowledged >= 2001,
        "the child ended too early, at {acknowledged}"
    );
    assert!(journal.head().0 >= acknowledged);
    let events = all_after(&journal, Revision(0), 256).await;
    assert!(
        events
            .iter()
            .map(|event| event.revision.0)
            .eq(1..=journal.head().0)
    );
    assert!(events.iter().map(|event| event.task.seq).max() < Some(journal.next_seq()));
}

/// Prints one line for the three events of each task, once they are durable.
async fn append_until_killed(dir: &Path) {
    let journal = open(dir);
    loop {
        let line = format!("acknowledged {}\n", finish_one(&journal).await.revision.0);
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }
}

/// R1: no acknowledged event is in the server's memory alone.
#[tokio::test]
async fn a_copy_of_the_files_has_every_acknowledged_event() {
    for durability in [Durability::Process, Durability::Power] {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path(), durability, BOOT).unwrap();
        let finished = finish_one(&journal).await;
        append(&journal, EventKind::Created, &new_task(&journal)).await;

        let copy = tempfile::tempdir().unwrap();
        for name in ["journal.db", "journal.db-wal"] {
            fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
        }
        let second = open(copy.path());
        assert_eq!(second.head(), journal.head());
        assert_eq!(*second.task(&finished.id).await.unwrap().unwrap(), finished);
        assert_eq!(second.live().await.unwrap(), journal.live().await.unwrap());
        let events = all_after(&journal, Revision(0), 10).await;
        assert_eq!(all_after(&second, Revision(0), 10).await, events);
    }
}

/// E1
#[tokio::test]
async fn a_task_is_created_once_and_ends_once_and_no_event_follows() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let finished = finish_one(&journal).await;
    let mut unknown = new_task(&journal);
    start(&mut unknown);
    let head = journal.head();
    for (wrong, task) in [
        (EventKind::Created, &finished),
        (EventKind::Stopping, &finished),
        (EventKind::Ended, &finished),
        (EventKind::Removed, &finished),
        (EventKind::Started, &unknown),
    ] {
        match journal.append(entry(wrong, task)).await {
            Err(JournalError::Misplaced { id, kind }) => {
                assert_eq!((id, kind), (task.id.clone(), wrong))
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(journal.head(), head);
    assert_eq!(
        finish_one(&journal).await.revision.0,
        head.0 + 3,
        "a refusal used a revision"
    );
}

/// L6
#[tokio::test]
async fn remove_takes_all_tasks_or_none_and_its_events_have_their_last_states() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let (first, second) = (finish_one(&journal).await, finish_one(&journal).await);
    let live = new_task(&journal);
    append(&journal, EventKind::Created, &live).await;
    let unknown: TaskId = "shell-aaaaaaaaaa".parse().unwrap();
    let head = journal.head();

    let refused = journal
        .remove(vec![first.id.clone(), live.id.clone()])
        .await;
    assert!(matches!(refused, Err(JournalError::NotFinished { id }) if id == live.id));
    let refused = journal
        .remove(vec![first.id.clone(), unknown.clone()])
        .await;
    assert!(matches!(refused, Err(JournalError::NotFound { id }) if id == unknown));
    assert_eq!(journal.head(), head);
    assert!(journal.task(&first.id).await.unwrap().is_some());

    let ids = vec![first.id.clone(), second.id.clone(), first.id.clone()];
    let removed = journal.remove(ids).await.unwrap();
    let events: Vec<_> = removed
        .iter()
        .map(|event| (event.kind, event.task.id.clone()))
        .collect();
    assert_eq!(
        events,
        [&first, &second].map(|task| (EventKind::Removed, task.id.clone()))
    );
    assert_eq!(removed[0].task.ended, first.ended);
    assert_eq!(all_after(&journal, head, 10).await, removed);
    for id in [&first.id, &second.id] {
        assert_eq!(journal.task(id).await.unwrap(), None);
    }
    let refused = journal.remove(vec![first.id.clone()]).await;
    assert!(matches!(refused, Err(JournalError::NotFound { .. })));
}

/// S12
#[tokio::test]
async fn the_number_of_a_removed_task_is_not_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let (first, last) = (finish_one(&journal).await, finish_one(&journal).await);
    journal.remove(vec![last.id, first.id]).await.unwrap();
    let head = journal.head();
    journal.close().await.unwrap();
    drop(journal);
    let journal = open(dir.path());
    assert_eq!(
        (journal.next_seq(), journal.head()),
        (Seq(last.seq.0 + 1), head)
    );
}

/// R7
#[tokio::test]
async fn a_closed_journal_accepts_no_facts_and_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let finished = finish_one(&journal).await;
    journal.close().await.unwrap();
    journal.close().await.unwrap();
    let late = journal
        .append(entry(EventKind::Created, &new_task(&journal)))
        .await;
    assert!(matches!(late, Err(JournalError::Closed)));
    assert!(matches!(
        journal.remove(vec![]).await,
        Err(JournalError::Closed)
    ));
    assert_eq!(
        *journal.task(&finished.id).await.unwrap().unwrap(),
        finished
    );
    let wal = fs::read(dir.path().join("journal.db-wal")).unwrap();
    assert!(wal.starts_with(file::RETIRED_HEADER), "the WAL has commits");
    let copy = tempfile::tempdir().unwrap();
    fs::copy(file::path(dir.path()), file::path(copy.path())).unwrap();
    let found = open(copy.path()).task(&finished.id).await.unwrap();
    assert_eq!(found.as_deref(), Some(&finished), "the file alone is whole");
}
