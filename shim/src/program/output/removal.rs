//! The removal of blocks from the middle of a file: what is behind them moves down, and the file becomes
//! shorter.
//!
//! The record names the range that does not count. It is moved towards the end of the file in steps: the
//! blocks behind it are copied into it, then the record names the range that they were copied from. So the
//! file can be read at any time, and a shim that is killed in the middle leaves all of it.
//!
//! ```text
//!  0 1 [- - -] 2 3 4 5   ──>   0 1 2 3 4 [- - -] 5   ──>   0 1 2 3 4 5 [- - -]   ──>   0 1 2 3 4 5
//! ```

use heeler_shim::{
    layout::{Blocks, Removal, blocks_within},
    log::{BLOCK_SIZE, block_position},
};

use super::log_file::{LogFile, first_offset};
use crate::program::{
    clock,
    pages::Pages,
    sys::{
        Fd, Result,
        file::{self, Part},
    },
};

/// Zeros behind the frames of a short block.
const END: [u8; 4] = [0; 4];

impl LogFile {
    /// Keeps the file within so many bytes from now on. The oldest output behind the head is removed at
    /// once, if there is too much; with a shorter head, its end is too. After an error the file can no
    /// longer be written.
    pub(super) fn limit(&mut self, bytes: u64, (out, disk): (&Fd, &Fd)) -> Result<()> {
        let Removal {
            ranges: [behind, front],
            head,
        } = self.log.lower_bound(blocks_within(bytes));
        let shortened = match head < self.log.head() {
            true => Some(first_offset(out, head)?),
            false => None,
        };
        let mut pages = Pages::new(BLOCK_SIZE)?;
        self.remove(behind, pages.bytes(), (out, disk))?;
        if let Some(head_end) = shortened {
            self.log.set_head(head, head_end);
        }
        self.remove(front, pages.bytes(), (out, disk))
    }

    fn remove(&mut self, range: Blocks, room: &mut [u8], (out, disk): (&Fd, &Fd)) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        self.limits.reach_bound(&self.log, clock::stamp());
        let (mut free, end) = (range, self.log.blocks());
        self.limits.record_blocks(&self.log, free, end, disk)?;
        while free.to < end {
            let step = free.len().min(end - free.to);
            for at in 0..step {
                copy_block(free.to + at, free.from + at, room, out)?;
            }
            free.from += step;
            free.to += step;
            self.limits.record_blocks(&self.log, free, end, disk)?;
        }
        self.log.removed(range);
        self.limits
            .record_blocks(&self.log, Blocks::default(), free.from, disk)?;
        file::truncate(out, self.log.size())?;
        self.limits
            .record_blocks(&self.log, Blocks::default(), u64::MAX, disk)
    }
}

/// Copies a block over another one. The last block of a file may be short.
fn copy_block(from: u64, to: u64, room: &mut [u8], out: &Fd) -> Result<()> {
    let mut filled = 0;
    while let Some(free) = room.get_mut(filled..).filter(|free| !free.is_empty()) {
        match file::read_at(out, free, block_position(from) + filled as u64)? {
            0 => break,
            len => filled += len,
        }
    }
    let bytes = room.get(..filled).unwrap_or_default();
    let end = END
        .get(..END.len().min(BLOCK_SIZE - filled))
        .unwrap_or_default();
    let mut parts = [Part::new(bytes), Part::new(end)];
    file::write_all_at(out, &mut parts, block_position(to)).map_err(|(errno, _)| errno)
}
