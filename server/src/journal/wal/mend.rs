//! What can be saved of a damaged WAL.
//!
//! A page that is damaged in one frame is often written again in a later one, and then nothing is
//! missing from the state after that. And what has been moved into the journal's file is there. Only a
//! state that was once committed is ever put together: never one with some pages newer than others.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufWriter, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::{
    Survey,
    format::{self, Frame},
};
use crate::journal::file;

/// What is done about the damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Leave out the damaged frames, whose pages come again: all is known up to this frame.
    LeaveOut { up_to: u32 },
    /// Go by the journal's file alone, which has it all.
    InFile,
    /// Let SQLite take what it will, which is a state that once was.
    Cut,
    /// None: the file has a part of what came after the damage.
    None,
}

impl Remedy {
    pub(super) fn of(survey: &Survey, path: &Path) -> io::Result<Self> {
        if survey.moved >= survey.committed {
            return Ok(Self::InFile);
        }
        let last = survey
            .frames
            .iter()
            .rposition(|frame| frame.whole && frame.commits);
        let up_to = last.map_or(0, |at| at as u32 + 1);
        if up_to <= survey.taken {
            return Ok(Self::Cut);
        }
        let frames = &survey.frames[..up_to as usize];
        let latest = latest(frames);
        let is_known = |number: &u32| frames[*number as usize - 1].whole;
        if frames.iter().all(|frame| frame.own) && latest.values().all(is_known) {
            return Ok(Self::LeaveOut { up_to });
        }
        let pages = Pages::open(survey, path)?;
        let (mut all, mut any_beyond) = (true, false);
        let before = self::latest(&frames[..survey.taken as usize]);
        for (page, number) in latest.iter().filter(|(_, number)| is_known(number)) {
            let is_moved = pages.in_file(*page)? == pages.in_wal(*number)?;
            all &= is_moved;
            let is_old = match before.get(page) {
                Some(old) => pages.in_wal(*old)? == pages.in_wal(*number)?,
                None => false,
            };
            any_beyond |= is_moved && *number > survey.taken && !is_old;
        }
        Ok(match (all, any_beyond) {
            (true, true) if up_to == survey.committed => Self::InFile,
            (_, true) => Self::None,
            (_, false) => Self::Cut,
        })
    }

    /// The last frame up to which nothing is missing afterwards. `kept` is a copy of the WAL.
    pub(super) fn carry_out(
        self,
        survey: &Survey,
        path: &Path,
        kept: Option<&PathBuf>,
    ) -> io::Result<u32> {
        let wal = file::wal(path);
        match self {
            Self::LeaveOut { up_to } => {
                let mended = wal.with_extension("db-wal.mended");
                write_mended(survey, path, &mended, up_to)?;
                fs::rename(&mended, &wal)?;
                if is_sound(path) {
                    return Ok(up_to);
                }
                if let Some(kept) = kept {
                    fs::copy(kept, &wal)?;
                }
                Ok(survey.taken)
            }
            Self::InFile => {
                if kept.is_some() {
                    fs::OpenOptions::new().write(true).open(&wal)?.set_len(0)?;
                }
                Ok(survey.committed)
            }
            Self::Cut | Self::None => Ok(survey.taken),
        }
    }
}

/// The last frame of each page.
fn latest(frames: &[Frame]) -> HashMap<u32, u32> {
    (1..)
        .zip(frames)
        .map(|(number, frame)| (frame.page, number))
        .collect()
}

/// Pages of the journal, wherever they are.
struct Pages {
    wal: File,
    file: File,
    size: u32,
}

impl Pages {
    fn open(survey: &Survey, path: &Path) -> io::Result<Self> {
        Ok(Self {
            wal: File::open(file::wal(path))?,
            file: File::open(path)?,
            size: survey.page_size,
        })
    }

    fn in_wal(&self, number: u32) -> io::Result<Vec<u8>> {
        let mut page = vec![0; self.size as usize];
        let at = format::page_offset(self.size, number);
        self.wal.read_exact_at(&mut page, at)?;
        Ok(page)
    }

    /// Empty where the file ends before it.
    fn in_file(&self, page: u32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.size as usize];
        let at = u64::from(page.saturating_sub(1)) * u64::from(self.size);
        match self.file.read_exact_at(&mut bytes, at) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The beginning of a frame: which page it is, and how large the file is with it.
    fn claim(&self, number: u32) -> io::Result<[u8; 8]> {
        let mut bytes = [0; 8];
        let at = format::frame_offset(self.size, number);
        self.wal.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

/// The WAL anew, of its whole frames alone; durable before it takes the place of the other.
fn write_mended(survey: &Survey, path: &Path, to: &Path, up_to: u32) -> io::Result<()> {
    let pages = Pages::open(survey, path)?;
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(file::OWNER_ONLY)
        .open(to)?;
    let mut file = BufWriter::new(file);
    let (header, mut sum) = format::new_header(survey.page_size, survey.salts);
    file.write_all(&header)?;
    for (number, frame) in (1..=up_to).zip(&survey.frames) {
        if frame.whole {
            let (claim, page) = (pages.claim(number)?, pages.in_wal(number)?);
            let (head, next) = format::new_frame_header(sum, survey.salts, claim, &page);
            file.write_all(&head)?;
            file.write_all(&page)?;
            sum = next;
        }
    }
    file.into_inner()?.sync_all()
}

/// Whether SQLite finds nothing wrong; it moves nothing for that. A frame's own word for which page it
/// is may have been what was damaged.
fn is_sound(path: &Path) -> bool {
    let check = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
    };
    check().is_ok_and(|answer| answer == "ok")
}
