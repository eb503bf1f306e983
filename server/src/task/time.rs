//! Times: by the wall clock for people, by the monotonic clock for timers. Nothing here reads a clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Microseconds since 1970.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// Microseconds of `CLOCK_MONOTONIC`, which setting the wall clock does not change and which does not
/// count suspended time. It continues across a restart of the server and begins anew with every boot:
/// times of different boots must not be compared.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Monotonic(pub u64);

/// One moment by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moment {
    pub wall: Timestamp,
    pub mono: Monotonic,
}

impl Moment {
    /// The moment this much later, or the largest one.
    pub fn saturating_add(self, span: Duration) -> Self {
        Self {
            wall: self.wall.saturating_add(span),
            mono: self.mono.saturating_add(span),
        }
    }
}

impl Timestamp {
    /// The time this much later, or the largest one.
    pub fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// The time since `earlier`; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for Timestamp {
    /// From the time since 1970.
    fn from(since_1970: Duration) -> Self {
        Self(micros(since_1970))
    }
}

impl Monotonic {
    /// The time this much later, or the largest one.
    pub fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// The time since `earlier`; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for Monotonic {
    /// From the reading of the clock.
    fn from(reading: Duration) -> Self {
        Self(micros(reading))
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T3
    #[test]
    fn adding_the_longest_duration_saturates() {
        let (wall, mono) = (Timestamp(7), Monotonic(7));
        assert_eq!(wall.saturating_add(Duration::MAX), Timestamp(u64::MAX));
        assert_eq!(mono.saturating_add(Duration::MAX), Monotonic(u64::MAX));
    }

    #[test]
    fn the_time_since_a_later_time_is_zero() {
        assert_eq!(Timestamp(7).since(Timestamp(9)), Duration::ZERO);
        assert_eq!(Monotonic(7).since(Monotonic(9)), Duration::ZERO);
    }
}
