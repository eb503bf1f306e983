//! Conversions between the times of protobuf and of `std`. They do not fail: a value that cannot be
//! represented becomes the nearest that can.

use std::time::{Duration, SystemTime};

/// The longest protobuf Duration: about 10,000 years.
const MAX_SECONDS: i64 = 315_576_000_000;

/// Converts a duration for a request. A duration that is too long becomes the longest.
///
/// ```
/// use std::time::Duration;
///
/// let sent = heeler_client::time::to_proto(Duration::from_millis(1500));
/// assert_eq!((sent.seconds, sent.nanos), (1, 500_000_000));
/// ```
pub fn to_proto(duration: Duration) -> prost_types::Duration {
    match i64::try_from(duration.as_secs()) {
        Ok(seconds) if seconds < MAX_SECONDS => prost_types::Duration {
            seconds,
            nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
        },
        Ok(_) | Err(_) => prost_types::Duration {
            seconds: MAX_SECONDS,
            nanos: 0,
        },
    }
}

/// Converts a duration of an answer. A negative one becomes zero.
pub fn from_proto(duration: prost_types::Duration) -> Duration {
    Duration::try_from(duration).unwrap_or_default()
}

/// Converts a time of an answer. A time that the system cannot represent becomes the Unix epoch.
pub fn to_system(timestamp: prost_types::Timestamp) -> SystemTime {
    SystemTime::try_from(timestamp).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The time since `earlier`; zero if it is not earlier.
pub fn since(later: prost_types::Timestamp, earlier: prost_types::Timestamp) -> Duration {
    to_system(later)
        .duration_since(to_system(earlier))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T3
    #[test]
    fn very_long_durations_become_the_longest() {
        assert_eq!(to_proto(Duration::MAX).seconds, MAX_SECONDS);
        assert_eq!(
            from_proto(to_proto(Duration::MAX)).as_secs(),
            MAX_SECONDS as u64
        );
    }

    #[test]
    fn negative_durations_become_zero() {
        assert_eq!(
            from_proto(prost_types::Duration {
                seconds: -1,
                nanos: 0
            }),
            Duration::ZERO
        );
    }

    #[test]
    fn a_clock_that_was_set_back_gives_an_age_of_zero() {
        let at = |seconds| prost_types::Timestamp { seconds, nanos: 0 };
        assert_eq!(since(at(7), at(5)), Duration::from_secs(2));
        assert_eq!(since(at(5), at(7)), Duration::ZERO);
    }
}
