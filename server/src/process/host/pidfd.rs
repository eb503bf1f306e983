//! Descriptors of processes. While one is open, its process's pid cannot come to mean another process
//! for the calls made through it.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd},
};

use nix::{libc, sys::signal::Signal};

/// Opens a descriptor of the process that has this pid now.
pub(in crate::process) fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers and touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Signals the process of a descriptor.
pub(in crate::process) fn pidfd_signal(pidfd: impl AsFd, signal: Signal) -> io::Result<()> {
    let fd = pidfd.as_fd().as_raw_fd();
    let info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: with a null siginfo the kernel fills in that of kill(2); nothing else is a pointer.
    let done = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal as i32, info, 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
