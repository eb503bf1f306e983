//! The scheduling of the server's threads.
//!
//! A woken thread with a short slice runs before processes with longer ones. So a Cancel waits less beside
//! a task that uses every CPU. It costs no other process its share, and needs no privilege.
//! Kernels before Linux 6.12 ignore it.

use std::fs;

use nix::libc;

/// The shortest slice that the kernel accepts.
const SLICE_NANOS: u64 = 100_000;

/// `struct sched_attr`, first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// In the normal class: the slice.
    runtime_nanos: u64,
    deadline_nanos: u64,
    period_nanos: u64,
}

/// Shortens the slice of every thread that is in the normal class. Later threads inherit it, and so do
/// shims, which reset it for their leaders.
pub(crate) fn shorten_slices() {
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    for thread in threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        shorten_slice(thread);
    }
}

fn shorten_slice(thread: libc::pid_t) {
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>();
    // SAFETY: the kernel writes at most `size` bytes to the attributes.
    let read = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            thread,
            &raw mut attributes,
            size,
            0,
        )
    };
    if read == 0 && attributes.policy == libc::SCHED_OTHER as u32 {
        attributes.runtime_nanos = SLICE_NANOS;
        // SAFETY: the attributes are complete, and carry their size.
        let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) };
    }
}

/// The scheduling class of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::process) enum Class {
    Normal,
    /// Needs a privilege or a resource limit that permits it.
    RealTime,
}

/// Sets the class of the calling thread, if permitted. What it starts is of the normal class.
pub(in crate::process) fn take(class: Class) {
    let (policy, priority) = match class {
        Class::Normal => (libc::SCHED_OTHER, 0i32),
        Class::RealTime => (libc::SCHED_RR, 1),
    };
    // Kept for the normal class too, since clearing the flag needs a privilege.
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    let (own, parameter) = (0, &raw const priority);
    // SAFETY: the parameter is one number. The C library's own function is refused by some of them.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, own, policy, parameter) };
}
