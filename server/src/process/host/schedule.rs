//! The scheduling of threads.

use std::fs;

use nix::libc;

const HIGHEST: i32 = -20;
/// A time slice by which the kernel prefers a thread that wakes up. Kernels before 6.12 ignore it.
const SHORT_SLICE_NANOS: u64 = 200_000;
const DEFAULT_SLICE: u64 = 0;

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

/// `struct sched_attr`, its first version.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
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

/// The better priority of all threads of this process, until it is dropped.
#[derive(Debug)]
pub(crate) struct Priority {
    ordinary_nice: i32,
}

impl Priority {
    /// Takes the best that is permitted: the highest priority, or at least a short time slice. What the
    /// process starts meanwhile has neither.
    pub(crate) fn take() -> Self {
        let ordinary_nice = attributes_of(0).map_or(0, |found| found.nice);
        for thread in threads() {
            // A process that is started gets the priority 0 instead, which must not be better than the ordinary one.
            let is_raised = ordinary_nice == 0 && set(thread, HIGHEST, SHORT_SLICE_NANOS);
            if !is_raised {
                set(thread, ordinary_nice, SHORT_SLICE_NANOS);
            }
        }
        Self { ordinary_nice }
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        for thread in threads() {
            set(thread, self.ordinary_nice, DEFAULT_SLICE);
        }
    }
}

/// The threads of this process that are in the normal class.
fn threads() -> impl Iterator<Item = i32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let ids = tasks.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_normal = |found: Attributes| found.policy == libc::SCHED_OTHER.cast_unsigned();
    ids.filter(move |id| attributes_of(*id).is_some_and(is_normal))
}

fn attributes_of(thread: i32) -> Option<Attributes> {
    let mut found = Attributes::default();
    let (size, flags) = (size_of::<Attributes>(), 0);
    let room = &raw mut found;
    // SAFETY: there is room for the attributes.
    let done = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, room, size, flags) };
    (done == 0).then_some(found)
}

/// Sets priority and time slice of a thread in the normal class; returns whether that was permitted.
fn set(thread: i32, nice: i32, slice: u64) -> bool {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER.cast_unsigned(),
        flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        nice,
        runtime: slice,
        ..Attributes::default()
    };
    let (wanted, flags) = (&raw const attributes, 0);
    // SAFETY: the kernel reads the attributes.
    unsafe { libc::syscall(libc::SYS_sched_setattr, thread, wanted, flags) == 0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::{process, sync::mpsc, thread};

    use super::*;

    fn nice_and_slice(thread: i32) -> (i32, u64) {
        let found = attributes_of(thread).unwrap();
        (found.nice, found.runtime)
    }

    /// C5
    #[test]
    fn all_threads_have_a_better_priority_for_a_while_and_processes_that_they_start_do_not() {
        let (own_id, id_sender) = (nix::unistd::gettid().as_raw(), mpsc::channel());
        let (ended, end) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            id_sender.0.send(nix::unistd::gettid().as_raw()).unwrap();
            end.recv().is_err()
        });
        let both = [own_id, id_sender.1.recv().unwrap()];
        let before = both.map(nice_and_slice);
        let priority = Priority::take();
        let meanwhile = both.map(nice_and_slice);
        let mut child = process::Command::new("sleep").arg("60").spawn().unwrap();
        let of_child = nice_and_slice(child.id() as i32);
        child.kill().unwrap();
        child.wait().unwrap();
        drop(priority);
        let after = both.map(nice_and_slice);
        drop(ended);
        assert!(other.join().unwrap());
        let is_permitted = nix::unistd::geteuid().is_root() && before[0].0 == 0;
        let nice = if is_permitted { HIGHEST } else { before[0].0 };
        assert_eq!(meanwhile.map(|(nice, _)| nice), [nice, nice]);
        assert_eq!(of_child, before[0]);
        assert_eq!(after, before);
    }
}
