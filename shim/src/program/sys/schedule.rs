//! The scheduling class.

use super::{Result, call};
use crate::program::arch::number;

const SCHED_OTHER: usize = 0;
const SCHED_RR: usize = 2;
const SCHED_RESET_ON_FORK: usize = 0x4000_0000;

#[derive(Clone, Copy)]
pub(crate) enum Class {
    Normal,
    /// Needs a privilege or a resource limit that permits it.
    RealTime,
}

/// Sets the class of this process.
pub(crate) fn take(class: Class) -> Result<()> {
    let (policy, priority) = match class {
        Class::Normal => (SCHED_OTHER, 0i32),
        Class::RealTime => (SCHED_RR, 1),
    };
    // Kept for the normal class too, since clearing the flag needs a privilege.
    let policy = policy | SCHED_RESET_ON_FORK;
    // SAFETY: the parameter is one number.
    unsafe {
        call(
            number::SCHED_SETSCHEDULER,
            [0, policy, &raw const priority as usize],
        )
    }
    .map(drop)
}
