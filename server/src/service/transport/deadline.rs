//! The caller's deadline (`grpc-timeout`), answered with DEADLINE_EXCEEDED.
//!
//! tonic enforces the deadline too, but answers CANCELLED. So it is enforced here, slightly earlier.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use http::HeaderMap;
use tokio::time::{Instant, sleep_until};

/// The margin before the deadline: tonic's own timer must not fire first, and the answer has to
/// travel.
const EARLY: Duration = Duration::from_millis(2);

const HEADER: &str = "grpc-timeout";

/// The time at which a call that arrives now is answered with DEADLINE_EXCEEDED; `None`: never.
pub(super) fn of(headers: &HeaderMap) -> Option<Instant> {
    let allowed = allowance(headers.get(HEADER)?.to_str().ok()?)?;
    Instant::now().checked_add(allowed)
}

/// The answer of the call, if it comes in time.
pub(super) async fn within<T>(
    deadline: Option<Instant>,
    call: impl Future<Output = T>,
) -> Option<T> {
    let Some(deadline) = deadline else {
        return Some(call.await);
    };
    let (mut call, mut alarm) = (pin!(call), pin!(sleep_until(deadline)));
    poll_fn(|context| {
        if let Poll::Ready(answer) = call.as_mut().poll(context) {
            return Poll::Ready(Some(answer));
        }
        // The clock too: a timer that is set late fires late, and tonic's may be set later still.
        match alarm.as_mut().poll(context).is_ready() || Instant::now() >= deadline {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    })
    .await
}

fn allowance(text: &str) -> Option<Duration> {
    let given = parse(text)?;
    Some(given - EARLY.min(given / 2))
}

/// At most eight digits and a unit, as in the gRPC specification. A malformed value is no deadline.
fn parse(text: &str) -> Option<Duration> {
    let (value, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=8).contains(&value.len()) || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: u64 = value.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(value * 60 * 60)),
        "M" => Some(Duration::from_secs(value * 60)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_parsed_and_malformed_values_are_ignored() {
        assert_eq!(parse("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(parse("3M"), Some(Duration::from_secs(180)));
        assert_eq!(parse("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(parse("5m"), Some(Duration::from_millis(5)));
        assert_eq!(parse("6u"), Some(Duration::from_micros(6)));
        assert_eq!(parse("7n"), Some(Duration::from_nanos(7)));
        for bad in ["", "S", "1", "-1S", "+1S", "1s", "123456789S", "1.5S", "1é"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_answer_comes_before_the_deadline() {
        for (given, left) in [("1S", 998_000), ("3m", 1_500), ("0m", 0)] {
            assert_eq!(allowance(given), Some(Duration::from_micros(left)));
        }
        assert_eq!(of(&HeaderMap::new()), None);
    }
}
