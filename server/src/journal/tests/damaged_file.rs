//! A file that is damaged as a whole or in places: told, named, and left as it is.

use std::{error::Error, fs};

use super::*;
use crate::journal::JournalError;

/// Two hundred finished tasks, closed in good order.
async fn file_with_tasks(dir: &Path) -> Vec<Task> {
    let journal = open(dir);
    let mut tasks = Vec::new();
    for _ in 0..200 {
        tasks.push(finish_one(&journal).await);
    }
    journal.close().await.unwrap();
    tasks
}

fn flip(path: &Path, at: usize, count: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at..at + count]
        .iter_mut()
        .for_each(|byte| *byte ^= 0xa5);
    fs::write(path, bytes).unwrap();
}

/// That the journal is refused, that the refusal names the file, and that the file stays.
fn refused(dir: &Path) -> JournalError {
    let path = file::file(dir);
    let before = fs::read(&path).unwrap();
    let refused = Journal::open(dir, Durability::Process, BOOT).expect_err("a refusal");
    let path_text = path.to_str().unwrap();
    assert!(refused.to_string().contains(path_text), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), before, "it was left as it is");
    refused
}

/// R4
#[tokio::test]
async fn a_damaged_first_page_is_a_refusal_that_names_the_file() {
    for at in [0, 16, 20, 60, 68, 100] {
        let dir = tempfile::tempdir().unwrap();
        file_with_tasks(dir.path()).await;
        flip(&file::file(dir.path()), at, 4);
        refused(dir.path());
    }
}

/// R4
#[tokio::test]
async fn a_file_that_was_cut_short_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    file_with_tasks(dir.path()).await;
    let path = file::file(dir.path());
    for length in [100, 1000, 4096, 3 * 4096, 5 * 4096 + 7] {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(length).unwrap();
        refused(dir.path());
        let other = tempfile::tempdir().unwrap();
        file_with_tasks(other.path()).await;
        fs::copy(file::file(other.path()), &path).unwrap();
    }
}

/// R4: an empty file is a new journal, but not with facts in the WAL beside it.
#[tokio::test]
async fn an_emptied_file_is_not_taken_for_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    finish_one(&journal).await;
    let wal = file::wal(&file::file(dir.path()));
    let facts = fs::read(&wal).unwrap();
    // Its thread has ended then, and writes to the file no more.
    journal.close().await.unwrap();
    drop(journal);
    fs::write(file::file(dir.path()), "").unwrap();
    fs::write(&wal, &facts).unwrap();
    assert!(!Journal::is_missing(dir.path()));
    let error = refused(dir.path());
    assert!(matches!(error, JournalError::Emptied { .. }), "{error:?}");
    assert_eq!(fs::read(&wal).unwrap(), facts);
}

/// R4: a damaged page in the middle costs what is on it; asked for, it is named.
#[tokio::test]
async fn a_damaged_page_in_the_middle_costs_what_is_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = file_with_tasks(dir.path()).await;
    let path = file::file(dir.path());
    let record = format!(r#""id":"{}""#, tasks[100].id);
    let at = fs::read(&path)
        .unwrap()
        .windows(record.len())
        .position(|window| window == record.as_bytes());
    flip(&path, at.unwrap() / 4096 * 4096, 64);
    let journal = open(dir.path());
    let (mut read, mut damaged) = (0, 0);
    let mut cursor = Revision(0);
    while cursor < journal.head() {
        match journal.facts_after(cursor, 50).await {
            Ok(events) => {
                read += events.len();
                cursor = events.last().unwrap().revision();
            }
            Err(error) => {
                let error: &dyn Error = &error;
                assert!(error.to_string().contains("damaged"), "{error}");
                damaged += 1;
                cursor.0 += 1;
            }
        }
    }
    assert!((1..20).contains(&damaged), "{damaged}");
    assert_eq!(read + damaged, 600);
    finish_one(&journal).await;
}

/// R4: what a crash leaves of the shared memory file means nothing, and is made anew.
#[tokio::test]
async fn a_damaged_shared_memory_file_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let task = finish_one(&journal).await;
    let copy = tempfile::tempdir().unwrap();
    for suffix in ["", "-wal"] {
        let name = format!("journal.db{suffix}");
        fs::copy(dir.path().join(&name), copy.path().join(&name)).unwrap();
    }
    fs::write(copy.path().join("journal.db-shm"), [0x5a; 40_000]).unwrap();
    let journal = open(copy.path());
    assert_eq!(*journal.task(&task.id).await.unwrap().unwrap(), task);
}

/// R4
#[test]
fn a_directory_or_a_pipe_in_its_place_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(file::file(dir.path())).unwrap();
    let error = Journal::open(dir.path(), Durability::Process, BOOT).unwrap_err();
    assert!(error.to_string().contains("journal.db"), "{error}");
    assert!(!Journal::is_missing(dir.path()));

    let dir = tempfile::tempdir().unwrap();
    let path = file::file(dir.path());
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = Journal::open(dir.path(), Durability::Process, BOOT).unwrap_err();
    assert!(error.to_string().contains("journal.db"), "{error}");
}

/// R4: rows that are not what rows are cost themselves.
#[tokio::test]
async fn a_row_that_is_no_row_costs_itself() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut finished = Vec::new();
    for _ in 0..3 {
        finished.push(finish_one(&journal).await);
    }
    for _ in 0..2 {
        append(&journal, EventKind::Created, &new_task(&journal)).await;
    }
    journal.close().await.unwrap();
    drop(journal);
    let damages = [
        "UPDATE events SET at = 'yesterday' WHERE revision = 2",
        "UPDATE events SET kind = x'00ff' WHERE revision = 4",
        "UPDATE events SET record = NULL OR 5 WHERE revision = 5",
        "UPDATE tasks SET revision = 'the last' WHERE seq = 2",
        "UPDATE tasks SET created_revision = 'first' WHERE seq = 4",
    ];
    for damage in damages {
        assert_eq!(raw(dir.path()).execute(damage, []).unwrap(), 1, "{damage}");
    }
    let journal = open(dir.path());
    for (revision, damaged) in [(1, false), (2, true), (3, false), (4, true), (5, true)] {
        let event = journal.fact_at(Revision(revision)).await;
        assert_eq!(event.is_err(), damaged, "{revision}: {event:?}");
    }
    assert_eq!(journal.live().await.unwrap().len(), 1);
    let query = crate::journal::ListQuery {
        include_finished: true,
        page_size: 10,
        ..Default::default()
    };
    assert_eq!(journal.list(query).await.unwrap().tasks.len(), 3);
    finish_one(&journal).await;
}
