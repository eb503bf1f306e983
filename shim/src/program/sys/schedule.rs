//! The scheduling class, and the time slice in the normal one.
//!
//! A woken process with a short slice runs before those with longer ones. So a shim acts at once though
//! its task uses every CPU. It costs no other process its share, and needs no privilege. Kernels before
//! Linux 6.12 ignore it.

use super::{Result, call};
use crate::program::arch::number;

const SCHED_OTHER: usize = 0;
const SCHED_RR: usize = 2;
const SCHED_RESET_ON_FORK: usize = 0x4000_0000;
/// The shortest slice that the kernel accepts.
const SHORT_NANOS: u64 = 100_000;

/// `struct sched_attr`, first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// In the normal class: the slice; 0 is the default.
    runtime_nanos: u64,
    deadline_nanos: u64,
    period_nanos: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum Slice {
    Default,
    Short,
}

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
    .map(drop)?;
    set_slice(Slice::Short);
    Ok(())
}

/// Sets the slice of this process, if it is in the normal class. Children inherit it.
pub(crate) fn set_slice(slice: Slice) {
    let mut attributes = Attributes::default();
    let at = &raw mut attributes as usize;
    // SAFETY: there is room for the attributes.
    let read = unsafe { call(number::SCHED_GETATTR, [0, at, size_of::<Attributes>(), 0]) };
    if read.is_ok() && attributes.policy as usize == SCHED_OTHER {
        attributes.runtime_nanos = match slice {
            Slice::Default => 0,
            Slice::Short => SHORT_NANOS,
        };
        let at = &raw const attributes as usize;
        // SAFETY: the attributes are complete.
        let _ = unsafe { call(number::SCHED_SETATTR, [0, at, 0]) };
    }
}
