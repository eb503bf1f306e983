//! Zeroed memory with the alignment of pages, as far as anything here depends on it.

/// Stands for the mapped pages of the shim.
pub(crate) struct Pages {
    words: Vec<u64>,
    len: usize,
}

impl Pages {
    pub(crate) fn new(len: usize) -> Result<Self, ()> {
        let words = vec![0; len.div_ceil(8)];
        Ok(Self { words, len })
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the words are initialised, hold at least `len` bytes, and are borrowed with this value.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.len) }
    }

    pub(crate) fn shared(&self) -> &[u8] {
        // SAFETY: as in `bytes`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.len) }
    }

    /// # Safety
    ///
    /// As in the shim.
    pub(crate) unsafe fn wipe_from(&self, _kept: usize) {}
}
