//! System calls, typed: the only way to the kernel, and with the child's few lines the only unsafe
//! code that is not about a processor.

pub(crate) mod file;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod schedule;
pub(crate) mod signals;
pub(crate) mod socket;

use core::ffi::CStr;

use super::arch;

/// The kernel's reason for a refusal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    pub(crate) const ENOENT: Self = Self(2);
    pub(crate) const EINTR: Self = Self(4);
    pub(crate) const ECHILD: Self = Self(10);
    pub(crate) const EAGAIN: Self = Self(11);
    pub(crate) const EEXIST: Self = Self(17);
    pub(crate) const EINVAL: Self = Self(22);
    pub(crate) const ENOSPC: Self = Self(28);
    pub(crate) const ENAMETOOLONG: Self = Self(36);
    pub(crate) const ENOSYS: Self = Self(38);
}

/// What a system call gives.
pub(crate) type Result<T> = core::result::Result<T, Errno>;

/// Enters the kernel.
///
/// # Safety
///
/// As for [`arch::syscall`].
#[inline(always)]
unsafe fn call<const N: usize>(number: usize, args: [usize; N]) -> Result<usize> {
    let mut six = [0; 6];
    let mut i = 0;
    while i < N && i < 6 {
        six[i] = args[i];
        i += 1;
    }
    // SAFETY: as promised to us.
    let result = unsafe { arch::syscall(number, six) };
    if (-4095..0).contains(&result) {
        Err(Errno(-result as i32))
    } else {
        Ok(result as usize)
    }
}

/// A descriptor that is closed when it is dropped.
pub(crate) struct Fd(i32);

impl Fd {
    /// Takes over what the kernel has just opened.
    fn new(raw: usize) -> Self {
        Self(raw as i32)
    }

    /// Its number.
    pub(crate) fn raw(&self) -> i32 {
        self.0
    }

    fn arg(&self) -> usize {
        self.0 as usize
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nobody has its number after us.
        let _ = unsafe { call(arch::number::CLOSE, [self.arg()]) };
    }
}

fn text(path: &CStr) -> usize {
    path.as_ptr() as usize
}
