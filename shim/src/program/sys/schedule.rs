//! The scheduling of this process.

use super::{Result, call};
use crate::program::arch::number;

const SCHED_OTHER: u32 = 0;
const SCHED_RR: u32 = 2;
/// Children are scheduled as if nothing had been changed. The flag is never cleared, since
/// that needs a privilege.
const RESET_ON_FORK: u64 = 1;
const HIGHEST: i32 = -20;
/// A time slice by which the kernel prefers a process that wakes up. Kernels before 6.12 ignore it.
const SHORT_SLICE_NANOS: u64 = 200_000;
const DEFAULT_SLICE: u64 = 0;

/// `struct sched_attr`, its first version.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// The time slice, for the normal class.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The priority that a process has by itself.
#[derive(Clone, Copy)]
pub(crate) struct Ordinary {
    nice: i32,
}

impl Ordinary {
    pub(crate) fn of_this_process() -> Self {
        let mut found = Attributes::default();
        let (own, size, flags) = (0, size_of::<Attributes>(), 0);
        let args = [own, &raw mut found as usize, size, flags];
        // SAFETY: there is room for the attributes.
        let _ = unsafe { call(number::SCHED_GETATTR, args) };
        Self { nice: found.nice }
    }

    /// Returns to it.
    pub(crate) fn restore(self) {
        let _ = set(SCHED_OTHER, self.nice, DEFAULT_SLICE);
    }

    /// Takes the best that is permitted: the real-time class, the highest priority, a short time slice.
    pub(crate) fn exceed(self) -> Result<()> {
        set(SCHED_RR, 0, DEFAULT_SLICE)
            .or_else(|_| set(SCHED_OTHER, HIGHEST, SHORT_SLICE_NANOS))
            .or_else(|_| set(SCHED_OTHER, self.nice, SHORT_SLICE_NANOS))
    }
}

fn set(policy: u32, nice: i32, slice: u64) -> Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy,
        flags: RESET_ON_FORK,
        nice,
        priority: u32::from(policy == SCHED_RR),
        runtime: slice,
        ..Attributes::default()
    };
    let (own, flags) = (0, 0);
    // SAFETY: the kernel reads the attributes.
    unsafe {
        call(
            number::SCHED_SETATTR,
            [own, &raw const attributes as usize, flags],
        )
    }
    .map(drop)
}
