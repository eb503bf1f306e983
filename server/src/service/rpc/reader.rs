//! A reader of one task's output, piece by piece, for the calls that return output.

use std::sync::Arc;

use heeler_proto::v1;

use crate::{
    output::select::LineFilter,
    service::{
        Service,
        transport::Call,
        wire::{
            output::{Selection, View},
            refusal::Refusal,
        },
    },
    supervisor::{Extent, OutputStart, Piece, PieceLimits, Read, Search},
    task::{Stream, TaskId},
};

/// One in this many bytes is expected to be added by the descriptions of chunks.
const OVERHEAD_PART: usize = 8;

#[derive(Debug)]
pub(super) struct Reader {
    id: TaskId,
    view: View,
    /// The start of the next piece.
    start: OutputStart,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Bytes(Option<Stream>),
    /// `None` while a turn is under way, and after one that failed.
    Lines(Arc<LineFilter>, Option<Box<Search>>),
}

/// A piece of output as its client gets it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) chunks: Vec<v1::OutputChunk>,
    /// The offset to continue from.
    pub(super) next_offset: u64,
    /// The amount of output at the time of the read.
    pub(super) end_offset: u64,
    /// True if nothing is left to read now.
    pub(super) is_caught_up: bool,
}

impl Reader {
    pub(super) fn new(id: TaskId, start: OutputStart, selection: Selection, view: View) -> Self {
        let way = match selection {
            Selection::All => Way::Bytes(None),
            Selection::Stream(stream) => Way::Bytes(Some(stream)),
            Selection::Lines(filter) => Way::Lines(filter, None),
        };
        Self {
            id,
            view,
            start,
            way,
        }
    }

    pub(super) fn id(&self) -> &TaskId {
        &self.id
    }

    /// The offset of the next piece, once one was read.
    pub(super) fn offset(&self) -> Option<u64> {
        match self.start {
            OutputStart::Offset(offset) => Some(offset),
            OutputStart::TailBytes(_) | OutputStart::TailLines(_) | OutputStart::Since(_) => None,
        }
    }

    /// The memory that a piece with these limits may take.
    pub(super) fn memory(limits: PieceLimits) -> usize {
        limits.bytes + limits.bytes / OVERHEAD_PART
    }

    /// Reads the next piece, and continues after it. Returns nothing while it looks for the start.
    pub(super) async fn next(
        &mut self,
        service: &Service,
        extent: Extent,
        limits: PieceLimits,
        call: &Call,
    ) -> Result<Option<Shown>, Refusal> {
        let piece = match &mut self.way {
            Way::Bytes(stream) => {
                let read = Read {
                    start: self.start,
                    limits,
                    stream: *stream,
                    lead: self.view.lead(),
                    boundary: self.view.boundary(),
                };
                let piece = service.supervisor.read_output(&self.id, extent, read);
                Some(piece.await.map_err(|error| unreadable(&error))?)
            }
            Way::Lines(filter, kept) => {
                let anew = || Search::new(Arc::clone(filter), self.start);
                let search = kept.take().map_or_else(anew, |search| *search);
                let supervisor = &service.supervisor;
                let turn = supervisor.search(&self.id, extent, search, limits, call.search_key());
                let (search, piece) = turn.await.map_err(|error| unreadable(&error))?;
                *kept = Some(Box::new(search));
                piece
            }
        };
        Ok(piece.map(|piece| self.show(piece, extent)))
    }

    /// Drops what is costly to keep until the next piece.
    pub(super) fn shrink(&mut self) {
        if let Way::Lines(_, Some(search)) = &mut self.way {
            search.shrink();
        }
    }

    fn show(&mut self, piece: Piece, extent: Extent) -> Shown {
        let (end_offset, is_caught_up) = (piece.end, piece.is_caught_up);
        let (chunks, next_offset) = match self.way {
            Way::Bytes(_) => self.view.bytes(piece, extent.is_complete()),
            Way::Lines(..) => (self.view.lines(piece.items, piece.groups), piece.next),
        };
        self.start = OutputStart::Offset(next_offset);
        Shown {
            chunks,
            next_offset,
            end_offset,
            is_caught_up,
        }
    }
}

pub(super) fn unreadable(error: &std::io::Error) -> Refusal {
    Refusal::storage("read the task's output", error)
}
