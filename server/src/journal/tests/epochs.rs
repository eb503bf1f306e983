//! A new epoch begins when delivered revisions may name other events, and only then.

use std::fs;

use super::*;

const NEXT_BOOT: Boot = Boot([8; 16]);

/// The files of a server that was killed, its epoch and its directory id.
async fn killed(durability: Durability) -> (tempfile::TempDir, [uuid::Uuid; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path(), durability, BOOT).unwrap();
    finish_one(&journal).await;
    let copy = tempfile::tempdir().unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    (copy, ids(&journal))
}

fn ids(journal: &Journal) -> [uuid::Uuid; 2] {
    [journal.epoch(), journal.directory_id()]
}

fn opened(dir: &Path, durability: Durability, boot: Boot) -> [uuid::Uuid; 2] {
    ids(&Journal::open(dir, durability, boot).unwrap())
}

/// E2
#[tokio::test]
async fn the_death_of_a_server_keeps_the_epoch() {
    for durability in [Durability::Process, Durability::Power] {
        let (dir, before) = killed(durability).await;
        assert_eq!(
            before[0], before[1],
            "the first epoch has the id of the directory"
        );
        assert_eq!(opened(dir.path(), durability, BOOT), before);
    }
}

/// E2, E4
#[tokio::test]
async fn a_power_cut_begins_an_epoch_if_it_may_have_cost_facts() {
    let (dir, before) = killed(Durability::Process).await;
    let journal = Journal::open(dir.path(), Durability::Process, NEXT_BOOT).unwrap();
    let after = ids(&journal);
    assert_ne!(after[0], before[0]);
    assert_eq!(after[1], before[1], "it is the same directory");
    assert_eq!(journal.head(), Revision(3));
    journal.close().await.unwrap();
    drop(journal);
    // One begins for each power cut, and none after a clean shutdown.
    assert_eq!(opened(dir.path(), Durability::Process, BOOT), after);
    assert_eq!(opened(dir.path(), Durability::Process, BOOT), after);

    let (dir, before) = killed(Durability::Power).await;
    let after = opened(dir.path(), Durability::Process, NEXT_BOOT);
    assert_eq!(after, before, "every fact had reached the disk");
}

/// E2
#[tokio::test]
async fn a_reboot_after_a_clean_shutdown_keeps_the_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    finish_one(&journal).await;
    let before = ids(&journal);
    journal.close().await.unwrap();
    drop(journal);
    assert_eq!(opened(dir.path(), Durability::Process, NEXT_BOOT), before);
}

/// R4, E4
#[tokio::test]
async fn a_wal_that_was_cut_short_begins_an_epoch() {
    let (dir, before) = killed(Durability::Process).await;
    let wal = file::wal(&file::path(dir.path()));
    let mut bytes = fs::read(&wal).unwrap();
    let frame = 24 + 4096;
    let middle = 32 + (bytes.len() / frame - 9) * frame;
    bytes[middle..middle + 2 * frame].fill(0);
    fs::write(&wal, bytes).unwrap();
    let journal = open(dir.path());
    assert!(journal.head() < Revision(3));
    let after = ids(&journal);
    assert_ne!(after[0], before[0]);
    assert_eq!(after[1], before[1]);
}
