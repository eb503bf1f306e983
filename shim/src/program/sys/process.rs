//! Processes: creating, executing, naming, reaping and ending them.

use core::ffi::{CStr, c_char};

use heeler_shim::limit_tag::{self, LimitTag, Limits};

use super::{Errno, Fd, Result, call, signals::KILL, text};
use crate::program::arch::{self, number};

const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
const SIGCHLD: u64 = 17;
const PR_SET_PDEATHSIG: usize = 1;
const PR_SET_NAME: usize = 15;
const PR_SET_CHILD_SUBREAPER: usize = 36;
const RLIMIT_NOFILE: usize = 7;
const P_ALL: usize = 0;
const P_PID: usize = 1;
const P_PIDFD: usize = 3;
const WNOHANG: usize = 1;
const WEXITED: usize = 4;
const WNOWAIT: usize = 0x100_0000;
const WALL: usize = 0x4000_0000;
/// The request for the information of a handle's process, in 64 bytes, and the part of it that remains
/// once the process was reaped.
const PIDFD_GET_INFO: usize = 0xC040_FF0B;
const INFO_EXIT: u64 = 8;
/// The distance of a child's stack below the parent's frames, and its size. It lies in the unused part of
/// the parent's stack, which is suspended meanwhile.
const STACK_GAP: usize = 1024;
const STACK_SIZE: usize = 16 * 1024;

/// `struct clone_args`.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Creates a child that shares this process's memory and runs `child(data)` on a stack of its own, and
/// waits until it has executed a program or exited. It is created in the cgroup, if there is one.
///
/// # Safety
///
/// `child` must not return, must write to no memory but `data`, and `data` must be valid for it.
#[inline(never)]
pub(crate) unsafe fn clone<T>(
    cgroup: Option<&Fd>,
    child: unsafe extern "C" fn(*mut T) -> !,
    data: *mut T,
) -> Result<u32> {
    let top = (arch::stack_pointer() - STACK_GAP) & !15;
    let mut args = CloneArgs {
        flags: CLONE_VM | CLONE_VFORK,
        exit_signal: SIGCHLD,
        stack: (top - STACK_SIZE) as u64,
        stack_size: STACK_SIZE as u64,
        ..CloneArgs::default()
    };
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.raw() as u64;
    }
    let by_struct = [&raw const args as usize, size_of::<CloneArgs>()];
    // SAFETY: this process is suspended while the child uses the stack below this frame.
    let mut result = unsafe { arch::clone_and_run(number::CLONE3, by_struct, child, data) };
    if result == -(Errno::ENOSYS.0 as isize) && cgroup.is_none() {
        let by_value = [(args.flags | SIGCHLD) as usize, top];
        // SAFETY: as above.
        result = unsafe { arch::clone_and_run(number::CLONE, by_value, child, data) };
    }
    if result < 0 {
        Err(Errno(-result as i32))
    } else {
        Ok(result as u32)
    }
}

/// Replaces the program; returns only on failure.
///
/// # Safety
///
/// Both lists must end in a null pointer, and their texts in a NUL.
pub(crate) unsafe fn execute(
    program: &CStr,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> Errno {
    let args = [text(program), arguments as usize, environment as usize];
    // SAFETY: the caller guarantees the form of the lists.
    match unsafe { call(number::EXECVE, args) } {
        Ok(_) => Errno::EINVAL,
        Err(errno) => errno,
    }
}

/// Ends this process.
pub(crate) fn exit(code: u8) -> ! {
    loop {
        // SAFETY: takes only a number, and does not return.
        let _ = unsafe { call(number::EXIT_GROUP, [usize::from(code)]) };
    }
}

pub(crate) fn own_pid() -> u32 {
    // SAFETY: takes nothing, and cannot fail.
    unsafe { call(number::GETPID, []) }.unwrap_or(0) as u32
}

/// Returns the effective user id.
pub(crate) fn own_user() -> u32 {
    // SAFETY: takes nothing, and cannot fail.
    unsafe { call(number::GETEUID, []) }.unwrap_or(0) as u32
}

/// Becomes the leader of a new session.
pub(crate) fn new_session() -> Result<()> {
    // SAFETY: takes nothing.
    unsafe { call(number::SETSID, []) }.map(drop)
}

/// Limits the open descriptors of this process and its children; the hard limit stays.
pub(crate) fn limit_descriptors(count: u64) -> Result<()> {
    let [_, hard] = limit(RLIMIT_NOFILE)?;
    set_limit(RLIMIT_NOFILE, [count.min(hard), hard])
}

/// Puts a limit tag on this process and its children, if there is room for it.
pub(crate) fn tag(tag: LimitTag) -> Result<()> {
    let [soft, hard] = limit(limit_tag::RESOURCE)?;
    match tag.put_on(Limits { soft, hard }) {
        Some(limits) => set_limit(limit_tag::RESOURCE, [limits.soft, limits.hard]),
        None => Ok(()),
    }
}

/// Returns a soft and a hard limit of this process.
fn limit(resource: usize) -> Result<[u64; 2]> {
    let mut limits = [0; 2];
    let (own, none, room) = (0, 0, &raw mut limits as usize);
    // SAFETY: the kernel writes two numbers into an array of two.
    unsafe { call(number::PRLIMIT64, [own, resource, none, room]) }?;
    Ok(limits)
}

fn set_limit(resource: usize, limits: [u64; 2]) -> Result<()> {
    let (own, none, wanted) = (0, 0, &raw const limits as usize);
    // SAFETY: the kernel reads two numbers.
    unsafe { call(number::PRLIMIT64, [own, resource, wanted, none]) }.map(drop)
}

pub(crate) fn group_of(pid: u32) -> Result<u32> {
    // SAFETY: takes only a number.
    unsafe { call(number::GETPGID, [pid as usize]) }.map(|group| group as u32)
}

/// Makes this process the parent of every orphan among its descendants.
pub(crate) fn become_subreaper() -> Result<()> {
    // SAFETY: takes only numbers.
    unsafe { call(number::PRCTL, [PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0]) }.map(drop)
}

/// The effect of the end of this process's parent.
#[derive(Clone, Copy)]
pub(crate) enum ParentEnd {
    /// This process is killed, even if it is stopped.
    Kills,
    Ignored,
}

/// Sets the effect of the parent's end. Children do not inherit it.
pub(crate) fn at_parent_end(effect: ParentEnd) -> Result<()> {
    let signal = match effect {
        ParentEnd::Kills => KILL as usize,
        ParentEnd::Ignored => 0,
    };
    // SAFETY: takes only numbers.
    unsafe { call(number::PRCTL, [PR_SET_PDEATHSIG, signal, 0, 0, 0]) }.map(drop)
}

/// Sets the process's name in a list of processes.
pub(crate) fn set_name(name: &CStr) {
    // SAFETY: the name ends in a NUL.
    let _ = unsafe { call(number::PRCTL, [PR_SET_NAME, text(name)]) };
}

/// The wait result of a child that has ended.
pub(crate) struct Ended {
    pub(crate) pid: u32,
    /// The wait status.
    pub(crate) status: i32,
    /// CPU time of the process and of the children that it reaped.
    pub(crate) cpu_micros: u64,
    /// The largest resident memory among them, in bytes.
    pub(crate) max_memory: u64,
}

/// Reaps a child that has ended; `None` if none has. ECHILD: there is no child.
pub(crate) fn wait_any() -> Result<Option<Ended>> {
    wait(-1, WNOHANG | WALL)
}

/// Waits for one child and reaps it.
pub(crate) fn wait_for(pid: u32) -> Result<Option<Ended>> {
    wait(pid as i32, WALL)
}

/// Returns whether this is a child that has not ended. Does not reap it.
pub(crate) fn is_living_child(pid: u32) -> bool {
    look_at_child(P_PID, pid as usize) == Ok(None)
}

/// The same for the process of a handle, whose pid may be another one's by now.
pub(crate) fn is_handle_of_living_child(handle: &Fd) -> bool {
    look_at_child(P_PIDFD, handle.arg()) == Ok(None)
}

/// Returns the pid of a child that has ended and was not reaped, if there is one.
pub(crate) fn ended_child() -> Option<u32> {
    look_at_child(P_ALL, 0).ok().flatten()
}

/// Looks at children without reaping them; returns the pid of one that has ended. ECHILD: there is no
/// such child.
fn look_at_child(which: usize, id: usize) -> Result<Option<u32>> {
    // siginfo begins with the signal's number, which is 0 if no child has ended. Its fifth word is the pid.
    let mut info = [0u32; 32];
    let options = WEXITED | WNOWAIT | WNOHANG | WALL;
    let args = [which, id, info.as_mut_ptr() as usize, options, 0];
    // SAFETY: there is room for the siginfo.
    unsafe { call(number::WAITID, args) }?;
    Ok((info[0] != 0).then_some(info[4]))
}

/// Returns the wait status of the process of a handle once it was reaped; `None` before that, and always
/// on Linux before 6.15.
pub(crate) fn reaped_status(handle: &Fd) -> Option<i32> {
    let mut info = [0u64; 8];
    info[0] = INFO_EXIT;
    let args = [handle.arg(), PIDFD_GET_INFO, info.as_mut_ptr() as usize];
    // SAFETY: there is room for 64 bytes.
    unsafe { call(number::IOCTL, args) }.ok()?;
    // The status is in the last four bytes.
    (info[0] & INFO_EXIT != 0).then_some((info[7] >> 32) as i32)
}

fn wait(pid: i32, options: usize) -> Result<Option<Ended>> {
    let mut status = 0i32;
    // struct rusage: two times in seconds and microseconds, the memory in KiB, 13 more numbers.
    let mut usage = [0i64; 18];
    let to = [&raw mut status as usize, usage.as_mut_ptr() as usize];
    // SAFETY: there is room for the status and for the usage.
    let pid = unsafe { call(number::WAIT4, [pid as usize, to[0], options, to[1]]) }?;
    if pid == 0 {
        return Ok(None);
    }
    let [user, user_micros, system, system_micros, memory, ..] = usage;
    let cpu = (user + system) * 1_000_000 + user_micros + system_micros;
    let max_memory = (memory as u64).saturating_mul(1024);
    Ok(Some(Ended {
        pid: pid as u32,
        status,
        cpu_micros: cpu as u64,
        max_memory,
    }))
}
