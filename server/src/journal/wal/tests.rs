//! WALs that were damaged in every way: what was committed is there, or its loss is told.

use std::{fs::OpenOptions, os::unix::fs::FileExt};

use tempfile::TempDir;

use super::*;
use crate::{
    journal::{
        Durability, Journal,
        tests::{BOOT, all_after, finish_one, open, raw},
    },
    task::{Event, Revision},
};

const TASKS: usize = 3;

/// What a server leaves that was killed: nothing moved on, all of it in the WAL.
struct Left {
    _dir: TempDir,
    journal: Journal,
    path: PathBuf,
    events: Vec<std::sync::Arc<Event>>,
}

/// Whether SQLite's notes are there, as after a death of the server alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notes {
    Left,
    Gone,
}

impl Left {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let journal = open(dir.path());
        for _ in 0..TASKS {
            finish_one(&journal).await;
        }
        let events = all_after(&journal, Revision(0), 100).await;
        Self {
            path: file::file(dir.path()),
            _dir: dir,
            journal,
            events,
        }
    }

    /// As it is now, in a directory of its own, with its WAL changed.
    fn copy(&self, notes: Notes, change: impl FnOnce(&mut Vec<u8>)) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        let to = file::file(copy.path());
        fs::copy(&self.path, &to).unwrap();
        if notes == Notes::Left {
            fs::copy(index_file(&self.path), index_file(&to)).unwrap();
        }
        let mut wal = self.wal();
        change(&mut wal);
        fs::write(file::wal(&to), wal).unwrap();
        copy
    }

    fn wal(&self) -> Vec<u8> {
        fs::read(file::wal(&self.path)).unwrap()
    }

    fn survey(&self) -> Survey {
        Survey::of(&self.path).unwrap()
    }

    /// That a journal has the first of the events and no other, and goes on; how many it has.
    async fn prefix(&self, dir: &Path) -> usize {
        let journal = Journal::open(dir, Durability::Process, BOOT).unwrap();
        let events = all_after(&journal, Revision(0), 100).await;
        assert_eq!(events, self.events[..events.len()], "a beginning");
        let task = finish_one(&journal).await;
        assert_eq!(task.revision.0 as usize, events.len() + 3);
        events.len()
    }
}

fn at(number: u32, byte: u64) -> usize {
    (format::frame_offset(format::PAGE_SIZE, number) + byte) as usize
}

fn kept(dir: &Path) -> Option<Vec<u8>> {
    fs::read(strays::directory(dir).join("journal.db-wal")).ok()
}

/// R4
#[tokio::test]
async fn a_whole_wal_is_left_as_it_is() {
    let left = Left::new().await;
    let survey = left.survey();
    assert_eq!(survey.taken as usize, survey.frames.len());
    assert_eq!(survey.committed, survey.taken);
    for notes in [Notes::Left, Notes::Gone] {
        let copy = left.copy(notes, |_| {});
        let path = file::file(copy.path());
        assert_eq!(see_to(&path).unwrap(), Soundness::Whole);
        assert_eq!(fs::read(file::wal(&path)).unwrap(), left.wal());
        assert_eq!(left.prefix(copy.path()).await, left.events.len());
        assert_eq!(kept(copy.path()), None);
    }
}

/// R4: a bit that flips anywhere costs nothing, or is told and costs what was committed from there on.
#[tokio::test]
async fn a_flipped_bit_anywhere_is_never_met_with_silence() {
    let left = Left::new().await;
    let last = left.survey().taken;
    let (mut saved, mut cut) = (0, 0);
    for number in 1..last {
        // The page's number, the size at the commit, the salts, the checksum, the page.
        let bytes = [3, 7, 9, 20, 24 + 99];
        for byte in [bytes[number as usize % 4], bytes[4]] {
            let notes = if number % 2 == 0 {
                Notes::Left
            } else {
                Notes::Gone
            };
            let copy = left.copy(notes, |wal| wal[at(number, byte)] ^= 4);
            let damaged = fs::read(file::wal(&file::file(copy.path()))).unwrap();
            let soundness = see_to(&file::file(copy.path())).unwrap();
            assert_eq!(kept(copy.path()), Some(damaged), "{number}: {byte}");
            let had = left.prefix(copy.path()).await;
            match soundness {
                Soundness::Whole => {
                    assert_eq!(had, left.events.len(), "{number}: {byte}");
                    saved += 1;
                }
                Soundness::CutShort => {
                    assert!(had < left.events.len(), "{number}: {byte}");
                    cut += 1;
                }
            }
        }
    }
    assert!(saved > 2 * cut, "{saved} saved, {cut} cut");
}

/// R4: what is damaged is the last thing that was committed, which SQLite's notes tell.
#[tokio::test]
async fn damage_to_the_last_frame_is_told_by_the_notes() {
    let left = Left::new().await;
    let last = left.survey().taken;
    let damages: [fn(&mut Vec<u8>, u32); 3] = [
        |wal, last| wal[at(last, 500)] ^= 1,
        |wal, last| wal.truncate(at(last, 500)),
        |wal, _| wal.clear(),
    ];
    for damage in damages {
        let copy = left.copy(Notes::Left, |wal| damage(wal, last));
        let path = file::file(copy.path());
        assert_eq!(see_to(&path).unwrap(), Soundness::CutShort);
        // Without them it is what a crash cuts short: never told, and no damage.
        let copy = left.copy(Notes::Gone, |wal| damage(wal, last));
        let path = file::file(copy.path());
        assert_eq!(see_to(&path).unwrap(), Soundness::Whole);
        assert_eq!(kept(copy.path()), None);
    }
    let gone = left.copy(Notes::Left, |_| {});
    fs::remove_file(file::wal(&file::file(gone.path()))).unwrap();
    let soundness = see_to(&file::file(gone.path())).unwrap();
    assert_eq!(soundness, Soundness::CutShort);
}

/// R4
#[tokio::test]
async fn a_write_that_a_kill_cut_short_is_no_damage() {
    let left = Left::new().await;
    let last = left.survey().taken;
    // The frame's head is there and marked as a commit, and its page is not yet.
    let torn = |wal: &mut Vec<u8>| {
        let head = wal[at(last, 0)..at(last, 24)].to_vec();
        wal.extend_from_slice(&head);
        wal.extend_from_slice(&[0x55; 4096]);
    };
    for notes in [Notes::Left, Notes::Gone] {
        let copy = left.copy(notes, torn);
        let path = file::file(copy.path());
        assert_eq!(see_to(&path).unwrap(), Soundness::Whole);
        assert_eq!(kept(copy.path()), None);
        assert_eq!(left.prefix(copy.path()).await, left.events.len());
    }
}

/// R4: a power cut may leave later frames written and earlier ones not.
#[tokio::test]
async fn a_hole_costs_what_was_behind_it_and_is_told() {
    let left = Left::new().await;
    let last = left.survey().taken;
    let copy = left.copy(Notes::Gone, |wal| {
        wal[at(last - 9, 0)..at(last - 6, 0)].fill(0)
    });
    let path = file::file(copy.path());
    assert_eq!(see_to(&path).unwrap(), Soundness::CutShort);
    assert!(kept(copy.path()).is_some());
    assert!(left.prefix(copy.path()).await < left.events.len());
    // What was cut off is not met again.
    assert_eq!(see_to(&path).unwrap(), Soundness::Whole);
}

/// R4
#[tokio::test]
async fn a_damaged_header_costs_nothing() {
    let left = Left::new().await;
    for byte in 0..32 {
        let copy = left.copy(Notes::Gone, |wal| wal[byte] ^= 1);
        assert_eq!(left.prefix(copy.path()).await, left.events.len(), "{byte}");
    }
}

/// R4: frames that SQLite takes would be older than the file.
#[tokio::test]
async fn what_was_moved_into_the_file_is_taken_from_there() {
    let left = Left::new().await;
    let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
    let moved = |row: &rusqlite::Row<'_>| Ok((row.get::<_, u32>(1)?, row.get::<_, u32>(2)?));
    let dir = left.path.parent().unwrap();
    let (all, moved) = raw(dir).query_row(checkpoint, [], moved).unwrap();
    assert!(all > 10 && moved == all);
    for notes in [Notes::Left, Notes::Gone] {
        for number in 1..all {
            let copy = left.copy(notes, |wal| wal[at(number, 300)] ^= 1);
            let soundness = see_to(&file::file(copy.path())).unwrap();
            assert_eq!(soundness, Soundness::Whole, "{notes:?}: {number}");
            assert_eq!(left.prefix(copy.path()).await, left.events.len());
        }
    }
}

/// R4: no state that ever was can be put together any more.
#[tokio::test]
async fn a_file_with_a_part_of_what_follows_the_damage_is_refused() {
    let left = Left::new().await;
    let survey = left.survey();
    let latest: Vec<u32> = (1..=survey.taken)
        .filter(|number| {
            let page = survey.frames[*number as usize - 1].page;
            survey.frames[*number as usize..]
                .iter()
                .all(|later| later.page != page)
        })
        .collect();
    // A page that does not come again is lost, and a later one has been moved.
    let (lost, moved) = (latest[0], latest[latest.len() - 1]);
    let copy = left.copy(Notes::Gone, |wal| wal[at(lost, 300)] ^= 1);
    let path = file::file(copy.path());
    let page = left.wal()[at(moved, 24)..at(moved + 1, 0)].to_vec();
    let place = u64::from(survey.frames[moved as usize - 1].page - 1) * 4096;
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&page, place).unwrap();
    let before = (
        fs::read(&path).unwrap(),
        fs::read(file::wal(&path)).unwrap(),
    );
    let refused = Journal::open(copy.path(), Durability::Process, BOOT);
    assert!(
        matches!(refused, Err(JournalError::Mixed { .. })),
        "{refused:?}"
    );
    let after = (
        fs::read(&path).unwrap(),
        fs::read(file::wal(&path)).unwrap(),
    );
    assert!(before == after, "it was left as it is");
    left.journal.close().await.unwrap();
}
