//! A task's output.

use super::Timestamp;

/// One of a task's output streams.
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
    pub stream: Stream,
    /// The time at which they were read.
    pub at: Timestamp,
    pub data: Vec<u8>,
}

/// The end of a task's output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tail {
    /// In the order of arrival.
    pub chunks: Vec<Chunk>,
    /// Bytes of output written in all.
    pub end: u64,
}
