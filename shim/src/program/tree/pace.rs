//! The shim's priority.
//!
//! Processes that fork and exit without pause leave a shim almost no CPU time, because the scheduler
//! gives each new process its share. The shim must still read orders and win the race of a kill. So it
//! takes the best priority that it may have, until a while after the last sign of a fork storm. It looks whether
//! the storm is over before it gives the priority back: without it, it might not run again for long.

use crate::program::{clock::Moment, sys::schedule::Ordinary};

/// The number of children that end between two wake-ups in a fork storm. Normally it is the leader and a
/// few orphans, one at a time.
pub(crate) const STORM: usize = 32;
/// The time that a storm is assumed to last after its last sign.
const AFTER_MILLIS: u64 = 2000;
/// The time in which as many children must end for a storm to go on.
const LOOK_MILLIS: u64 = 100;

/// The present priority.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    Normal,
    /// The best one that is permitted.
    Hurried {
        ordinary: Ordinary,
        until: Until,
    },
}

/// The end of a better priority, unless it is prolonged.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    /// Then it is time to look whether the storm is over.
    Look(Moment),
    /// The storm is over then, unless enough children end before.
    Calm { from: Moment, ended: usize },
}

/// The step about a storm that is due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// To reap, and see whether the storm goes on.
    Look,
    /// To take the normal priority.
    Relax,
}

impl Pace {
    /// Takes or prolongs the best priority.
    pub(crate) fn hurry(&mut self) {
        let ordinary = match self {
            Self::Normal => {
                let ordinary = Ordinary::of_this_process();
                // Nothing better may be permitted; the storm is remembered all the same.
                let _ = ordinary.exceed();
                ordinary
            }
            Self::Hurried { ordinary, .. } => *ordinary,
        };
        let until = Until::Look(Moment::now().after(AFTER_MILLIS));
        *self = Self::Hurried { ordinary, until };
    }

    /// Returns whether so many children that have ended are the sign of a storm.
    pub(crate) fn is_storm(&mut self, count: usize) -> bool {
        match self {
            Self::Hurried {
                until: Until::Calm { ended, .. },
                ..
            } => {
                *ended += count;
                *ended >= STORM
            }
            Self::Normal | Self::Hurried { .. } => count >= STORM,
        }
    }

    /// Returns what is due; a look begins with it.
    pub(crate) fn due(&mut self) -> Due {
        let Self::Hurried { until, .. } = self else {
            return Due::Nothing;
        };
        let now = Moment::now();
        match *until {
            Until::Look(at) if at <= now => {
                let from = now.after(LOOK_MILLIS);
                *until = Until::Calm { from, ended: 0 };
                Due::Look
            }
            Until::Calm { from, .. } if from <= now => Due::Relax,
            Until::Look(_) | Until::Calm { .. } => Due::Nothing,
        }
    }

    /// Returns to the normal priority.
    pub(crate) fn relax(&mut self) {
        if let Self::Hurried { ordinary, .. } = self {
            ordinary.restore();
            *self = Self::Normal;
        }
    }

    /// Returns whether the better priority must still be given back.
    pub(crate) fn is_hurried(&self) -> bool {
        matches!(self, Self::Hurried { .. })
    }
}
