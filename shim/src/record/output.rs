//! The record of the output part's rules: the limit that was reached, the ring, and the bytes dropped at
//! the end.
//!
//! It is the only record that is rewritten. The two slots are written in turn, so that a reader, and a
//! shim that is killed while it writes, always find a whole one.

use super::{SlotBytes, Unreadable, Writer, decode, position, slot::Reader};
use crate::{layout::Blocks, stamp::Stamp};

/// The state of the output part. A file without this record has all its output, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputState {
    /// Counts the versions of this record, from 1.
    pub number: u64,
    pub limit: Option<Limit>,
    /// Present once blocks may have been overwritten.
    pub ring: Option<Ring>,
    /// The bytes that were dropped behind the last block. They count in offsets.
    pub dropped: u64,
    /// The time of the latest of them.
    pub last_dropped: Stamp,
}

/// The moment from which on output was dropped by rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub cause: LimitCause,
    pub time: Stamp,
    /// The offset of the first byte that was dropped then.
    pub offset: u64,
    /// The shim kills the tree for it.
    pub kills: bool,
}

/// The rule by which output is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitCause {
    /// The task's own policy.
    Policy,
    /// An order of the server.
    ServerBudget,
}

/// The blocks that hold output, and their order: the head from block 0 on, then the ring. The oldest block
/// of the ring is the one whose first offset is the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// The number of blocks in the head.
    pub head: u64,
    /// Blocks of the ring that are being taken out of the file: their content counts no more.
    pub removed: Blocks,
    /// Blocks from this one on count no more.
    pub end: u64,
}

impl OutputState {
    /// The position of this version of the record.
    pub fn position(&self) -> u64 {
        position::OUTPUT[usize::from(self.number.is_multiple_of(2))]
    }

    pub fn encode(&self) -> SlotBytes {
        let mut w = Writer::new(b'O');
        w.u64(self.number);
        w.u64(self.dropped);
        w.stamp(self.last_dropped);
        w.u64(u64::from(self.limit.is_some()));
        if let Some(limit) = &self.limit {
            w.u64(limit.cause.code());
            w.stamp(limit.time);
            w.u64(limit.offset);
            w.u64(u64::from(limit.kills));
        }
        w.u64(u64::from(self.ring.is_some()));
        if let Some(ring) = &self.ring {
            w.u64(ring.head);
            w.u64(ring.removed.from);
            w.u64(ring.removed.to);
            w.u64(ring.end);
        }
        w.finish()
    }

    pub fn decode(slot: &SlotBytes) -> Result<Self, Unreadable> {
        decode(slot, b'O', |r| {
            Some(Self {
                number: r.u64()?,
                dropped: r.u64()?,
                last_dropped: r.stamp()?,
                limit: present(r, Limit::fields)?,
                ring: present(r, Ring::fields)?,
            })
        })
    }
}

impl Limit {
    fn fields(r: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            cause: LimitCause::from_code(r.u64()?)?,
            time: r.stamp()?,
            offset: r.u64()?,
            kills: r.u64()? != 0,
        })
    }
}

impl Ring {
    fn fields(r: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            head: r.u64()?,
            removed: Blocks {
                from: r.u64()?,
                to: r.u64()?,
            },
            end: r.u64()?,
        })
    }
}

impl LimitCause {
    const fn code(self) -> u64 {
        match self {
            Self::Policy => 1,
            Self::ServerBudget => 2,
        }
    }

    const fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Self::Policy),
            2 => Some(Self::ServerBudget),
            _ => None,
        }
    }
}

/// Reads a group of fields, if the record has it.
fn present<T>(r: &mut Reader<'_>, fields: fn(&mut Reader<'_>) -> Option<T>) -> Option<Option<T>> {
    match r.u64()? {
        0 => Some(None),
        1 => fields(r).map(Some),
        _ => None,
    }
}
