//! The time for which a client may keep its task waiting, as [`BLOCKED_MILLIS`] and [`SHORT_MILLIS`] say.

use heeler_shim::relay::{BLOCKED_MILLIS, SHORT_MILLIS};

use crate::program::clock::Moment;

/// The time without a wait that adds a millisecond to the allowance, in milliseconds.
const REGAIN_MILLIS: u64 = 10;

pub(super) struct Allowance {
    millis: u64,
    /// The beginning of the present wait, or the end of the last one.
    since: Moment,
}

impl Allowance {
    pub(super) fn new() -> Self {
        Self {
            millis: BLOCKED_MILLIS,
            since: Moment::now(),
        }
    }

    /// Begins a wait; returns the moment at which it has taken too long.
    pub(super) fn begin_wait(&mut self) -> Moment {
        let now = Moment::now();
        let regained = now.millis_from(self.since) / REGAIN_MILLIS;
        self.millis = (self.millis + regained).min(BLOCKED_MILLIS);
        self.since = now;
        now.after(SHORT_MILLIS + self.millis)
    }

    pub(super) fn end_wait(&mut self) {
        let now = Moment::now();
        let waited = now.millis_from(self.since).saturating_sub(SHORT_MILLIS);
        self.millis = self.millis.saturating_sub(waited);
        self.since = now;
    }
}
