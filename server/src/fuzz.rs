//! Entries for the fuzz targets of `tests/fuzz`: each takes bytes and panics if a promise is broken.
//!
//! They are here because what they drive is private to the layers. The bytes of a target that needs
//! more than one are taken by [`Input`].

use std::path::Path;

pub use crate::{
    journal::fuzz::{damaged_wal, list},
    process::{shim::fuzz::reports, task_file::fuzz::task_file},
    service::fuzz::{request, text},
};
use crate::{process::shim::fuzz::describe, task::ampersand};

/// A record of the journal: what can be read is written again without a change, and can be shown.
pub fn record(bytes: &[u8]) {
    if let Some(task) = crate::journal::fuzz::record(bytes) {
        crate::service::fuzz::show(&task);
    }
}

/// Encodes the description of a task for its shim; `None` if the bytes describe none.
pub fn description(bytes: &[u8]) -> Option<Description> {
    describe(&mut Input(bytes))
}

/// A task as the server describes it to a shim.
#[derive(Debug)]
pub struct Description {
    /// The order and the description, as sent.
    pub sent: Vec<u8>,
    /// The texts in it: task file, memory file, cgroup, directory, program.
    pub texts: [Vec<u8>; 5],
    pub arguments: Vec<Vec<u8>>,
    pub variables: Vec<Vec<u8>>,
}

/// A script with and without its trailing `&`: nothing but that character and the blanks before it goes,
/// and no second one goes with it.
pub fn script(bytes: &[u8]) {
    let Ok(script) = str::from_utf8(bytes) else {
        return;
    };
    let Some(rest) = ampersand::trailing(script, Some(Path::new("/bin/bash"))) else {
        return;
    };
    let signs = |text: &str| text.matches('&').count();
    assert_eq!(signs(&rest) + 1, signs(script), "{script:?}: {rest:?}");
    let squeezed = |text: &str| text.replace([' ', '\t', '&'], "");
    assert_eq!(squeezed(&rest), squeezed(script));
    assert!(!rest.trim().is_empty(), "nothing is left of {script:?}");
}

/// Bytes to choose from; zeros follow the last.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Up to `len` bytes.
    pub(crate) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.bytes(N);
        let mut out = [0; N];
        out[..taken.len()].copy_from_slice(taken);
        out
    }
}
