//! The WAL, before SQLite opens it: whether all that was committed to it can still be read.
//!
//! SQLite follows the WAL's running checksum and stops at the first frame that does not fit, without a
//! word. That is right for what a crash has cut short, which was never committed; behind a damaged
//! frame it loses what was told. So the WAL is looked at first: damage is mended where every page is
//! known from elsewhere (`mend`), else told and set aside, and nothing is taken away in silence.

mod format;
mod mend;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use self::{
    format::{Frame, Index, Reading},
    mend::Remedy,
};
use super::{JournalError, file};
use crate::strays;

/// What can be had of the WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Soundness {
    /// All that was ever committed, as far as can be told.
    Whole,
    /// Only what was committed before the damage.
    CutShort,
}

/// What a look at the WAL has found. Frames count from 1.
#[derive(Debug)]
struct Survey {
    page_size: u32,
    frames: Vec<Frame>,
    /// The last frame that SQLite will take.
    taken: u32,
    /// The last one that is known to have been committed.
    committed: u32,
    /// The last one that is known to have been moved into the file.
    moved: u32,
    salts: [u8; 8],
}

/// Looks at the WAL of a journal that nobody has open, and mends it or keeps a copy of it if it is
/// damaged.
pub(super) fn see_to(path: &Path) -> Result<Soundness, JournalError> {
    let wal = file::wal(path);
    let failed = |source| JournalError::Open {
        path: wal.clone(),
        source,
    };
    let survey = Survey::of(path).map_err(failed)?;
    if survey.committed <= survey.taken {
        survey.tell_unfinished(&wal);
        return Ok(Soundness::Whole);
    }
    let remedy = Remedy::of(&survey, path).map_err(failed)?;
    if remedy == Remedy::None {
        return Err(JournalError::Mixed {
            path: path.into(),
            frame: survey.taken + 1,
        });
    }
    let kept = set_aside(&wal).map_err(failed)?;
    let had = remedy.carry_out(&survey, path, kept.as_ref());
    Ok(survey.tell_damage(&wal, had.map_err(failed)?, kept.as_deref()))
}

impl Survey {
    fn of(path: &Path) -> io::Result<Self> {
        let index = Index::read(&index_file(path))?;
        let reading = match File::open(file::wal(path)) {
            Ok(wal) => Reading::begin(wal)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let Some(mut reading) = reading else {
            return Ok(Self::without_wal(index));
        };
        let mut frames: Vec<Frame> = Vec::new();
        while let Some(frame) = reading.next()? {
            if let Some(last) = frames.last_mut() {
                last.whole |= frame.vouches_for_the_last;
            }
            frames.push(frame);
        }
        let last = |wanted: fn(&Frame) -> bool| {
            let found = frames
                .iter()
                .rposition(|frame| wanted(frame) && frame.commits);
            found.map_or(0, |at| at as u32 + 1)
        };
        let (taken, by_sum) = (last(|frame| frame.followed), last(|frame| frame.whole));
        let index = index.filter(|index| index.salts == reading.salts());
        let by_index = index.map_or(0, |index| index.committed);
        Ok(Self {
            page_size: reading.page_size(),
            salts: reading.salts(),
            frames,
            taken,
            committed: by_sum.max(by_index),
            moved: index.map_or(0, |index| index.moved),
        })
    }

    /// It was taken away, or never was; nothing is lost if it had all been moved.
    fn without_wal(index: Option<Index>) -> Self {
        let unmoved = index.filter(|index| index.moved < index.committed);
        Self {
            page_size: format::PAGE_SIZE,
            salts: [0; 8],
            frames: Vec::new(),
            taken: 0,
            committed: unmoved.map_or(0, |index| index.committed),
            moved: 0,
        }
    }

    fn tell_damage(&self, wal: &Path, had: u32, kept: Option<&Path>) -> Soundness {
        let wal = wal.display();
        let kept = kept.map_or("nothing of it is left".to_owned(), |kept| {
            format!("a copy is at {}", kept.display())
        });
        if had >= self.committed {
            let frame = self.taken + 1;
            tracing::warn!("{wal} was damaged at frame {frame}: nothing is lost; {kept}");
            return Soundness::Whole;
        }
        let (first, lost) = (had + 1, self.committed - had);
        let bytes = u64::from(lost) * format::frame_size(self.page_size);
        tracing::error!(
            "{wal} is damaged: what was recorded from frame {first} on is lost, {lost} frames of {bytes} \
             bytes; {kept}"
        );
        Soundness::CutShort
    }

    /// What a crash has cut short was never told.
    fn tell_unfinished(&self, wal: &Path) {
        let last = self.frames.iter().rposition(|frame| frame.own);
        let unfinished = last
            .map_or(0, |at| at as u32 + 1)
            .saturating_sub(self.taken);
        if unfinished > 0 {
            let wal = wal.display();
            tracing::info!("{wal}: {unfinished} frames were never committed, and are left out");
        }
    }
}

/// Where SQLite keeps what it knows of the WAL.
fn index_file(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-shm");
    name.into()
}

/// Keeps a copy, under a name of its own; none where there is nothing to be kept.
fn set_aside(wal: &Path) -> io::Result<Option<PathBuf>> {
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
