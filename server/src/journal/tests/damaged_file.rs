//! A damaged file: refused by name and left as it is, or readable except for the damage.

use std::{error::Error, fs};

use super::*;
use crate::journal::JournalError;

/// Creates a journal with 200 finished tasks, and closes it.
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

/// Checks that the journal is refused with an error that names the file, and left as it is.
fn refused(dir: &Path) -> JournalError {
    let path = file::path(dir);
    let before = fs::read(&path).unwrap();
    let refused = Journal::open(dir, Durability::Process, BOOT).expect_err("it is refused");
    let path_text = path.to_str().unwrap();
    assert!(refused.to_string().contains(path_text), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), before, "left as it is");
    refused
}

/// R4
#[tokio::test]
async fn a_damaged_first_page_is_refused_with_the_name_of_the_file() {
    for at in [0, 16, 20, 60, 68, 100] {
        let dir = tempfile::tempdir().unwrap();
        file_with_tasks(dir.path()).await;
        flip(&file::path(dir.path()), at, 4);
        refused(dir.path());
    }
}

/// R4
#[tokio::test]
async fn a_truncated_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    file_with_tasks(dir.path()).await;
    let path = file::path(dir.path());
    for length in [100, 1000, 4096, 3 * 4096, 5 * 4096 + 7] {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(length).unwrap();
        refused(dir.path());
        let other = tempfile::tempdir().unwrap();
        file_with_tasks(other.path()).await;
        fs::copy(file::path(other.path()), &path).unwrap();
    }
}

/// R4: an empty file is a new journal, unless there is a WAL with facts.
#[tokio::test]
async fn an_emptied_file_is_not_taken_for_a_new_journal() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    finish_one(&journal).await;
    let wal = file::wal(&file::path(dir.path()));
    let facts = fs::read(&wal).unwrap();
    // The writer thread has ended, and no longer writes to the file.
    journal.close().await.unwrap();
    drop(journal);
    fs::write(file::path(dir.path()), "").unwrap();
    fs::write(&wal, &facts).unwrap();
    assert!(!Journal::is_missing(dir.path()));
    let error = refused(dir.path());
    assert!(matches!(error, JournalError::Emptied { .. }), "{error:?}");
    assert_eq!(fs::read(&wal).unwrap(), facts);
}

/// R4: a read of a record on the page is an error that names the revision.
#[tokio::test]
async fn a_damaged_page_in_the_middle_costs_the_records_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = file_with_tasks(dir.path()).await;
    let path = file::path(dir.path());
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

/// R4: SQLite rebuilds its shared memory file.
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
fn a_directory_or_a_pipe_in_place_of_the_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(file::path(dir.path())).unwrap();
    let error = Journal::open(dir.path(), Durability::Process, BOOT).unwrap_err();
    assert!(error.to_string().contains("journal.db"), "{error}");
    assert!(!Journal::is_missing(dir.path()));

    let dir = tempfile::tempdir().unwrap();
    let path = file::path(dir.path());
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = Journal::open(dir.path(), Durability::Process, BOOT).unwrap_err();
    assert!(error.to_string().contains("journal.db"), "{error}");
}

/// R4
#[tokio::test]
async fn a_row_with_values_of_the_wrong_type_costs_itself() {
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

/// R4, L9: an index may lose a task from a list by the indexed column, never by its id.
#[tokio::test]
async fn a_flipped_bit_in_an_index_hides_no_task_from_its_id() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = file_with_tasks(dir.path()).await;
    let good = fs::read(file::path(dir.path())).unwrap();
    let page_size = 4096;
    let is_index_leaf = |page: &usize| good[page * page_size] == 0x0a;
    let leaves: Vec<usize> = (1..good.len() / page_size).filter(is_index_leaf).collect();
    assert!(leaves.len() > 4, "{leaves:?}");
    for leaf in leaves {
        let page = &good[leaf * page_size..][..page_size];
        let cell = usize::from(u16::from_be_bytes([page[8], page[9]]));
        // Behind the sizes of the payload and of its header: the types and values of the key.
        for at in cell + 2..cell + 14 {
            let mut bytes = good.clone();
            bytes[leaf * page_size + at] ^= 1;
            fs::write(file::path(dir.path()), bytes).unwrap();
            let journal = open(dir.path());
            for task in &tasks {
                let found = journal.task(&task.id).await.unwrap();
                assert_eq!(found.as_deref(), Some(task), "page {leaf}, byte {at}");
            }
            drop(journal);
        }
    }
}

/// R4, L9
#[tokio::test]
async fn a_row_that_contradicts_the_id_or_its_record_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = file_with_tasks(dir.path()).await;
    let [first, second, third] = [0, 1, 2].map(|index| &tasks[index]);
    let file = raw(dir.path());
    let swap = "UPDATE tasks SET id = ?1 WHERE seq = ?2";
    file.execute(swap, (second.id.as_str(), first.seq.0 as i64))
        .unwrap();
    let point = "UPDATE tasks SET revision = ?1 WHERE seq = ?2";
    file.execute(point, (third.revision.0 as i64, second.seq.0 as i64))
        .unwrap();
    drop(file);
    let journal = open(dir.path());
    for task in [first, second] {
        let error = journal.task(&task.id).await.unwrap_err();
        assert!(matches!(error, JournalError::Damaged { .. }), "{error:?}");
        let error = journal.remove(vec![task.id.clone()]).await.unwrap_err();
        assert!(matches!(error, JournalError::Damaged { .. }), "{error:?}");
    }
    let error = journal.unknown(vec![first.id.clone()]).await.unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error:?}");
    assert!(journal.task(&third.id).await.unwrap().is_some());
    let of_another_kind = journal.id_key().task_id(Kind::Agent, third.seq);
    assert_eq!(journal.task(&of_another_kind).await.unwrap(), None);
}

/// R4, S9: a request is never taken for a new one, which would be executed a second time.
#[tokio::test]
async fn a_request_is_found_despite_damage_to_its_table_or_index() {
    let (whole, name) = (tempfile::tempdir().unwrap(), "request-0100");
    let journal = open(whole.path());
    for number in 0..200 {
        let created = Entry {
            request: Some(request(Some(&format!("request-{number:04}")))),
            ..entry(EventKind::Created, &new_task(&journal))
        };
        journal.append(created).await.unwrap();
    }
    let wanted = journal.find_request(&request(Some(name))).await.unwrap();
    let wanted = wanted.unwrap().task.id.clone();
    journal.close().await.unwrap();
    drop(journal);
    let path = file::path(whole.path());
    let content = fs::read(&path).unwrap();
    let places = content.windows(name.len()).enumerate();
    let places: Vec<_> = places
        .filter_map(|(at, text)| (text == name.as_bytes()).then_some(at))
        .collect();
    assert!(places.len() >= 2, "one in the table, one in its index");
    for place in places {
        // The id, and the number behind it in the index.
        for at in [0, 9, name.len()] {
            flip(&path, place + at, 1);
            let journal = open(whole.path());
            if let Ok(found) = journal.find_request(&request(Some(name))).await {
                let found = found.map(|prior| prior.task.id.clone());
                assert_eq!(found.as_ref(), Some(&wanted), "{place} + {at}");
            }
            journal.close().await.unwrap();
            drop(journal);
            fs::write(&path, &content).unwrap();
        }
    }
}
