//! The header page of a task file: records, each in a slot of its own and written by one `pwrite`.
//!
//! | slot at | record | written |
//! | --- | --- | --- |
//! | 0 | [`Identity`] | after the shim has created and locked the file, before anything runs |
//! | 1024 | [`Start`] | when the leader runs, or could not be started |
//! | 1536 | [`LeaderExit`] | when the leader has exited and its output is in the file |
//! | 2048 | [`TreeEnd`] | when the shim has no child left or has abandoned them, and the output is complete |
//! | 2560, 3072 | [`OutputState`] | in turn, whenever the rules of the output part change; the newer one counts |
//! | 3584 | [`AttemptBegin`] | before the leader of another attempt is started |
//!
//! The slots from [`Start`] to [`TreeEnd`] are emptied before an attempt begins, so they are those of the attempt
//! that [`AttemptBegin`] names; of the first one, if there is none.
//!
//! The records are the truth about a task's end. A message on the socket is only a hint to read them.

mod output;
mod slot;

pub use output::{Limit, LimitCause, OutputState, Ring};
use slot::{Reader, Writer};

use crate::stamp::Stamp;

/// The version of these records.
pub const VERSION: u16 = 2;
/// The size of an identity's slot.
pub const IDENTITY_SLOT: usize = 1024;
/// The size of every other slot.
pub const SLOT: usize = 512;
/// The longest cgroup path that an [`Identity`] can hold.
pub const MAX_CGROUP_PATH: usize = 896;

/// A slot: magic, kind, version, payload length, payload, zeros, and a checksum of everything before
/// the zeros.
pub type SlotBytes = [u8; SLOT];
pub type IdentityBytes = [u8; IDENTITY_SLOT];

/// The reason why a slot holds no usable record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// Nothing was ever written.
    Empty,
    /// Half-written, damaged, or a record of another kind.
    Damaged,
    /// A whole record of a version that this build does not read.
    UnknownVersion(u16),
}

/// The shim that created the file, and the task it did so for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub task_uid: [u8; 16],
    /// The kernel's boot id. Pids and monotonic times mean nothing in another boot.
    pub boot_id: [u8; 16],
    pub shim_pid: u32,
    /// The shim's start time in clock ticks since boot; with the pid it identifies the process.
    pub shim_start_ticks: u64,
    /// The task's cgroup, as an absolute path in the file system; empty if it has none.
    pub cgroup: CgroupPath,
    /// CPU time of the processes that the shim reaped for earlier tasks.
    pub cpu_before_micros: u64,
}

/// A path of bounded length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CgroupPath {
    len: usize,
    bytes: [u8; MAX_CGROUP_PATH],
}

/// The result of the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Running {
        pid: u32,
        /// The leader's start time in clock ticks since boot.
        start_ticks: u64,
        time: Stamp,
        /// The leader was created in the task's cgroup.
        in_cgroup: bool,
    },
    Failed {
        stage: Stage,
        errno: i32,
    },
}

/// The steps of a start that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Creating the task file or writing its identity. Reported on the socket only.
    TaskFile,
    /// Creating the pipes, and other preparations in the shim.
    Prepare,
    /// Creating the process.
    Clone,
    /// Entering the working directory.
    WorkingDirectory,
    /// Arranging descriptors and signals in the child.
    Arrange,
    /// Executing the program.
    Exec,
}

/// A process's wait status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal { number: i32, core_dumped: bool },
}

/// The leader's exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderExit {
    pub exit: Exit,
    pub time: Stamp,
    /// The amount of output after the exit, once the pipes were drained.
    pub output_end: u64,
}

/// The end of the tree: the shim has no child left, or has abandoned the orphans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeEnd {
    pub time: Stamp,
    /// The total amount of output.
    pub output_end: u64,
    /// The task's cgroup was empty too. False if it has none.
    pub cgroup_empty: bool,
    /// CPU time of the whole tree.
    pub cpu_micros: u64,
    /// The largest resident memory of any process of the tree, in bytes.
    pub max_memory: u64,
    /// The first error that kept output from being written; 0: none.
    pub capture_errno: i32,
    /// The number of output bytes that were discarded because of it.
    pub discarded: u64,
    /// Only the leader has ended; the orphans live on without supervision.
    pub abandoned: bool,
}

/// The begin of an attempt after the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptBegin {
    /// Counts the attempts, the first one included.
    pub attempt: u32,
    /// The amount of output of the attempts before it.
    pub output_begin: u64,
}

/// The positions of the records in the file.
pub mod position {
    pub const IDENTITY: u64 = 0;
    pub const START: u64 = 1024;
    pub const LEADER_EXIT: u64 = 1536;
    pub const TREE_END: u64 = 2048;
    pub const OUTPUT: [u64; 2] = [2560, 3072];
    pub const ATTEMPT: u64 = 3584;
}

impl CgroupPath {
    pub const NONE: Self = Self {
        len: 0,
        bytes: [0; MAX_CGROUP_PATH],
    };

    /// Returns `None` if the path is too long.
    pub fn new(path: &[u8]) -> Option<Self> {
        let mut out = Self::NONE;
        out.bytes.get_mut(..path.len())?.copy_from_slice(path);
        out.len = path.len();
        Some(out)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl core::fmt::Debug for Identity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Identity")
            .field("shim_pid", &self.shim_pid)
            .finish_non_exhaustive()
    }
}

impl core::fmt::Debug for CgroupPath {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(core::str::from_utf8(self.as_bytes()).unwrap_or("<not utf-8>"))
    }
}

impl Identity {
    pub fn encode(&self) -> IdentityBytes {
        let mut w = Writer::new(b'I');
        w.bytes(&self.task_uid);
        w.bytes(&self.boot_id);
        w.u64(u64::from(self.shim_pid));
        w.u64(self.shim_start_ticks);
        w.u64(self.cpu_before_micros);
        w.u64(self.cgroup.len as u64);
        w.bytes(self.cgroup.as_bytes());
        w.finish()
    }

    pub fn decode(slot: &IdentityBytes) -> Result<Self, Unreadable> {
        decode(slot, b'I', |r| {
            let task_uid = r.array()?;
            let boot_id = r.array()?;
            let shim_pid = u32::try_from(r.u64()?).ok()?;
            let shim_start_ticks = r.u64()?;
            let cpu_before_micros = r.u64()?;
            let len = usize::try_from(r.u64()?).ok()?;
            Some(Self {
                task_uid,
                boot_id,
                shim_pid,
                shim_start_ticks,
                cpu_before_micros,
                cgroup: CgroupPath::new(r.slice(len)?)?,
            })
        })
    }
}

impl Start {
    pub fn encode(&self) -> SlotBytes {
        let mut w = Writer::new(b'S');
        match *self {
            Self::Running {
                pid,
                start_ticks,
                time,
                in_cgroup,
            } => {
                w.u64(0);
                w.u64(u64::from(pid));
                w.u64(start_ticks);
                w.stamp(time);
                w.u64(u64::from(in_cgroup));
            }
            Self::Failed { stage, errno } => {
                w.u64(1);
                w.u64(u64::from(stage.code()));
                w.i64(i64::from(errno));
            }
        }
        w.finish()
    }

    pub fn decode(slot: &SlotBytes) -> Result<Self, Unreadable> {
        decode(slot, b'S', |r| match r.u64()? {
            0 => Some(Self::Running {
                pid: u32::try_from(r.u64()?).ok()?,
                start_ticks: r.u64()?,
                time: r.stamp()?,
                in_cgroup: r.u64()? != 0,
            }),
            1 => Some(Self::Failed {
                stage: Stage::from_code(u8::try_from(r.u64()?).ok()?)?,
                errno: i32::try_from(r.i64()?).ok()?,
            }),
            _ => None,
        })
    }
}

impl Stage {
    /// The stage's number in a record and on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Prepare => 1,
            Self::Clone => 2,
            Self::WorkingDirectory => 3,
            Self::Arrange => 4,
            Self::Exec => 5,
            Self::TaskFile => 6,
        }
    }

    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Prepare),
            2 => Some(Self::Clone),
            3 => Some(Self::WorkingDirectory),
            4 => Some(Self::Arrange),
            5 => Some(Self::Exec),
            6 => Some(Self::TaskFile),
            _ => None,
        }
    }
}

impl LeaderExit {
    pub fn encode(&self) -> SlotBytes {
        let mut w = Writer::new(b'L');
        match self.exit {
            Exit::Code(code) => {
                w.u64(0);
                w.i64(i64::from(code));
                w.u64(0);
            }
            Exit::Signal {
                number,
                core_dumped,
            } => {
                w.u64(1);
                w.i64(i64::from(number));
                w.u64(u64::from(core_dumped));
            }
        }
        w.stamp(self.time);
        w.u64(self.output_end);
        w.finish()
    }

    pub fn decode(slot: &SlotBytes) -> Result<Self, Unreadable> {
        decode(slot, b'L', |r| {
            let kind = r.u64()?;
            let value = i32::try_from(r.i64()?).ok()?;
            let core_dumped = r.u64()? != 0;
            let exit = match kind {
                0 => Exit::Code(value),
                1 => Exit::Signal {
                    number: value,
                    core_dumped,
                },
                _ => return None,
            };
            Some(Self {
                exit,
                time: r.stamp()?,
                output_end: r.u64()?,
            })
        })
    }
}

impl TreeEnd {
    pub fn encode(&self) -> SlotBytes {
        let mut w = Writer::new(b'T');
        w.stamp(self.time);
        w.u64(self.output_end);
        w.u64(u64::from(self.cgroup_empty));
        w.u64(self.cpu_micros);
        w.u64(self.max_memory);
        w.i64(i64::from(self.capture_errno));
        w.u64(self.discarded);
        w.u64(u64::from(self.abandoned));
        w.finish()
    }

    pub fn decode(slot: &SlotBytes) -> Result<Self, Unreadable> {
        decode(slot, b'T', |r| {
            Some(Self {
                time: r.stamp()?,
                output_end: r.u64()?,
                cgroup_empty: r.u64()? != 0,
                cpu_micros: r.u64()?,
                max_memory: r.u64()?,
                capture_errno: i32::try_from(r.i64()?).ok()?,
                discarded: r.u64()?,
                abandoned: r.u64()? != 0,
            })
        })
    }
}

impl AttemptBegin {
    pub fn encode(&self) -> SlotBytes {
        let mut w = Writer::new(b'A');
        w.u64(u64::from(self.attempt));
        w.u64(self.output_begin);
        w.finish()
    }

    pub fn decode(slot: &SlotBytes) -> Result<Self, Unreadable> {
        decode(slot, b'A', |r| {
            Some(Self {
                attempt: u32::try_from(r.u64()?).ok()?,
                output_begin: r.u64()?,
            })
        })
    }
}

fn decode<T, const SIZE: usize>(
    slot: &[u8; SIZE],
    kind: u8,
    fields: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<T, Unreadable> {
    fields(&mut Reader::new(slot, kind)?).ok_or(Unreadable::Damaged)
}

#[cfg(test)]
mod tests;
