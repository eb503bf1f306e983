//! Signals, waiting for descriptors, and the clocks.

use super::{Fd, Result, call};
use crate::program::arch::number;

const SIG_SETMASK: usize = 2;
const SIGCHLD: usize = 17;
const SIGCHLD_MASK: u64 = 1 << (SIGCHLD - 1);
const SIG_DFL: u64 = 0;
const SIG_IGN: u64 = 1;
const PROCESS_GROUP: usize = 4;
const SFD_NONBLOCK_CLOEXEC: usize = 0o2_004_000;
const SET_SIZE: usize = 8;
const SIGNALS: usize = 64;
const POLLOUT: i16 = 0x4;
const POLLERR: i16 = 0x8;
const POLLHUP: i16 = 0x10;

/// SIGKILL.
pub(crate) const KILL: i32 = 9;
/// SIGCONT.
pub(crate) const CONTINUE: i32 = 18;

/// The set of blocked signals.
#[derive(Clone, Copy)]
pub(crate) enum Mask {
    /// Every signal that can be blocked.
    All,
    None,
}

pub(crate) fn set_mask(mask: Mask) -> Result<()> {
    let set: u64 = match mask {
        Mask::All => u64::MAX,
        Mask::None => 0,
    };
    // SAFETY: a set is 8 bytes.
    unsafe {
        call(
            number::RT_SIGPROCMASK,
            [SIG_SETMASK, &raw const set as usize, 0, SET_SIZE],
        )
    }
    .map(drop)
}

/// Resets every signal to its default action.
pub(crate) fn reset_actions() {
    // struct sigaction: no handler, no flags, no restorer, no mask.
    let default = [0u64; 4];
    for signal in 1..=SIGNALS {
        let args = [signal, default.as_ptr() as usize, 0, SET_SIZE];
        // SAFETY: the structure is complete. SIGKILL and SIGSTOP are refused, as they have no other action.
        let _ = unsafe { call(number::RT_SIGACTION, args) };
    }
}

/// The one that reaps the children that end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaping {
    /// This process, which gets a SIGCHLD and their wait statuses.
    Own,
    /// The kernel, at once. There is no signal and no wait status, and a pid may be reused.
    Kernel,
}

/// Decides who reaps the children that end from now on.
pub(crate) fn set_reaping(reaping: Reaping) -> Result<()> {
    let handler = match reaping {
        Reaping::Own => SIG_DFL,
        Reaping::Kernel => SIG_IGN,
    };
    // struct sigaction: the handler, no flags, no restorer, no mask.
    let action = [handler, 0, 0, 0];
    let args = [SIGCHLD, action.as_ptr() as usize, 0, SET_SIZE];
    // SAFETY: the structure is complete.
    unsafe { call(number::RT_SIGACTION, args) }.map(drop)
}

/// Opens a descriptor that is readable while a SIGCHLD is pending.
pub(crate) fn child_signals() -> Result<Fd> {
    let set = SIGCHLD_MASK;
    let args = [
        -1i32 as usize,
        &raw const set as usize,
        SET_SIZE,
        SFD_NONBLOCK_CLOEXEC,
    ];
    // SAFETY: a set is 8 bytes.
    unsafe { call(number::SIGNALFD4, args) }.map(Fd::new)
}

/// Signals a child that has not been reaped, so that its pid cannot be reused.
pub(crate) fn send_to_child(pid: u32, signal: i32) -> Result<()> {
    // SAFETY: takes only numbers.
    unsafe { call(number::KILL, [pid as usize, signal as usize]) }.map(drop)
}

/// Signals the process group of a child that has not been reaped.
pub(crate) fn send_to_group(group: u32, signal: i32) -> Result<()> {
    // SAFETY: takes only numbers.
    unsafe { call(number::KILL, [-(group as i32) as usize, signal as usize]) }.map(drop)
}

/// Opens a handle on the process that has this pid now.
pub(crate) fn handle(pid: u32) -> Result<Fd> {
    // SAFETY: takes only numbers.
    unsafe { call(number::PIDFD_OPEN, [pid as usize, 0]) }.map(Fd::new)
}

/// Signals the process of a handle; signal 0 only checks that it exists.
pub(crate) fn send_to_handle(handle: &Fd, signal: i32) -> Result<()> {
    // SAFETY: takes only numbers.
    unsafe {
        call(
            number::PIDFD_SEND_SIGNAL,
            [handle.arg(), signal as usize, 0, 0],
        )
    }
    .map(drop)
}

/// Signals the process group whose number is the pid of a handle, also after that process was reaped. Needs
/// Linux 6.9.
pub(crate) fn send_to_group_of(handle: &Fd, signal: i32) -> Result<()> {
    let (signal, no_info) = (signal as usize, 0);
    // SAFETY: takes only numbers.
    unsafe {
        call(
            number::PIDFD_SEND_SIGNAL,
            [handle.arg(), signal, no_info, PROCESS_GROUP],
        )
    }
    .map(drop)
}

/// A `pollfd`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Poll {
    fd: i32,
    events: i16,
    returned: i16,
}

impl Poll {
    /// Waits for input or end-of-file. Without a descriptor it never becomes ready.
    pub(crate) fn new(fd: Option<&Fd>) -> Self {
        Self {
            fd: fd.map_or(-1, Fd::raw),
            events: 1,
            returned: 0,
        }
    }

    /// Waits for room to write, if that is wanted, and for the end of all readers.
    pub(crate) fn for_writing(fd: Option<&Fd>, wants_room: bool) -> Self {
        Self {
            events: if wants_room { POLLOUT } else { 0 },
            ..Self::new(fd)
        }
    }

    /// Returns whether a read would not block.
    pub(crate) fn is_ready(&self) -> bool {
        self.returned != 0
    }

    /// Returns whether no process has the reading end of this pipe.
    pub(crate) fn has_no_reader(&self) -> bool {
        self.returned & POLLERR != 0
    }

    /// Returns whether the other end is closed. There may be something left to read.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.returned & POLLHUP != 0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timeout {
    Millis(u64),
    Never,
}

/// Waits until a descriptor is ready; returns whether one is.
pub(crate) fn poll(fds: &mut [Poll], timeout: Timeout) -> bool {
    let time = match timeout {
        Timeout::Millis(millis) => Some([millis / 1000, millis % 1000 * 1_000_000]),
        Timeout::Never => None,
    };
    let time_at = time.as_ref().map_or(0, |time| time.as_ptr() as usize);
    let args = [fds.as_mut_ptr() as usize, fds.len(), time_at, 0, SET_SIZE];
    // SAFETY: a Poll has the layout of a pollfd, and the length is that of the slice.
    matches!(unsafe { call(number::PPOLL, args) }, Ok(1..))
}

/// Reads a clock, in seconds and nanoseconds.
pub(crate) fn time(clock: usize) -> (u64, u64) {
    let mut time = [0u64; 2];
    // SAFETY: there is room for the two numbers.
    let _ = unsafe { call(number::CLOCK_GETTIME, [clock, time.as_mut_ptr() as usize]) };
    (time[0], time[1])
}
