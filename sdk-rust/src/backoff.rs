//! The delays between retries: they grow, are bounded and differ between clients. The caller supplies
//! the duration of each attempt.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

const FIRST: Duration = Duration::from_millis(10);
/// The longest delay, unless a shorter one is set.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

/// A failed attempt, and its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The daemon was connected.
    Connected(Duration),
    Unconnected(Duration),
}

/// The delays of one series of failures.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    /// Maximum duration of the series; `None`: no limit.
    time_limit: Option<Duration>,
    longest: Duration,
    spent: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(time_limit: Option<Duration>) -> Self {
        Self {
            time_limit,
            longest: LONGEST,
            spent: Duration::ZERO,
            next: FIRST,
        }
    }

    /// Ends the series: the next failure begins a new one.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            longest: self.longest,
            ..Self::new(self.time_limit)
        };
    }

    /// Bounds the delays from here on, but never to zero.
    pub(crate) fn no_longer_than(&mut self, longest: Duration) {
        self.longest = longest.clamp(FIRST, LONGEST);
    }

    /// Returns the delay after an attempt; `None`: give up.
    ///
    /// The failure of a connection that lasted longer than any delay begins a new series.
    pub(crate) fn after_failure(&mut self, attempt: Attempt) -> Option<Duration> {
        self.pause(attempt, jitter())
    }

    /// `jitter` is between 0 and 1 and removes up to half of the delay.
    fn pause(&mut self, attempt: Attempt, jitter: f64) -> Option<Duration> {
        match attempt {
            Attempt::Connected(lasted) if lasted > LONGEST => self.reset(),
            Attempt::Connected(lasted) | Attempt::Unconnected(lasted) => {
                self.spent = self.spent.saturating_add(lasted);
            }
        }
        if self
            .time_limit
            .is_some_and(|time_limit| self.spent >= time_limit)
        {
            return None;
        }
        let delay = self.next.min(self.longest).mul_f64(1.0 - jitter / 2.0);
        self.next = (self.next * 2).min(LONGEST);
        self.spent = self.spent.saturating_add(delay);
        Some(delay)
    }
}

/// The standard library seeds its hashers at random, which is random enough here.
fn jitter() -> f64 {
    let random = RandomState::new().hash_one(0_u8) >> 11;
    random as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(millis: u64) -> Attempt {
        Attempt::Connected(Duration::from_millis(millis))
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let mut backoff = Backoff::new(None);
        let delays: Vec<_> = (0..10)
            .filter_map(|_| backoff.pause(after(0), 0.0))
            .collect();
        assert_eq!(delays[..3], [10, 20, 40].map(Duration::from_millis));
        assert_eq!(delays[9], LONGEST);
    }

    #[test]
    fn delays_stay_below_the_bound_that_is_set() {
        let mut backoff = Backoff::new(None);
        backoff.no_longer_than(Duration::from_millis(25));
        let delays: Vec<_> = (0..3)
            .filter_map(|_| backoff.pause(after(0), 0.0))
            .collect();
        assert_eq!(delays, [10, 20, 25].map(Duration::from_millis));
        backoff.no_longer_than(Duration::ZERO);
        assert_eq!(backoff.pause(after(0), 0.0), Some(FIRST));
    }

    #[test]
    fn jitter_removes_at_most_half() {
        let mut backoff = Backoff::new(None);
        assert_eq!(backoff.pause(after(0), 1.0), Some(FIRST / 2));
        assert!((0.0..1.0).contains(&jitter()));
    }

    #[test]
    fn the_time_limit_counts_delays_and_attempts() {
        let mut backoff = Backoff::new(Some(Duration::from_millis(30)));
        assert_eq!(backoff.pause(after(10), 0.0), Some(FIRST));
        assert_eq!(backoff.pause(after(10), 0.0), None);
    }

    #[test]
    fn a_long_attempt_begins_a_new_series() {
        let mut backoff = Backoff::new(Some(Duration::from_millis(30)));
        while backoff.pause(after(10), 0.0).is_some() {}
        assert_eq!(backoff.pause(after(60_000), 0.0), Some(FIRST));
    }

    #[test]
    fn a_long_attempt_to_connect_counts() {
        let mut backoff = Backoff::new(Some(Duration::from_secs(15)));
        let unconnected = Attempt::Unconnected(Duration::from_secs(10));
        assert_eq!(backoff.pause(unconnected, 0.0), Some(FIRST));
        assert_eq!(backoff.pause(unconnected, 0.0), None);
    }

    #[test]
    fn a_zero_time_limit_means_one_attempt() {
        assert_eq!(
            Backoff::new(Some(Duration::ZERO)).pause(after(0), 0.0),
            None
        );
    }
}
