//! Memory that is there only while it is used.
//!
//! Nothing is allocated in a quiet task: there is one buffer, of which only the pages that were
//! written to exist, and the work lists of the two rare orders are mapped while they are carried
//! out.

use core::{ffi::CStr, mem, slice};

use super::sys::{Result, memory as sys};

/// The smallest unit in which memory comes and goes. Where pages are larger, less is given back.
pub(super) const PAGE: usize = 4096;
/// How much is read from a pipe at once.
pub(super) const BUFFER: usize = 64 * 1024;

/// The one buffer, for output and for whatever is read in between.
pub(super) struct Buffer {
    bytes: &'static mut [u8],
    touched: bool,
}

impl Buffer {
    /// Mapped rather than static: beside a static one, a page of the program would be copied for
    /// us.
    pub(super) fn new() -> Result<Self> {
        let base = sys::map(BUFFER)?;
        // SAFETY: the pages are new, zero and of that size, and are never unmapped.
        let bytes = unsafe { slice::from_raw_parts_mut(base as *mut u8, BUFFER) };
        Ok(Self {
            bytes,
            touched: false,
        })
    }

    /// To read into.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// That the first `len` bytes were written to.
    pub(super) fn touch(&mut self, len: usize) {
        self.touched |= len > PAGE;
    }

    /// Whether there is more to give back than the first page.
    pub(super) fn is_touched(&self) -> bool {
        self.touched
    }

    /// Gives back all but the first page.
    pub(super) fn release(&mut self) {
        if let Some(rest) = self.bytes.get_mut(PAGE..) {
            // SAFETY: these are whole pages, and what they held is of no more use.
            unsafe { sys::release(rest.as_mut_ptr() as usize, rest.len()) };
        }
        self.touched = false;
    }
}

/// Gives back the whole pages between two texts that the kernel put on the stack, the second of
/// which comes later. They read as empty afterwards.
///
/// # Safety
///
/// Nobody may need what lies between them.
pub(super) unsafe fn forget_between(first: &CStr, last: &CStr) {
    let begin = (first.as_ptr() as usize).next_multiple_of(PAGE);
    let end = (last.as_ptr() as usize + last.count_bytes()) & !(PAGE - 1);
    if begin < end {
        // SAFETY: whole pages of our stack, as promised to us.
        unsafe { sys::release(begin, end - begin) };
    }
}

/// A zeroed array of numbers in pages of its own, which exist as they are written to.
pub(super) struct Numbers {
    items: &'static mut [u64],
}

impl Numbers {
    /// `None` if there is no memory.
    pub(super) fn new(len: usize) -> Option<Self> {
        let base = sys::map(len.checked_mul(mem::size_of::<u64>())?).ok()?;
        // SAFETY: the pages are new, zero, aligned and of that size.
        let items = unsafe { slice::from_raw_parts_mut(base as *mut u64, len) };
        Some(Self { items })
    }

    /// The array.
    pub(super) fn items(&mut self) -> &mut [u64] {
        self.items
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        let size = mem::size_of_val(self.items);
        // SAFETY: the pages are ours, and nothing refers to them after us.
        unsafe { sys::unmap(self.items.as_mut_ptr() as usize, size) };
    }
}
