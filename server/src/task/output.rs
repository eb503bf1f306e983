//! A task's output.

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// The moment from which on a task's output was dropped by rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLimit {
    pub cause: OutputLimitCause,
    pub at: Timestamp,
    /// The offset of the first byte that was dropped then.
    pub offset: u64,
}

/// The rule by which output is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputLimitCause {
    /// The task's own policy.
    Policy,
    /// The server's limit on the output of all tasks.
    ServerBudget,
}

/// One of a task's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

/// Bytes of one stream that arrived together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The offset of the first byte.
    pub offset: u64,
    pub stream: Stream,
    /// The time at which they were read.
    pub at: Timestamp,
    pub data: Vec<u8>,
}

/// Output that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The offset of the first missing byte.
    pub offset: u64,
    pub length: u64,
    pub cause: GapCause,
    /// The number of line ends among the missing bytes, if they were counted.
    pub lines: Option<u64>,
}

/// The cause of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapCause {
    /// Newer output has taken its place.
    Rotated,
    /// It was beyond the limit.
    Truncated,
    /// It is damaged or gone, or there was no room for it.
    Lost,
    /// It can be read, and is left out of the requested view.
    Omitted,
}

/// A piece of output, or the place of a missing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    Chunk(Chunk),
    Gap(Gap),
}

impl Chunk {
    /// The offset after the last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }
}

impl Gap {
    /// The offset after the last missing byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

impl Item {
    /// The offset after it.
    pub fn end(&self) -> u64 {
        match self {
            Self::Chunk(chunk) => chunk.end(),
            Self::Gap(gap) => gap.end(),
        }
    }
}

/// The end of a task's output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tail {
    /// In the order of arrival.
    pub items: Vec<Item>,
    /// Bytes of output written in all.
    pub end: u64,
}
