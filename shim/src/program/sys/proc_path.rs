//! Paths in `/proc`.

use core::ffi::CStr;

/// A path. The longest is `/proc/<pid>/task/<tid>/children`.
pub(crate) struct Path {
    bytes: [u8; 64],
    len: usize,
}

impl Path {
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; 64],
            len: 0,
        }
    }

    /// Appends a text. One byte is reserved for the NUL.
    pub(crate) fn text(mut self, text: &[u8]) -> Self {
        let end = self.len + text.len();
        if end < self.bytes.len()
            && let Some(free) = self.bytes.get_mut(self.len..end)
        {
            free.copy_from_slice(text);
            self.len = end;
        }
        self
    }

    pub(crate) fn number(self, number: u32) -> Self {
        let mut digits = [0; 10];
        let mut begin = digits.len();
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            begin -= 1;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text(digits.get(begin..).unwrap_or_default())
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}
