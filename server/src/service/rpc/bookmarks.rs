//! The bookmarks of a stream: sent when it has been silent for a while.

use std::{pin::Pin, time::Duration};

use tokio::time::{Instant, Sleep};

use crate::service::wire::{check, refusal::Refusal};

const DEFAULT: Duration = Duration::from_secs(15);
const SHORTEST: Duration = Duration::from_millis(100);
/// A longer interval is shortened, so that the timer's arithmetic cannot overflow.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Reads the field `bookmark_interval` of a request.
pub(super) fn interval(interval: Option<prost_types::Duration>) -> Result<Duration, Refusal> {
    const FIELD: &str = "bookmark_interval";
    match check::optional_duration(FIELD, interval)? {
        None => Ok(DEFAULT),
        Some(every) if every < SHORTEST => Err(Refusal::field(FIELD, "is shorter than 100 ms")),
        Some(every) => Ok(every.min(LONGEST)),
    }
}

#[derive(Debug)]
pub(super) struct Bookmarks {
    every: Duration,
    due: Instant,
    /// Fires at `due` or earlier: each message moves the former, and few need to reset the timer.
    alarm: Pin<Box<Sleep>>,
}

impl Bookmarks {
    pub(super) fn new(every: Duration) -> Self {
        let due = Instant::now() + every;
        Self {
            every,
            due,
            alarm: Box::pin(tokio::time::sleep_until(due)),
        }
    }

    /// Notes that the stream has sent something.
    pub(super) fn postpone(&mut self) {
        self.due = Instant::now() + self.every;
    }

    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// Waits until one may be due.
    pub(super) async fn may_be_due(&mut self) {
        self.alarm.as_mut().await;
        self.alarm.as_mut().reset(self.due);
    }
}
