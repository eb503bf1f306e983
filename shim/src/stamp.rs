//! A moment by two clocks.
//!
//! The wall clock is what people are shown. It can be set, so no deadline may depend on it. The
//! monotonic clock can be compared only within one boot, which is why an identity record has a boot id.

/// The size of a stamp in a frame header.
pub const STAMP: usize = 16;

/// A moment by the wall clock and by `CLOCK_MONOTONIC`, which does not count suspended time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Microseconds since 1970.
    pub wall_micros: u64,
    /// Microseconds of `CLOCK_MONOTONIC`.
    pub monotonic_micros: u64,
}

impl Stamp {
    /// Returns the stamp's little-endian bytes, the wall clock first.
    pub fn encode(&self) -> [u8; STAMP] {
        let mut out = [0; STAMP];
        out[..8].copy_from_slice(&self.wall_micros.to_le_bytes());
        out[8..].copy_from_slice(&self.monotonic_micros.to_le_bytes());
        out
    }

    /// Reads a stamp back.
    pub fn decode(bytes: &[u8; STAMP]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Self {
            wall_micros: word(0),
            monotonic_micros: word(8),
        }
    }
}
