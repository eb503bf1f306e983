//! When revisions that were told may be told again for something else, and when not.

use std::fs;

use super::*;

const NEXT_BOOT: Boot = Boot([8; 16]);

/// What a server leaves that ends as it stands; with its id as it was told, and its own.
async fn left(durability: Durability) -> (tempfile::TempDir, [uuid::Uuid; 2]) {
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
async fn the_death_of_a_server_ends_no_era() {
    for durability in [Durability::Process, Durability::Power] {
        let (dir, before) = left(durability).await;
        assert_eq!(
            before[0], before[1],
            "the first is named like the directory"
        );
        assert_eq!(opened(dir.path(), durability, BOOT), before);
    }
}

/// E2, E4
#[tokio::test]
async fn a_power_cut_ends_an_era_where_it_may_have_cost_facts() {
    let (dir, before) = left(Durability::Process).await;
    let journal = Journal::open(dir.path(), Durability::Process, NEXT_BOOT).unwrap();
    let after = ids(&journal);
    assert_ne!(after[0], before[0]);
    assert_eq!(after[1], before[1], "it is still the same directory");
    assert_eq!(journal.head(), Revision(3));
    journal.close().await.unwrap();
    drop(journal);
    // It ends once, and not with a shutdown in good order.
    assert_eq!(opened(dir.path(), Durability::Process, BOOT), after);
    assert_eq!(opened(dir.path(), Durability::Process, BOOT), after);

    let (dir, before) = left(Durability::Power).await;
    let after = opened(dir.path(), Durability::Process, NEXT_BOOT);
    assert_eq!(after, before, "every fact had reached the disk");
}

/// E2
#[tokio::test]
async fn a_restart_of_the_machine_in_good_order_ends_no_era() {
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
async fn a_wal_that_was_cut_short_ends_an_era() {
    let (dir, before) = left(Durability::Process).await;
    let wal = file::wal(&file::file(dir.path()));
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
