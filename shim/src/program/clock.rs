//! The clocks: wall clock and monotonic clock for records, monotonic for deadlines, boot time for the
//! start times of processes.

use heeler_shim::stamp::Stamp;

use super::sys::signals;

const CLOCK_REALTIME: usize = 0;
const CLOCK_MONOTONIC: usize = 1;
const CLOCK_BOOTTIME: usize = 7;

/// Returns the present moment by both clocks of a record.
pub(crate) fn stamp() -> Stamp {
    Stamp {
        wall_micros: micros(CLOCK_REALTIME),
        monotonic_micros: micros(CLOCK_MONOTONIC),
    }
}

/// Returns nanoseconds since boot, as the start times of processes count them.
pub(crate) fn boot_nanos() -> u64 {
    let (seconds, nanos) = signals::time(CLOCK_BOOTTIME);
    seconds * 1_000_000_000 + nanos
}

/// A moment on the monotonic clock, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) fn now() -> Self {
        let (seconds, nanos) = signals::time(CLOCK_MONOTONIC);
        Self(seconds * 1000 + nanos / 1_000_000)
    }

    pub(crate) fn after(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Returns the milliseconds from an earlier moment; 0 if that is later.
    pub(crate) fn millis_from(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

fn micros(clock: usize) -> u64 {
    let (seconds, nanos) = signals::time(clock);
    seconds * 1_000_000 + nanos / 1000
}
