//! The shim's priority.
//!
//! Processes that fork and exit without pause leave a shim almost no CPU time, because the scheduler
//! gives each new process its share. The shim must still read orders and win the race of a kill. So it
//! takes the best priority that it may have, until a while after the last sign of a fork storm.

use crate::program::{clock::Moment, sys::schedule::Ordinary};

/// The number of children that end between two wake-ups in a fork storm. Normally it is the leader and a
/// few orphans, one at a time.
pub(crate) const STORM: usize = 32;
/// The time that a storm is assumed to last after its last sign.
const AFTER_MILLIS: u64 = 2000;

/// The present priority.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    Normal,
    /// The best one that is permitted, until this moment unless it is prolonged.
    Hurried {
        until: Moment,
        ordinary: Ordinary,
    },
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
        let until = Moment::now().after(AFTER_MILLIS);
        *self = Self::Hurried { until, ordinary };
    }

    /// Returns whether the last sign of a storm is long ago.
    pub(crate) fn is_storm_over(&self) -> bool {
        match self {
            Self::Normal => false,
            Self::Hurried { until, .. } => *until <= Moment::now(),
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
