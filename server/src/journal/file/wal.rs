//! The WAL, before SQLite opens it: is everything that was committed to it still readable?
//!
//! SQLite follows the running checksum of the WAL and stops at the first frame that does not fit,
//! without a word. That is right for a write that a crash cut short, which was never committed. Behind
//! a damaged frame it loses commits. So the WAL is checked first:
//!
//! ```text
//! every commit readable ──> Whole
//! damage ──> copy the WAL to strays ──> tell in the log ──> CutShort: commits before it stay, new epoch
//! ```
//!
//! Nothing is repaired. Frames that a checkpoint has moved into the file are taken from there; if a
//! checkpoint had moved only some of the frames behind the damage, the file is neither the old state
//! nor the new one, and the journal is refused.

mod format;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use self::format::{Frames, Index};
use crate::{journal::JournalError, strays};

/// The usable part of the WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Soundness {
    /// Everything that was ever committed, as far as can be told.
    Whole,
    /// Only the commits before the damage.
    CutShort,
}

/// The result of reading a WAL. Frames count from 1.
#[derive(Debug)]
struct Survey {
    frame_size: u64,
    /// The last frame that is marked as one of this WAL.
    last: u32,
    /// The last committed frame that SQLite will use.
    usable: u32,
    /// The last frame that is known to have been committed.
    committed: u32,
    /// SQLite's notes on this WAL, if they are there.
    index: Option<Index>,
}

/// Checks the WAL of a journal that no process has open. A damaged one is copied to the strays.
pub(super) fn check(path: &Path) -> Result<Soundness, JournalError> {
    let wal = super::wal(path);
    let failed = |source| JournalError::Open {
        path: wal.clone(),
        source,
    };
    let survey = Survey::read(path).map_err(failed)?;
    if survey.committed <= survey.usable {
        survey.log_unfinished(&wal);
        return Ok(Soundness::Whole);
    }
    if survey.is_mixed(path) {
        return Err(JournalError::Mixed {
            path: path.into(),
            frame: survey.usable + 1,
        });
    }
    let moved = survey.index.map_or(0, |index| index.moved);
    let copy = copy_aside(&wal).map_err(failed)?;
    if moved > survey.usable && copy.is_some() {
        // The file has every usable frame, and later ones.
        let emptied = OpenOptions::new().write(true).open(&wal);
        emptied.and_then(|wal| wal.set_len(0)).map_err(failed)?;
    }
    Ok(survey.log_damage(&wal, moved.max(survey.usable), copy.as_deref()))
}

impl Survey {
    fn read(path: &Path) -> io::Result<Self> {
        let index = Index::read(&super::wal_index(path))?;
        let frames = match File::open(super::wal(path)) {
            Ok(wal) => Frames::read(wal, index.as_ref())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let Some(mut frames) = frames else {
            return Ok(Self::without_wal(index));
        };
        let index = index.filter(|index| index.salts == frames.salts());
        let mut survey = Self {
            frame_size: frames.frame_size(),
            last: 0,
            usable: 0,
            committed: index.map_or(0, |index| index.committed),
            index,
        };
        let mut before_commits = false;
        let mut number = 0;
        while let Some(frame) = frames.next()? {
            number += 1;
            if frame.own {
                survey.last = number;
            }
            if frame.whole && frame.commits {
                survey.committed = survey.committed.max(number);
            }
            if frame.vouches_for_the_last && before_commits {
                survey.committed = survey.committed.max(number - 1);
            }
            if frame.followed && frame.commits {
                survey.usable = number;
            }
            before_commits = frame.commits;
        }
        Ok(survey)
    }

    /// There is no WAL, or not even its header. Nothing is lost if all of it had been moved.
    fn without_wal(index: Option<Index>) -> Self {
        let index = index.filter(|index| index.moved < index.committed);
        Self {
            frame_size: format::FRAME_SIZE,
            last: 0,
            usable: 0,
            committed: index.map_or(0, |index| index.committed),
            index,
        }
    }

    /// Reports whether the file has some of the pages behind the damage, and not all of them.
    fn is_mixed(&self, path: &Path) -> bool {
        match self.index {
            // The file has more than the usable frames, and then a checkpoint was cut short.
            Some(index) if index.moved > self.usable => index.moving > index.moved,
            Some(index) if index.moving <= self.usable => false,
            // Not known: after a restart SQLite assumes that every frame is being moved.
            Some(_) | None => !is_consistent(path),
        }
    }

    /// `kept` is the last frame that is not lost.
    fn log_damage(&self, wal: &Path, kept: u32, copy: Option<&Path>) -> Soundness {
        let wal = wal.display();
        let copy = copy.map_or("nothing of it is left".to_owned(), |copy| {
            format!("a copy is at {}", copy.display())
        });
        if kept >= self.committed {
            let frame = self.usable + 1;
            tracing::warn!("{wal} is damaged at frame {frame}; no commit is lost; {copy}");
            return Soundness::Whole;
        }
        let (first, lost) = (kept + 1, self.committed - kept);
        let bytes = u64::from(lost) * self.frame_size;
        tracing::error!(
            "{wal} is damaged: the commits from frame {first} on are lost, {lost} frames of {bytes} bytes; \
             {copy}"
        );
        Soundness::CutShort
    }

    /// A write that a crash cut short was never committed.
    fn log_unfinished(&self, wal: &Path) {
        let unfinished = self.last.saturating_sub(self.usable);
        if unfinished > 0 {
            let wal = wal.display();
            tracing::info!("{wal}: ignoring {unfinished} frames that were never committed");
        }
    }
}

/// Reports whether SQLite finds the file and the usable part of the WAL consistent. Moves nothing.
fn is_consistent(path: &Path) -> bool {
    let check = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.query_row("PRAGMA integrity_check(1)", [], |row| {
            row.get::<_, String>(0)
        })
    };
    check().is_ok_and(|answer| answer == "ok")
}

/// Copies a WAL to the strays, and returns where; none if there is no WAL.
fn copy_aside(wal: &Path) -> io::Result<Option<PathBuf>> {
    let (Some(dir), Some(name)) = (wal.parent(), wal.file_name().and_then(|name| name.to_str()))
    else {
        return Ok(None);
    };
    if !wal.try_exists()? {
        return Ok(None);
    }
    let to = strays::unused_path(dir, name)?;
    fs::copy(wal, &to)?;
    File::open(&to)?.sync_all()?;
    Ok(Some(to))
}
