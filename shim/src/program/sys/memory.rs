//! Mapping and unmapping of pages.

use super::{Result, call};
use crate::program::arch::number;

const PROT_READ_WRITE: usize = 1 | 2;
const MAP_PRIVATE_ANONYMOUS_NORESERVE: usize = 0x2 | 0x20 | 0x4000;
const MADV_DONTNEED: usize = 4;

/// Maps new pages, filled with zeros.
pub(crate) fn map(size: usize) -> Result<usize> {
    let flags = MAP_PRIVATE_ANONYMOUS_NORESERVE;
    // SAFETY: the kernel chooses a free address.
    unsafe {
        call(
            number::MMAP,
            [0, size, PROT_READ_WRITE, flags, -1isize as usize, 0],
        )
    }
}

/// Unmaps pages.
///
/// # Safety
///
/// They must come from [`map`], and nothing may refer to them.
pub(crate) unsafe fn unmap(base: usize, size: usize) {
    // SAFETY: the caller guarantees it.
    let _ = unsafe { call(number::MUNMAP, [base, size]) };
}

/// Gives the memory of whole pages back; they read as zeros when they are next used.
///
/// # Safety
///
/// Their content must not be needed.
pub(crate) unsafe fn release(base: usize, size: usize) {
    // SAFETY: the caller guarantees it.
    let _ = unsafe { call(number::MADVISE, [base, size, MADV_DONTNEED]) };
}
