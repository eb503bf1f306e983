//! Typed system calls: the only way to the kernel.

pub(crate) mod file;
pub(crate) mod memory;
pub(crate) mod proc_path;
pub(crate) mod process;
pub(crate) mod schedule;
pub(crate) mod signals;
pub(crate) mod socket;
pub(crate) mod terminal;

use core::ffi::CStr;

use super::arch;

/// An error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    pub(crate) const ENOENT: Self = Self(2);
    pub(crate) const EINTR: Self = Self(4);
    pub(crate) const EIO: Self = Self(5);
    pub(crate) const ECHILD: Self = Self(10);
    pub(crate) const EAGAIN: Self = Self(11);
    pub(crate) const EEXIST: Self = Self(17);
    pub(crate) const EINVAL: Self = Self(22);
    pub(crate) const EFBIG: Self = Self(27);
    pub(crate) const ENOSPC: Self = Self(28);
    pub(crate) const EPIPE: Self = Self(32);
    pub(crate) const ENAMETOOLONG: Self = Self(36);
    pub(crate) const ENOSYS: Self = Self(38);
    pub(crate) const EDQUOT: Self = Self(122);

    /// Returns whether a file cannot grow, while its content can be overwritten.
    pub(crate) fn is_full(self) -> bool {
        matches!(self, Self::ENOSPC | Self::EDQUOT | Self::EFBIG)
    }
}

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
    // SAFETY: the caller passes valid arguments.
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
    /// Takes ownership of a descriptor that the kernel has just opened.
    fn new(raw: usize) -> Self {
        Self(raw as i32)
    }

    pub(crate) fn raw(&self) -> i32 {
        self.0
    }

    fn arg(&self) -> usize {
        self.0 as usize
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: this value owns the descriptor, and nothing uses its number afterwards.
        let _ = unsafe { call(arch::number::CLOSE, [self.arg()]) };
    }
}

fn text(path: &CStr) -> usize {
    path.as_ptr() as usize
}
