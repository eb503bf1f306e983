//! How urgently we run.
//!
//! Processes that fork and exit without pause leave a shim next to nothing of the processor: each
//! newborn counts like a process of its own. What they leave behind must be taken nevertheless, an
//! order must be heard, and a kill is a race with them. So, where it is allowed, we go before
//! everybody until a while after the last sign of a storm.

use super::{
    clock::Moment,
    sys::schedule::{self, Class},
};

/// How many children end between two of our turns in a storm. In peace it is the leader and a few
/// orphans, one at a time.
pub(super) const STORM: usize = 32;
/// How long a storm is taken to last after its last sign.
const AFTER_MILLIS: u64 = 2000;

/// How urgently we run now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// As everybody.
    Normal,
    /// Before everybody.
    Hurried {
        /// Unless there is a reason to go on.
        until: Moment,
    },
    /// As everybody, since more is not allowed.
    Refused,
}

impl Pace {
    /// Goes before everybody, if that is allowed.
    pub(super) fn hurry(&mut self) {
        *self = match self {
            Self::Normal if schedule::take(Class::RealTime).is_ok() => Self::hurried(),
            Self::Hurried { .. } => Self::hurried(),
            Self::Normal | Self::Refused => Self::Refused,
        }
    }

    /// Goes with everybody, if there has been no reason for anything else for a while.
    pub(super) fn calm(&mut self) {
        if let Self::Hurried { until } = self
            && *until <= Moment::now()
        {
            self.relax();
        }
    }

    /// Goes with everybody.
    pub(super) fn relax(&mut self) {
        if let Self::Hurried { .. } = self {
            let _ = schedule::take(Class::Normal);
            *self = Self::Normal;
        }
    }

    /// Whether it is to be calmed down some time.
    pub(super) fn is_hurried(&self) -> bool {
        matches!(self, Self::Hurried { .. })
    }

    fn hurried() -> Self {
        Self::Hurried {
            until: Moment::now().after(AFTER_MILLIS),
        }
    }
}
