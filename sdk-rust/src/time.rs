//! Between protobuf's times and those of `std`. Nothing here fails: what cannot be represented
//! becomes the nearest that can.

use std::time::{Duration, SystemTime};

/// The longest span that a protobuf Duration may have: about 10,000 years.
const MAX_SECONDS: i64 = 315_576_000_000;

/// A span for a request. One that is too long becomes the longest there is.
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

/// A span from an answer. A negative one becomes zero.
pub fn from_proto(duration: prost_types::Duration) -> Duration {
    Duration::try_from(duration).unwrap_or_default()
}

/// A moment from an answer. One that the system cannot represent becomes the epoch.
pub fn to_system(timestamp: prost_types::Timestamp) -> SystemTime {
    SystemTime::try_from(timestamp).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// How long after `earlier` it was; zero if it was before.
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
    fn very_long_spans_become_the_longest() {
        assert_eq!(to_proto(Duration::MAX).seconds, MAX_SECONDS);
        assert_eq!(
            from_proto(to_proto(Duration::MAX)).as_secs(),
            MAX_SECONDS as u64
        );
    }

    #[test]
    fn negative_spans_become_zero() {
        assert_eq!(
            from_proto(prost_types::Duration {
                seconds: -1,
                nanos: 0
            }),
            Duration::ZERO
        );
    }

    #[test]
    fn a_clock_that_went_back_gives_no_age() {
        let at = |seconds| prost_types::Timestamp { seconds, nanos: 0 };
        assert_eq!(since(at(7), at(5)), Duration::from_secs(2));
        assert_eq!(since(at(5), at(7)), Duration::ZERO);
    }
}
