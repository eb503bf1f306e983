//! The shim's scheduling class.
//!
//! Processes that fork and exit without pause leave a shim almost no CPU time, because the scheduler
//! gives each new process its share. The shim must still reap them, read orders and win the race of a
//! kill. So, where permitted, it runs in a real-time class until a while after the last sign of a fork
//! storm.

use crate::program::{
    clock::Moment,
    sys::schedule::{self, Class},
};

/// The number of children that end between two wake-ups in a fork storm. Normally it is the leader and a
/// few orphans, one at a time.
pub(crate) const STORM: usize = 32;
/// The time that a storm is assumed to last after its last sign.
const AFTER_MILLIS: u64 = 2000;

/// The present scheduling class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Normal,
    /// Real-time, until this moment unless it is prolonged.
    Hurried {
        until: Moment,
    },
    /// Normal, because real-time is not permitted.
    Refused,
}

impl Pace {
    /// Enters or prolongs the real-time class, if permitted.
    pub(crate) fn hurry(&mut self) {
        *self = match self {
            Self::Normal if schedule::take(Class::RealTime).is_ok() => Self::hurried(),
            Self::Hurried { .. } => Self::hurried(),
            Self::Normal | Self::Refused => Self::Refused,
        }
    }

    /// Returns to the normal class once the storm is over.
    pub(crate) fn relax_after_storm(&mut self) {
        if let Self::Hurried { until } = self
            && *until <= Moment::now()
        {
            self.relax();
        }
    }

    /// Returns to the normal class.
    pub(crate) fn relax(&mut self) {
        if let Self::Hurried { .. } = self {
            let _ = schedule::take(Class::Normal);
            *self = Self::Normal;
        }
    }

    /// Returns whether the real-time class must still be left.
    pub(crate) fn is_hurried(&self) -> bool {
        matches!(self, Self::Hurried { .. })
    }

    fn hurried() -> Self {
        Self::Hurried {
            until: Moment::now().after(AFTER_MILLIS),
        }
    }
}
