//! What the process is for, as it stands on the stack at exec.
//!
//! ```text
//! heeler-shim 2 <flags> <directory of task files> <room>
//! heeler-shim probe <cgroup>
//! ```
//!
//! Which task, and what it runs, comes by the socket. The directory is for whoever looks at a list
//! of processes and wonders whose shims these are, and so is the room: the task file's path stands
//! there while there is a task.

use core::ffi::{CStr, c_char};

use heeler_shim::procfs::{number, parse_uuid};

use super::memory::Room;

/// The arguments, not yet understood.
pub(super) struct Arguments {
    count: usize,
    list: *const *mut c_char,
}

/// What the process is for.
pub(super) enum Mode {
    /// To run tasks.
    Tasks(Flags, Room),
    /// To try whether a child can be born in a cgroup.
    Probe {
        /// Which must exist.
        cgroup: &'static CStr,
    },
}

/// What may be said in the flags, separated by commas.
pub(super) struct Flags {
    /// `s`: records are to be on the disk before they are told.
    pub(super) durability: Durability,
    /// `b` and the kernel's boot id in hex, which spares us from asking.
    pub(super) boot_id: Option<[u8; 16]>,
    /// `n` and how many descriptors a leader may have open: the server has raised its own limit.
    pub(super) descriptors: Option<u64>,
}

/// What the records of an end survive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// The death of any process.
    Process,
    /// A loss of power too.
    Power,
}

impl Arguments {
    /// Finds them.
    ///
    /// # Safety
    ///
    /// `stack` must be the stack pointer that the kernel gave at exec.
    pub(super) unsafe fn from_stack(stack: *const usize) -> Self {
        // SAFETY: the count is at the pointer, the list behind it.
        unsafe {
            Self {
                count: *stack,
                list: stack.add(1).cast(),
            }
        }
    }

    /// What they ask for; `None` if they are malformed.
    pub(super) fn mode(&self) -> Option<Mode> {
        match self.get(1)?.to_bytes() {
            b"2" => Some(Mode::Tasks(
                Flags::parse(self.get(2)?.to_bytes())?,
                self.room(4)?,
            )),
            b"probe" => self.get(2).map(|cgroup| Mode::Probe { cgroup }),
            _ => None,
        }
    }

    fn get(&self, index: usize) -> Option<&'static CStr> {
        if index >= self.count {
            return None;
        }
        // SAFETY: within the list; the kernel ends each text with a NUL, and the stack stays.
        unsafe { Some(CStr::from_ptr(*self.list.add(index))) }
    }

    /// The last argument, to be written over.
    fn room(&self, index: usize) -> Option<Room> {
        let text = self.get(index)?;
        // SAFETY: the text is on our own stack, which may be written to, and nobody else reads it.
        unsafe { Some(Room::new(*self.list.add(index), text.count_bytes())) }
    }
}

impl Flags {
    fn parse(text: &[u8]) -> Option<Self> {
        let mut flags = Self {
            durability: Durability::Process,
            boot_id: None,
            descriptors: None,
        };
        for flag in text
            .split(|byte| *byte == b',')
            .filter(|flag| !flag.is_empty())
        {
            match flag.split_first()? {
                (b's', []) => flags.durability = Durability::Power,
                (b'b', id) => flags.boot_id = Some(parse_uuid(id)?),
                (b'n', count) => flags.descriptors = Some(number(count)?),
                _ => return None,
            }
        }
        Some(flags)
    }
}
