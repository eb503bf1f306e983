//! What a task has written.

use super::Timestamp;

/// Which of a task's pipes bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Where they came from.
    pub stream: Stream,
    /// When they were read.
    pub at: Timestamp,
    /// The bytes.
    pub data: Vec<u8>,
}

/// The end of a task's output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tail {
    /// In the order of arrival.
    pub chunks: Vec<Chunk>,
    /// How much output there is in all.
    pub end: u64,
}
