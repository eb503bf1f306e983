//! The monotonic clock, for deadlines.
//!
//! `CLOCK_MONOTONIC` does not count suspended time, is not changed when the wall clock is set, and goes
//! on across a restart of the server. It begins anew with every boot, so a stored value is of use only
//! together with a boot id.

use std::time::Duration;

use heeler_shim::stamp::Stamp;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::task::Timestamp;

/// Microseconds of `CLOCK_MONOTONIC`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Monotonic(pub u64);

/// One moment by both clocks: the wall clock for people, the monotonic clock for deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moment {
    pub wall: Timestamp,
    pub mono: Monotonic,
}

impl Monotonic {
    pub fn now() -> Self {
        // Linux always has this clock.
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
        Self(micros(now))
    }

    pub fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// The time since `earlier`; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Moment {
    pub fn now() -> Self {
        Self {
            wall: Timestamp::now(),
            mono: Monotonic::now(),
        }
    }
}

impl From<Stamp> for Moment {
    fn from(stamp: Stamp) -> Self {
        Self {
            wall: Timestamp(stamp.wall_micros),
            mono: Monotonic(stamp.monotonic_micros),
        }
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T6
    #[test]
    fn the_monotonic_clock_advances_with_the_runtime_of_this_process() {
        let (before, instant) = (Monotonic::now(), std::time::Instant::now());
        while instant.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        let passed = Monotonic::now().since(before);
        assert!(passed >= Duration::from_millis(2), "{passed:?}");
        assert_eq!(before.since(Monotonic::now()), Duration::ZERO);
    }

    /// T3
    #[test]
    fn the_longest_span_does_not_overflow() {
        let end = Monotonic(7).saturating_add(Duration::MAX);
        assert_eq!(end, Monotonic(u64::MAX));
    }
}
