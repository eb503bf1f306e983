//! The scheduling class of a thread.

use nix::libc;

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
