//! Opening: the identity of a state directory, the mode of its files, and files that are refused.

use std::{fs, os::unix::fs::PermissionsExt};

use super::*;
use crate::journal::{JournalError, file::VERSION};

#[tokio::test]
async fn a_state_directory_keeps_its_identity_and_another_one_has_its_own() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let identity = |journal: &Journal| (journal.epoch(), journal.id_key());
    let first = identity(&open(dir.path()));
    assert_eq!(identity(&open(dir.path())), first);
    let second = identity(&open(other.path()));
    assert!(first.0 != second.0 && first.1 != second.1);
}

/// N4
#[tokio::test]
async fn only_the_owner_can_read_the_files_of_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    finish_one(&journal).await;
    let mut names = Vec::new();
    for file in fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.path());
        names.push(file.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["journal.db", "journal.db-shm", "journal.db-wal"]);
}

/// N4
#[test]
fn a_file_that_others_could_read_is_made_private() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let path = file::path(dir.path());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(dir.path()));
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

/// R4
#[test]
fn a_file_that_is_no_journal_is_refused_and_left_as_it_is() {
    let text = tempfile::tempdir().unwrap();
    fs::write(
        file::path(text.path()),
        "remember the milk, and a good deal more of it\n",
    )
    .unwrap();
    let database = tempfile::tempdir().unwrap();
    raw(database.path())
        .execute_batch("CREATE TABLE milk (litres INTEGER)")
        .unwrap();
    for dir in [text, database] {
        let before = fs::read(file::path(dir.path())).unwrap();
        let refused = Journal::open(dir.path(), Durability::Process, BOOT);
        assert!(
            matches!(refused, Err(JournalError::Foreign { .. })),
            "{refused:?}"
        );
        assert_eq!(fs::read(file::path(dir.path())).unwrap(), before);
    }
}

/// R8
#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let task = finish_one(&journal).await;
    journal.close().await.unwrap();
    drop(journal);
    raw(dir.path())
        .pragma_update(None, "user_version", VERSION + 1)
        .unwrap();
    let refused = Journal::open(dir.path(), Durability::Process, BOOT);
    assert!(
        matches!(
            refused,
            Err(JournalError::Newer { found, known: VERSION, .. }) if found == VERSION + 1
        ),
        "{refused:?}"
    );

    raw(dir.path())
        .pragma_update(None, "user_version", VERSION)
        .unwrap();
    let journal = open(dir.path());
    assert_eq!(*journal.task(&task.id).await.unwrap().unwrap(), task);
}

#[test]
fn a_missing_directory_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("nowhere");
    match Journal::open(&missing, Durability::Process, BOOT) {
        Err(JournalError::Open { path, .. }) => assert_eq!(path, file::path(&missing)),
        other => panic!("{other:?}"),
    }
}

/// R4: a crash before the schema was committed leaves an empty file.
#[test]
fn an_empty_file_becomes_a_journal() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(file::path(dir.path()), "").unwrap();
    assert_eq!(open(dir.path()).head(), Revision(0));
}
