//! Memory that is there only while it is used.
//!
//! Nothing is allocated in a quiet task: there is one buffer, of which only the pages that were
//! written to exist, and the work lists of the two rare orders are mapped while they are carried
//! out.

use core::{ffi::c_char, mem, slice};

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

/// Zeroed bytes in pages of their own.
pub(super) struct Pages {
    base: *mut u8,
    len: usize,
}

impl Pages {
    /// So many bytes.
    pub(super) fn new(len: usize) -> Result<Self> {
        let base = sys::map(len.max(1))? as *mut u8;
        Ok(Self { base, len })
    }

    /// To write to.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the pages are ours and of that size, and whoever borrows them borrows us.
        unsafe { slice::from_raw_parts_mut(self.base, self.len) }
    }

    /// To read.
    pub(super) fn shared(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts(self.base, self.len) }
    }

    /// Makes everything behind the first `kept` bytes zero, and gives whole pages back.
    ///
    /// # Safety
    ///
    /// Nobody may rely on what is there.
    pub(super) unsafe fn wipe_from(&self, kept: usize) {
        let whole = kept.next_multiple_of(PAGE).min(self.len);
        // All of it: where pages are larger than we think, none may be given back.
        for at in kept..self.len {
            // SAFETY: within the pages; whoever has borrowed this does not rely on it.
            unsafe { self.base.add(at).write_volatile(0) };
        }
        if whole < self.len {
            // SAFETY: whole pages of ours, as promised to us.
            unsafe { sys::release(self.base as usize + whole, self.len - whole) };
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the pages are ours, and nothing refers to them after us.
        unsafe { sys::unmap(self.base as usize, self.len.max(1)) };
    }
}

/// A text of ours that others can see, to be written over.
pub(super) struct Room {
    at: *mut u8,
    len: usize,
}

impl Room {
    /// Of so many bytes.
    ///
    /// # Safety
    ///
    /// They must be writable for ever, and nobody else's.
    pub(super) unsafe fn new(at: *mut c_char, len: usize) -> Self {
        Self { at: at.cast(), len }
    }

    /// Puts a text there, cut to the room that there is, and zeros behind it.
    pub(super) fn show(&mut self, text: &[u8]) {
        for at in 0..self.len {
            // SAFETY: within the room.
            unsafe {
                self.at
                    .add(at)
                    .write_volatile(text.get(at).copied().unwrap_or(0));
            }
        }
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
