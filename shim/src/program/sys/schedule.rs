//! How much of the processor we get.

use super::{Result, call};
use crate::program::arch::number;

const SCHED_OTHER: usize = 0;
const SCHED_RR: usize = 2;
const SCHED_RESET_ON_FORK: usize = 0x4000_0000;

/// A place in the queue for the processor.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    /// As everybody.
    Normal,
    /// Before everybody: only with a privilege or a limit that allows it.
    RealTime,
}

/// Takes a place for ourselves.
pub(crate) fn take(class: Class) -> Result<()> {
    let (policy, priority) = match class {
        Class::Normal => (SCHED_OTHER, 0i32),
        Class::RealTime => (SCHED_RR, 1),
    };
    // Kept on the way back: to take it away is a privilege, which we may not need for the rest.
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
