//! A caller's own deadline, and the answer when it comes first.
//!
//! tonic keeps it as well, but calls its end CANCELLED, which is what a caller is told who has asked
//! for that. So it is kept here, a moment earlier, by the name that the caller expects.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use http::HeaderMap;
use tokio::time::{Instant, sleep_until};

/// By how much the answer comes before the deadline: tonic's own timer must not be the first, and
/// the answer has a way to go.
const EARLY: Duration = Duration::from_millis(2);

const HEADER: &str = "grpc-timeout";

/// By when a call that comes now is answered with DEADLINE_EXCEEDED; none: it may take for ever.
pub(super) fn of(headers: &HeaderMap) -> Option<Instant> {
    let allowed = allowance(headers.get(HEADER)?.to_str().ok()?)?;
    Instant::now().checked_add(allowed)
}

/// What the call gives, if it does so in time.
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
        // The clock too: an alarm that is set late rings late, and tonic's may be set later yet.
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

/// At most eight digits and a unit, as gRPC writes it. What cannot be read is no deadline.
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
    fn every_unit_is_read_and_nonsense_is_none() {
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
