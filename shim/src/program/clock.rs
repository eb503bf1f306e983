//! The time: of day for records, since some moment for deadlines.

use super::sys::signals;

const CLOCK_REALTIME: usize = 0;
const CLOCK_MONOTONIC: usize = 1;
const CLOCK_BOOTTIME: usize = 7;

/// Microseconds since 1970.
pub(super) fn now_micros() -> u64 {
    let (seconds, nanos) = signals::time(CLOCK_REALTIME);
    seconds * 1_000_000 + nanos / 1000
}

/// Nanoseconds since boot, as the start times of processes count them.
pub(super) fn boot_nanos() -> u64 {
    let (seconds, nanos) = signals::time(CLOCK_BOOTTIME);
    seconds * 1_000_000_000 + nanos
}

/// A moment, in milliseconds since one in the past, which no change of the time of day moves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(u64);

impl Moment {
    /// The present one.
    pub(super) fn now() -> Self {
        let (seconds, nanos) = signals::time(CLOCK_MONOTONIC);
        Self(seconds * 1000 + nanos / 1_000_000)
    }

    /// So many milliseconds later.
    pub(super) fn after(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}
