//! The command line.
//!
//! ```text
//! heeler-shim run <flags> <directory of task files> <title>
//! heeler-shim probe <cgroup>
//! ```
//!
//! The task itself comes over the socket. The directory and the title serve people who read a list of
//! processes: the shim writes the path of its task file over the title while it has a task.

use core::ffi::{CStr, c_char};

use heeler_shim::procfs::{number, parse_uuid};

use crate::program::pages::Title;

/// The unparsed arguments.
pub(crate) struct Arguments {
    count: usize,
    list: *const *mut c_char,
}

pub(crate) enum Mode {
    /// Run tasks.
    Run(Flags, Title),
    /// Test whether a child can be created in an existing cgroup.
    Probe { cgroup: &'static CStr },
}

/// The flags, separated by commas.
pub(crate) struct Flags {
    /// `s`: end records are synced to disk before they are reported.
    pub(crate) durability: Durability,
    /// `b` and the kernel's boot id in hex.
    pub(crate) boot_id: [u8; 16],
    /// `n` and the limit of open descriptors for a leader, if the server has raised its own.
    pub(crate) descriptors: Option<u64>,
}

/// The failure that the end records survive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The death of any process.
    Process,
    /// A power cut too.
    Power,
}

impl Arguments {
    /// # Safety
    ///
    /// `stack` must be the stack pointer that the kernel gave at exec.
    pub(crate) unsafe fn from_stack(stack: *const usize) -> Self {
        // SAFETY: the kernel puts the count at the stack pointer and the list behind it.
        unsafe {
            Self {
                count: *stack,
                list: stack.add(1).cast(),
            }
        }
    }

    /// Returns `None` if the arguments are malformed.
    pub(crate) fn mode(&self) -> Option<Mode> {
        match self.get(1)?.to_bytes() {
            b"run" => Some(Mode::Run(
                Flags::parse(self.get(2)?.to_bytes())?,
                self.title(4)?,
            )),
            b"probe" => self.get(2).map(|cgroup| Mode::Probe { cgroup }),
            _ => None,
        }
    }

    fn get(&self, index: usize) -> Option<&'static CStr> {
        if index >= self.count {
            return None;
        }
        // SAFETY: the index is within the list; the kernel ends each text with a NUL, and the stack
        // is never unmapped.
        unsafe { Some(CStr::from_ptr(*self.list.add(index))) }
    }

    fn title(&self, index: usize) -> Option<Title> {
        let text = self.get(index)?;
        // SAFETY: the text is on our own writable stack, and nothing else in this process reads it.
        unsafe { Some(Title::new(*self.list.add(index), text.count_bytes())) }
    }
}

impl Flags {
    fn parse(text: &[u8]) -> Option<Self> {
        let (mut durability, mut boot_id, mut descriptors) = (Durability::Process, None, None);
        for flag in text.split(|byte| *byte == b',') {
            match flag.split_first()? {
                (b's', []) => durability = Durability::Power,
                (b'b', id) => boot_id = Some(parse_uuid(id)?),
                (b'n', count) => descriptors = Some(number(count)?),
                _ => return None,
            }
        }
        Some(Self {
            durability,
            boot_id: boot_id?,
            descriptors,
        })
    }
}
