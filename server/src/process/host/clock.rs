//! The monotonic clock, for timers.

use std::time::Duration;

use heeler_shim::stamp::Stamp;
use nix::time::{ClockId, clock_gettime};

use crate::task::{Moment, Monotonic, Timestamp};

impl Monotonic {
    pub fn now() -> Self {
        // Linux always has this clock.
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
        now.map_or(Duration::ZERO, Duration::from).into()
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
}
