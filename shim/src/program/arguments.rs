//! What the server asks for, as it stands on the stack at exec.
//!
//! ```text
//! heeler-shim 1 <uuid> <task file> <cgroup or ""> <directory> <flags> -- <program> <argv>...
//! heeler-shim probe <cgroup>
//! ```
//!
//! The environment is the leader's. Texts are borrowed from the stack, where they stay.

use core::ffi::{CStr, c_char};

use heeler_shim::procfs::{number, parse_uuid};

use super::memory;

/// Where the leader's own arguments begin.
const LEADER: usize = 9;

/// The arguments, not yet understood.
pub(super) struct Arguments {
    count: usize,
    list: *const *const c_char,
}

/// What the process is for.
pub(super) enum Mode {
    /// To run a task.
    Task(Task),
    /// To try whether a child can be born in a cgroup.
    Probe {
        /// Which must exist.
        cgroup: &'static CStr,
    },
}

/// The task to run.
pub(super) struct Task {
    pub(super) uid: [u8; 16],
    pub(super) file: &'static CStr,
    pub(super) cgroup: Option<&'static CStr>,
    pub(super) directory: &'static CStr,
    pub(super) flags: Flags,
    pub(super) program: &'static CStr,
    /// Ends in a null pointer.
    pub(super) arguments: *const *const c_char,
    /// Ends in a null pointer.
    pub(super) environment: *const *const c_char,
}

/// What may be said in the flags, separated by commas.
pub(super) struct Flags {
    /// `s`: records are to be on the disk before they are told.
    pub(super) durability: Durability,
    /// `b` and the kernel's boot id in hex, which spares us from asking.
    pub(super) boot_id: Option<[u8; 16]>,
    /// `t` and a time before our birth, in nanoseconds since boot: likewise for our start time.
    pub(super) born_after: Option<u64>,
    /// `n` and how many descriptors the leader may have open: the server has raised its own limit.
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
            b"1" => self.task().map(Mode::Task),
            b"probe" => self.get(2).map(|cgroup| Mode::Probe { cgroup }),
            _ => None,
        }
    }

    fn task(&self) -> Option<Task> {
        if self.count <= LEADER || self.get(7)?.to_bytes() != b"--" {
            return None;
        }
        Some(Task {
            uid: parse_uuid(self.get(2)?.to_bytes())?,
            file: self.get(3)?,
            cgroup: self.get(4).filter(|path| !path.is_empty()),
            directory: self.get(5)?,
            flags: Flags::parse(self.get(6)?.to_bytes())?,
            program: self.get(8)?,
            // SAFETY: there are more than LEADER.
            arguments: unsafe { self.list.add(LEADER) },
            // SAFETY: the environment follows the null pointer that ends the arguments.
            environment: unsafe { self.list.add(self.count + 1) },
        })
    }

    fn get(&self, index: usize) -> Option<&'static CStr> {
        if index >= self.count {
            return None;
        }
        // SAFETY: within the list; the kernel ends each text with a NUL, and the stack stays.
        unsafe { Some(CStr::from_ptr(*self.list.add(index))) }
    }
}

impl Flags {
    fn parse(text: &[u8]) -> Option<Self> {
        let mut flags = Self {
            durability: Durability::Process,
            boot_id: None,
            born_after: None,
            descriptors: None,
        };
        for flag in text
            .split(|byte| *byte == b',')
            .filter(|flag| !flag.is_empty())
        {
            match flag.split_first()? {
                (b's', []) => flags.durability = Durability::Power,
                (b'b', id) => flags.boot_id = Some(parse_uuid(id)?),
                (b't', nanos) => flags.born_after = Some(number(nanos)?),
                (b'n', count) => flags.descriptors = Some(number(count)?),
                _ => return None,
            }
        }
        Some(flags)
    }
}

impl Task {
    /// Gives back the memory of what only the leader needed, once it has it: a script may be long,
    /// and there is no need to keep a second copy of a secret.
    ///
    /// # Safety
    ///
    /// The program, its arguments and its environment may not be used again.
    pub(super) unsafe fn forget_leader(&self) {
        let mut last = self.program;
        for mut next in [self.arguments, self.environment] {
            // SAFETY: each list ends in a null pointer, and each text in a NUL.
            unsafe {
                while !(*next).is_null() {
                    last = CStr::from_ptr(*next);
                    next = next.add(1);
                }
            }
        }
        // SAFETY: the texts lie on the stack in their order, and nobody needs them.
        unsafe { memory::forget_between(self.program, last) }
    }
}
