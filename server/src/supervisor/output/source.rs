//! The output of one task as chunks and gaps.

use std::io;

use crate::{
    process::task_file::{TaskDir, TaskFile},
    task::{Gap, GapCause, Item, Task, TaskId},
};

/// The output of one task.
#[derive(Debug)]
pub(super) struct Source {
    /// `None`: the task has no file, or has lost it.
    file: Option<TaskFile>,
    extent: Extent,
}

/// The amount of output, as far as the task's state tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// More may follow.
    Growing,
    /// The task is finished, and has written this many bytes. What is not in its file is lost, as output
    /// in memory is after a restart of the machine.
    Complete { written: u64 },
}

/// Some output, and the amount of all output.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) items: Vec<Item>,
    pub(super) end: u64,
}

impl Extent {
    pub(crate) fn of(task: &Task) -> Self {
        match task.is_live() {
            true => Self::Growing,
            false => Self::Complete {
                written: task.output_bytes,
            },
        }
    }

    pub(crate) fn is_complete(self) -> bool {
        matches!(self, Self::Complete { .. })
    }
}

impl Source {
    pub(super) fn open(task_dir: &TaskDir, id: &TaskId, extent: Extent) -> io::Result<Self> {
        Ok(Self::of(task_dir.open(id)?, extent))
    }

    /// The output of a task with this file.
    pub(super) fn of(file: Option<TaskFile>, extent: Extent) -> Self {
        Self { file, extent }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.extent.is_complete()
    }

    /// The amount of output.
    pub(super) fn end(&self) -> io::Result<u64> {
        let file = self.file.as_ref();
        let end = file.map_or(Ok(0), |file| file.tail(0).map(|tail| tail.end))?;
        Ok(self.with_lost(end))
    }

    /// The offset after the last byte that can be read.
    pub(super) fn stored_end(&self) -> io::Result<u64> {
        self.file.as_ref().map_or(Ok(0), TaskFile::stored_end)
    }

    /// The output that was dropped by rule.
    pub(super) fn gaps(&self) -> io::Result<Vec<Gap>> {
        self.file.as_ref().map_or(Ok(Vec::new()), TaskFile::gaps)
    }

    /// Reads up to `limit` bytes of output from `offset` on.
    pub(super) fn read(&self, offset: u64, limit: usize) -> io::Result<Items> {
        let file = self.file.as_ref();
        let reading = file.map_or(Ok(Default::default()), |file| file.read(offset, limit))?;
        let mut items = reading.items;
        let end = self.with_lost(reading.end);
        let next = items.last().map_or(offset, Item::end);
        if limit > 0 && (reading.end..end).contains(&next) {
            items.push(Item::Gap(Gap {
                offset: next,
                length: end - next,
                cause: GapCause::Lost,
                lines: None,
            }));
        }
        Ok(Items { items, end })
    }

    /// Reads the output between two offsets.
    pub(super) fn read_range(&self, from: u64, to: u64) -> io::Result<Vec<Item>> {
        let (mut at, mut items) = (from, Vec::new());
        while at < to {
            let limit = usize::try_from(to - at).unwrap_or(usize::MAX);
            let more = self.read(at, limit)?.items;
            let more = more.into_iter().filter_map(|item| cut(item, to));
            let before = items.len();
            items.extend(more);
            match items.get(before..).and_then(<[Item]>::last) {
                Some(last) => at = last.end(),
                None => break,
            }
        }
        Ok(items)
    }

    fn with_lost(&self, end: u64) -> u64 {
        match self.extent {
            Extent::Growing => end,
            Extent::Complete { written } => end.max(written),
        }
    }
}

/// The part of an item before an offset.
fn cut(item: Item, to: u64) -> Option<Item> {
    match item {
        Item::Chunk(mut chunk) => {
            let keep = to.saturating_sub(chunk.offset);
            chunk
                .data
                .truncate(usize::try_from(keep).unwrap_or(usize::MAX));
            (!chunk.data.is_empty()).then_some(Item::Chunk(chunk))
        }
        Item::Gap(mut gap) => {
            gap.length = gap.end().min(to).saturating_sub(gap.offset);
            (gap.length > 0).then_some(Item::Gap(gap))
        }
    }
}
