//! Damaged WALs: what was committed before the damage stays, and the loss is reported.

use std::{collections::HashSet, os::unix::fs::FileExt, sync::Arc};

use tempfile::TempDir;

use super::*;
use crate::{
    journal::{
        Durability, Journal, file,
        tests::{BOOT, all_after, finish_one, open, raw},
    },
    task::{Event, Revision},
};

const TASKS: usize = 3;
const HEADER: u64 = 32;

/// A journal as a killed server leaves it: nothing moved into the file, everything in the WAL.
struct Killed {
    _dir: TempDir,
    _journal: Journal,
    path: PathBuf,
    events: Vec<Arc<Event>>,
}

/// SQLite's notes outlive the server, but not the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notes {
    Present,
    Gone,
}

impl Killed {
    async fn new() -> Self {
        Self::in_dir(tempfile::tempdir().unwrap()).await
    }

    /// Opens the journal in a directory, and adds finished tasks.
    async fn in_dir(dir: TempDir) -> Self {
        let journal = open(dir.path());
        for _ in 0..TASKS {
            finish_one(&journal).await;
        }
        let events = all_after(&journal, Revision(0), 100).await;
        Self {
            path: file::path(dir.path()),
            _dir: dir,
            _journal: journal,
            events,
        }
    }

    /// Copies it into a directory of its own, with a changed WAL.
    fn copy(&self, notes: Notes, change: impl FnOnce(&mut Vec<u8>)) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        let to = file::path(copy.path());
        fs::copy(&self.path, &to).unwrap();
        if notes == Notes::Present {
            fs::copy(file::wal_index(&self.path), file::wal_index(&to)).unwrap();
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
        Survey::read(&self.path).unwrap()
    }

    /// Checks that a journal has the first of the events and no other, and goes on; returns how many.
    async fn prefix(&self, dir: &Path) -> usize {
        let journal = Journal::open(dir, Durability::Process, BOOT).unwrap();
        let events = all_after(&journal, Revision(0), 100).await;
        assert_eq!(events, self.events[..events.len()]);
        let task = finish_one(&journal).await;
        assert_eq!(task.revision.0 as usize, events.len() + 3);
        events.len()
    }
}

/// The offset of a byte of a frame.
fn at(number: u32, byte: u64) -> usize {
    (HEADER + u64::from(number - 1) * format::FRAME_SIZE + byte) as usize
}

/// The page that a frame of a WAL is a version of.
fn page(wal: &[u8], number: u32) -> u32 {
    u32::from_be_bytes(*wal[at(number, 0)..].first_chunk().unwrap())
}

fn copied_aside(dir: &Path) -> Option<Vec<u8>> {
    fs::read(strays::directory(dir).join("journal.db-wal")).ok()
}

fn checked(dir: &TempDir) -> Result<Soundness, JournalError> {
    check(&file::path(dir.path()))
}

/// R4: the frames behind a hole are those of a WAL whose header is gone.
#[tokio::test]
async fn a_hole_over_the_header_and_the_first_frames_is_reported() {
    let killed = Killed::new().await;
    let frames = killed.survey().last;
    for notes in [Notes::Present, Notes::Gone] {
        for end in [HEADER as usize, at(2, 0), at(4, 7), at(frames - 1, 0)] {
            for begin in [0, 7, 16] {
                let copy = killed.copy(notes, |wal| wal[begin..end].fill(0));
                let checked = checked(&copy).unwrap();
                assert_eq!(checked, Soundness::CutShort, "{notes:?}, {begin} to {end}");
                assert!(copied_aside(copy.path()).is_some());
            }
        }
    }
}

/// R4
#[tokio::test]
async fn a_whole_wal_is_left_as_it_is() {
    let killed = Killed::new().await;
    let survey = killed.survey();
    assert_eq!(survey.usable, survey.last);
    assert_eq!(survey.committed, survey.usable);
    for notes in [Notes::Present, Notes::Gone] {
        let copy = killed.copy(notes, |_| {});
        assert_eq!(checked(&copy).unwrap(), Soundness::Whole);
        let wal = file::wal(&file::path(copy.path()));
        assert_eq!(fs::read(wal).unwrap(), killed.wal());
        assert_eq!(killed.prefix(copy.path()).await, killed.events.len());
        assert_eq!(copied_aside(copy.path()), None);
    }
}

/// R4
#[tokio::test]
async fn a_flipped_bit_in_any_frame_is_reported_and_costs_the_commits_from_there_on() {
    let killed = Killed::new().await;
    let last = killed.survey().usable;
    let mut most = 0;
    for number in 1..last {
        // The page's number, the size at the commit, the salts, the checksum, the page.
        let bytes = [3, 7, 9, 20, 24 + 99];
        for byte in [bytes[number as usize % 4], bytes[4]] {
            let notes = match number % 2 {
                0 => Notes::Present,
                _ => Notes::Gone,
            };
            let copy = killed.copy(notes, |wal| wal[at(number, byte)] ^= 4);
            let damaged = fs::read(file::wal(&file::path(copy.path()))).unwrap();
            let soundness = checked(&copy).unwrap();
            assert_eq!(soundness, Soundness::CutShort, "{number}: {byte}");
            assert_eq!(copied_aside(copy.path()), Some(damaged));
            let kept = killed.prefix(copy.path()).await;
            assert!(
                (most..killed.events.len()).contains(&kept),
                "{number}: {byte}: {kept} after {most}"
            );
            most = kept;
        }
    }
    assert_eq!(most + 1, killed.events.len(), "the last commit has one");
}

/// R4: SQLite's notes tell that the last thing that was committed is damaged.
#[tokio::test]
async fn damage_to_the_last_frame_is_known_from_the_notes() {
    let killed = Killed::new().await;
    let last = killed.survey().usable;
    let damages: [fn(&mut Vec<u8>, u32); 3] = [
        |wal, last| wal[at(last, 500)] ^= 1,
        |wal, last| wal.truncate(at(last, 500)),
        |wal, _| wal.clear(),
    ];
    for damage in damages {
        let copy = killed.copy(Notes::Present, |wal| damage(wal, last));
        assert_eq!(checked(&copy).unwrap(), Soundness::CutShort);
        // Without them it looks like a write that a crash cut short: never delivered, and no damage.
        let copy = killed.copy(Notes::Gone, |wal| damage(wal, last));
        assert_eq!(checked(&copy).unwrap(), Soundness::Whole);
        assert_eq!(copied_aside(copy.path()), None);
    }
    let copy = killed.copy(Notes::Present, |_| {});
    fs::remove_file(file::wal(&file::path(copy.path()))).unwrap();
    assert_eq!(checked(&copy).unwrap(), Soundness::CutShort);
}

/// R4
#[tokio::test]
async fn a_write_that_a_kill_cut_short_is_no_damage() {
    let killed = Killed::new().await;
    let last = killed.survey().usable;
    // The head of the frame is there and says that it commits; the page is not there yet.
    let torn = |wal: &mut Vec<u8>| {
        let head = wal[at(last, 0)..at(last, 24)].to_vec();
        wal.extend_from_slice(&head);
        wal.extend_from_slice(&[0x55; 4096]);
    };
    for notes in [Notes::Present, Notes::Gone] {
        let copy = killed.copy(notes, torn);
        assert_eq!(checked(&copy).unwrap(), Soundness::Whole);
        assert_eq!(copied_aside(copy.path()), None);
        assert_eq!(killed.prefix(copy.path()).await, killed.events.len());
    }
}

/// R4: a power cut may leave later frames written and earlier ones not.
#[tokio::test]
async fn a_hole_costs_the_commits_behind_it_and_is_reported_once() {
    let killed = Killed::new().await;
    let last = killed.survey().usable;
    let copy = killed.copy(Notes::Gone, |wal| {
        wal[at(last - 9, 0)..at(last - 6, 0)].fill(0);
    });
    assert_eq!(checked(&copy).unwrap(), Soundness::CutShort);
    assert!(copied_aside(copy.path()).is_some());
    assert!(killed.prefix(copy.path()).await < killed.events.len());
    assert_eq!(checked(&copy).unwrap(), Soundness::Whole);
}

/// R4
#[tokio::test]
async fn a_damaged_header_costs_every_commit_in_the_wal_and_is_reported() {
    let killed = Killed::new().await;
    for byte in 0..HEADER as usize {
        let copy = killed.copy(Notes::Gone, |wal| wal[byte] ^= 1);
        assert_eq!(checked(&copy).unwrap(), Soundness::CutShort, "{byte}");
        assert!(copied_aside(copy.path()).is_some(), "{byte}");
        assert_eq!(killed.prefix(copy.path()).await, 0, "{byte}");
    }
}

/// R4: a server that was killed twice, without a checkpoint in between.
#[tokio::test]
async fn damage_to_a_wal_that_was_recovered_before_costs_the_commits_behind_it() {
    let first = Killed::new().await;
    let second = Killed::in_dir(first.copy(Notes::Present, |_| {})).await;
    let last = second.survey().usable;
    for number in [last / 3, last - 3] {
        let copy = second.copy(Notes::Present, |wal| wal[at(number, 300)] ^= 1);
        assert_eq!(checked(&copy).unwrap(), Soundness::CutShort, "{number}");
        let kept = second.prefix(copy.path()).await;
        assert!((1..second.events.len()).contains(&kept), "{number}: {kept}");
    }
}

/// R4: the frames that SQLite would use are older than the file.
#[tokio::test]
async fn frames_that_were_moved_into_the_file_cost_nothing() {
    let killed = Killed::new().await;
    let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
    let moved = |row: &rusqlite::Row<'_>| Ok((row.get::<_, u32>(1)?, row.get::<_, u32>(2)?));
    let dir = killed.path.parent().unwrap();
    let (all, moved) = raw(dir).query_row(checkpoint, [], moved).unwrap();
    assert!(all > 10 && moved == all);
    for number in 1..all {
        let copy = killed.copy(Notes::Present, |wal| wal[at(number, 300)] ^= 1);
        assert_eq!(checked(&copy).unwrap(), Soundness::Whole, "{number}");
        assert!(copied_aside(copy.path()).is_some(), "{number}");
        assert_eq!(killed.prefix(copy.path()).await, killed.events.len());

        // Without the notes it is not known that they were moved.
        let copy = killed.copy(Notes::Gone, |wal| wal[at(number, 300)] ^= 1);
        let checked = checked(&copy);
        let reported = matches!(
            checked,
            Ok(Soundness::CutShort) | Err(JournalError::Mixed { .. })
        );
        assert!(reported, "{number}: {checked:?}");
    }
}

/// R4: no state that was ever committed can be read any more.
#[tokio::test]
async fn a_file_with_some_of_the_pages_behind_the_damage_is_refused_and_left_as_it_is() {
    let killed = Killed::new().await;
    let (wal, last) = (killed.wal(), killed.survey().usable);
    let mut seen = HashSet::new();
    let mut latest: Vec<u32> = (1..=last)
        .rev()
        .filter(|number| seen.insert(page(&wal, *number)))
        .collect();
    // A page that does not come again is lost, and later ones were moved into the file.
    let lost = latest.pop().unwrap();
    let copy = killed.copy(Notes::Gone, |wal| wal[at(lost, 300)] ^= 1);
    let path = file::path(copy.path());
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    for moved in latest.into_iter().filter(|number| number % 2 == 0) {
        let place = u64::from(page(&wal, moved) - 1) * 4096;
        let page = &wal[at(moved, 24)..at(moved + 1, 0)];
        file.write_all_at(page, place).unwrap();
    }
    let files = || {
        let wal = fs::read(file::wal(&path)).unwrap();
        (fs::read(&path).unwrap(), wal)
    };
    let before = files();
    let refused = Journal::open(copy.path(), Durability::Process, BOOT);
    assert!(
        matches!(refused, Err(JournalError::Mixed { .. })),
        "{refused:?}"
    );
    assert!(before == files());
}
