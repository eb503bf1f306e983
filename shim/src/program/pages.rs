//! Memory in mapped pages, which exist only while they are used.
//!
//! A quiet task allocates nothing: there is one buffer, of which only the written pages exist, and the
//! work lists of a signal and a kill are mapped while these are carried out.

use core::{ffi::c_char, mem, ptr, slice};

use super::sys::{Result, memory as sys};

/// The unit in which memory is given back. Where pages are larger, less is given back.
pub(crate) const PAGE: usize = 4096;
/// The most bytes read from a pipe at once.
pub(crate) const BUFFER: usize = 64 * 1024;

/// The one buffer, for output and for other reads in between.
pub(crate) struct Buffer {
    bytes: &'static mut [u8],
    touched: bool,
}

impl Buffer {
    /// Mapped rather than static: a static buffer would force a private copy of a page of the program.
    pub(crate) fn new() -> Result<Self> {
        let base = sys::map(BUFFER)?;
        // SAFETY: the pages are new, zero and of that size, and are never unmapped.
        let bytes = unsafe { slice::from_raw_parts_mut(base as *mut u8, BUFFER) };
        Ok(Self {
            bytes,
            touched: false,
        })
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Notes that the first `len` bytes were written to.
    pub(crate) fn touch(&mut self, len: usize) {
        self.touched |= len > PAGE;
    }

    /// Returns whether more than the first page was written to.
    pub(crate) fn is_touched(&self) -> bool {
        self.touched
    }

    /// Gives back all but the first page.
    pub(crate) fn release(&mut self) {
        if let Some(rest) = self.bytes.get_mut(PAGE..) {
            // SAFETY: these are whole pages of the buffer, and their content is no longer needed.
            unsafe { sys::release(rest.as_mut_ptr() as usize, rest.len()) };
        }
        self.touched = false;
    }
}

/// Zeroed bytes in pages of their own.
pub(crate) struct Pages {
    base: *mut u8,
    len: usize,
}

impl Pages {
    pub(crate) fn new(len: usize) -> Result<Self> {
        let len = len.max(1);
        let base = sys::map(len)? as *mut u8;
        Ok(Self { base, len })
    }

    /// No bytes, and no pages.
    pub(crate) fn empty() -> Self {
        Self {
            base: ptr::dangling_mut(),
            len: 0,
        }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the pages belong to this value, have that size, and are borrowed with it.
        unsafe { slice::from_raw_parts_mut(self.base, self.len) }
    }

    pub(crate) fn shared(&self) -> &[u8] {
        // SAFETY: as in `bytes`.
        unsafe { slice::from_raw_parts(self.base, self.len) }
    }

    /// Gives all of the memory back. The bytes read as zeros when they are next used.
    pub(crate) fn release(&mut self) {
        // SAFETY: whole pages of this value, borrowed exclusively.
        unsafe { sys::release(self.base as usize, self.len) };
    }

    /// Zeroes everything behind the first `kept` bytes, and gives whole pages back.
    ///
    /// # Safety
    ///
    /// That content must not be used again.
    pub(crate) unsafe fn wipe_from(&self, kept: usize) {
        let whole = kept.next_multiple_of(PAGE).min(self.len);
        // Zeroed first: where pages are larger than assumed, none may be given back.
        for at in kept..self.len {
            // SAFETY: within the pages; the caller does not use this content again.
            unsafe { self.base.add(at).write_volatile(0) };
        }
        if whole < self.len {
            // SAFETY: whole pages of this value, whose content is not used again.
            unsafe { sys::release(self.base as usize + whole, self.len - whole) };
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the pages belong to this value, and nothing refers to them after it.
            unsafe { sys::unmap(self.base as usize, self.len) };
        }
    }
}

/// The last command-line argument, which shows the current task in a list of processes.
pub(crate) struct Title {
    at: *mut u8,
    len: usize,
}

impl Title {
    /// # Safety
    ///
    /// The bytes must stay writable for ever and be used by nothing else.
    pub(crate) unsafe fn new(at: *mut c_char, len: usize) -> Self {
        Self { at: at.cast(), len }
    }

    /// Writes a text, cut to the available length, and zeros behind it.
    pub(crate) fn show(&mut self, text: &[u8]) {
        for at in 0..self.len {
            // SAFETY: within the bytes that `new` was given.
            unsafe {
                self.at
                    .add(at)
                    .write_volatile(text.get(at).copied().unwrap_or(0));
            }
        }
    }
}

/// A zeroed array of numbers in pages of its own, which exist as they are written to.
pub(crate) struct Numbers {
    items: &'static mut [u64],
}

impl Numbers {
    /// `None` if there is no memory.
    pub(crate) fn new(len: usize) -> Option<Self> {
        let base = sys::map(len.checked_mul(mem::size_of::<u64>())?).ok()?;
        // SAFETY: the pages are new, zero, aligned and of that size.
        let items = unsafe { slice::from_raw_parts_mut(base as *mut u64, len) };
        Some(Self { items })
    }

    pub(crate) fn items(&mut self) -> &mut [u64] {
        self.items
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        let size = mem::size_of_val(self.items);
        // SAFETY: the pages belong to this value, and nothing refers to them after it.
        unsafe { sys::unmap(self.items.as_mut_ptr() as usize, size) };
    }
}
