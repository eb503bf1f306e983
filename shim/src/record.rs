//! The header page of a task file: four records, each written once, whole, by one `pwrite`.
//!
//! | slot at | record | written |
//! | --- | --- | --- |
//! | 0 | [`Identity`] | when the shim has made and locked the file, before anything runs |
//! | 1024 | [`Start`] | when the leader runs, or could not be started |
//! | 2048 | [`LeaderExit`] | when the leader has ended, its last output behind it in the file |
//! | 3072 | [`TreeEnd`] | when the shim has no child left, or was to let go of them, and the output is complete |
//!
//! These are the truth about a task's end; whatever a shim says on its socket is only a hint to
//! look here. A slot that is empty or damaged reads as `None`.

mod slot;

use slot::{Reader, Writer};

/// The version of these records.
pub const VERSION: u16 = 1;
/// The size of a slot.
pub const SLOT: usize = 1024;
/// The longest cgroup path that an [`Identity`] can hold.
pub const MAX_CGROUP_PATH: usize = 896;

/// A slot's bytes: magic and kind, version, payload length, payload, zeros, and at the end a
/// checksum of all that is before the zeros.
pub type SlotBytes = [u8; SLOT];

/// Who made the file, for which task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The task's UUID.
    pub task_uid: [u8; 16],
    /// The kernel's boot id: a record of another boot speaks of processes that are gone.
    pub boot_id: [u8; 16],
    /// The shim's process id.
    pub shim_pid: u32,
    /// The shim's start time in clock ticks since boot, which with the pid names the process.
    pub shim_start_ticks: u64,
    /// The task's cgroup, an absolute path in the file system; empty if it has none.
    pub cgroup: CgroupPath,
    /// CPU time of those that the shim had waited for before, for other tasks.
    pub cpu_before_micros: u64,
}

/// A path of bounded length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CgroupPath {
    len: usize,
    bytes: [u8; MAX_CGROUP_PATH],
}

/// How the start went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The leader runs.
    Running {
        /// Its process id.
        pid: u32,
        /// Its start time in clock ticks since boot.
        start_ticks: u64,
        /// When, in microseconds since 1970.
        time_micros: u64,
        /// Whether it was born in the task's cgroup.
        in_cgroup: bool,
    },
    /// It could not be started.
    Failed {
        /// What was being done.
        stage: Stage,
        /// The system's answer.
        errno: i32,
    },
}

/// The steps of a start that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Making the task file, or writing who made it: only ever told on the socket.
    TaskFile,
    /// Making the pipes or other preparations in the shim.
    Prepare,
    /// Making the process.
    Clone,
    /// Entering the working directory.
    WorkingDirectory,
    /// Arranging descriptors and signals in the child.
    Arrange,
    /// Executing the program.
    Exec,
}

/// How a process ended, as its wait status tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with a code.
    Code(i32),
    /// By a signal.
    Signal {
        /// Its number.
        number: i32,
        /// Whether core was dumped.
        core_dumped: bool,
    },
}

/// How the leader ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderExit {
    /// Its wait status.
    pub exit: Exit,
    /// When, in microseconds since 1970.
    pub time_micros: u64,
    /// How much output there was when it had ended and its pipes were drained.
    pub output_end: u64,
}

/// That the shim has no child left, or has let go of those it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeEnd {
    /// When, in microseconds since 1970.
    pub time_micros: u64,
    /// How much output the task has written in all.
    pub output_end: u64,
    /// Whether the task's cgroup was seen empty as well. False if it has none.
    pub cgroup_empty: bool,
    /// CPU time of the whole tree, in microseconds.
    pub cpu_micros: u64,
    /// The largest resident memory of any process of the tree, in bytes.
    pub max_memory: u64,
    /// The first error that kept output from being written; 0: none.
    pub capture_errno: i32,
    /// How many bytes of output were discarded because of it.
    pub discarded: u64,
    /// Whether the leader alone has ended, and others live on that nobody watches any more.
    pub abandoned: bool,
}

/// Where a record stands in the file.
pub mod position {
    /// Of the [`super::Identity`].
    pub const IDENTITY: u64 = 0;
    /// Of the [`super::Start`].
    pub const START: u64 = 1024;
    /// Of the [`super::LeaderExit`].
    pub const LEADER_EXIT: u64 = 2048;
    /// Of the [`super::TreeEnd`].
    pub const TREE_END: u64 = 3072;
}

impl CgroupPath {
    /// No cgroup.
    pub const NONE: Self = Self {
        len: 0,
        bytes: [0; MAX_CGROUP_PATH],
    };

    /// From a path's bytes; `None` if it is too long.
    pub fn new(path: &[u8]) -> Option<Self> {
        let mut out = Self::NONE;
        out.bytes.get_mut(..path.len())?.copy_from_slice(path);
        out.len = path.len();
        Some(out)
    }

    /// Its bytes.
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
    /// As it is written.
    pub fn encode(&self) -> SlotBytes {
        let mut w = Writer::new(b'I');
        w.bytes(&self.task_uid);
        w.bytes(&self.boot_id);
        w.u64(u64::from(self.shim_pid));
        w.u64(self.shim_start_ticks);
        w.u64(self.cgroup.len as u64);
        w.bytes(self.cgroup.as_bytes());
        w.u64(self.cpu_before_micros);
        w.finish()
    }

    /// From its slot.
    pub fn decode(slot: &SlotBytes) -> Option<Self> {
        let mut r = Reader::new(slot, b'I')?;
        let task_uid = r.array()?;
        let boot_id = r.array()?;
        let shim_pid = u32::try_from(r.u64()?).ok()?;
        let shim_start_ticks = r.u64()?;
        let len = usize::try_from(r.u64()?).ok()?;
        let cgroup = CgroupPath::new(r.slice(len)?)?;
        // The first shims did not write it: each had one task.
        let cpu_before_micros = r.u64().unwrap_or(0);
        Some(Self {
            task_uid,
            boot_id,
            shim_pid,
            shim_start_ticks,
            cgroup,
            cpu_before_micros,
        })
    }
}

impl Start {
    /// As it is written.
    pub fn encode(&self) -> SlotBytes {
        let mut w = Writer::new(b'S');
        match *self {
            Self::Running {
                pid,
                start_ticks,
                time_micros,
                in_cgroup,
            } => {
                w.u64(0);
                w.u64(u64::from(pid));
                w.u64(start_ticks);
                w.u64(time_micros);
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

    /// From its slot.
    pub fn decode(slot: &SlotBytes) -> Option<Self> {
        let mut r = Reader::new(slot, b'S')?;
        match r.u64()? {
            0 => Some(Self::Running {
                pid: u32::try_from(r.u64()?).ok()?,
                start_ticks: r.u64()?,
                time_micros: r.u64()?,
                in_cgroup: r.u64()? != 0,
            }),
            1 => Some(Self::Failed {
                stage: Stage::from_code(u8::try_from(r.u64()?).ok()?)?,
                errno: i32::try_from(r.i64()?).ok()?,
            }),
            _ => None,
        }
    }
}

impl Stage {
    /// Its number on the wire.
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

    /// From its number on the wire.
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
    /// As it is written.
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
        w.u64(self.time_micros);
        w.u64(self.output_end);
        w.finish()
    }

    /// From its slot.
    pub fn decode(slot: &SlotBytes) -> Option<Self> {
        let mut r = Reader::new(slot, b'L')?;
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
            time_micros: r.u64()?,
            output_end: r.u64()?,
        })
    }
}

impl TreeEnd {
    /// As it is written.
    pub fn encode(&self) -> SlotBytes {
        let mut w = Writer::new(b'T');
        w.u64(self.time_micros);
        w.u64(self.output_end);
        w.u64(u64::from(self.cgroup_empty));
        w.u64(self.cpu_micros);
        w.u64(self.max_memory);
        w.i64(i64::from(self.capture_errno));
        w.u64(self.discarded);
        w.u64(u64::from(self.abandoned));
        w.finish()
    }

    /// From its slot.
    pub fn decode(slot: &SlotBytes) -> Option<Self> {
        let mut r = Reader::new(slot, b'T')?;
        Some(Self {
            time_micros: r.u64()?,
            output_end: r.u64()?,
            cgroup_empty: r.u64()? != 0,
            cpu_micros: r.u64()?,
            max_memory: r.u64()?,
            capture_errno: i32::try_from(r.i64()?).ok()?,
            discarded: r.u64()?,
            // The first shims let go of nobody, and did not say so.
            abandoned: r.u64().is_some_and(|abandoned| abandoned != 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            task_uid: [7; 16],
            boot_id: [9; 16],
            shim_pid: 4242,
            shim_start_ticks: 1 << 40,
            cgroup: CgroupPath::new(&[b'x'; MAX_CGROUP_PATH]).expect("fits"),
            cpu_before_micros: 1 << 30,
        }
    }

    #[test]
    fn records_survive_the_round_trip() {
        assert_eq!(Identity::decode(&identity().encode()), Some(identity()));
        let running = Start::Running {
            pid: 1,
            start_ticks: 2,
            time_micros: 3,
            in_cgroup: true,
        };
        let failed = Start::Failed {
            stage: Stage::Exec,
            errno: 2,
        };
        for start in [running, failed] {
            assert_eq!(Start::decode(&start.encode()), Some(start));
        }
        for exit in [
            Exit::Code(255),
            Exit::Signal {
                number: 11,
                core_dumped: true,
            },
        ] {
            let record = LeaderExit {
                exit,
                time_micros: 5,
                output_end: u64::MAX,
            };
            assert_eq!(LeaderExit::decode(&record.encode()), Some(record));
        }
        let end = TreeEnd {
            time_micros: 1,
            output_end: 2,
            cgroup_empty: true,
            cpu_micros: 3,
            max_memory: 4,
            capture_errno: 28,
            discarded: 5,
            abandoned: true,
        };
        assert_eq!(TreeEnd::decode(&end.encode()), Some(end));
    }

    /// R8
    #[test]
    fn an_end_that_does_not_speak_of_a_release_is_none() {
        let mut w = Writer::new(b'T');
        for word in [1, 2, 1, 3, 4, 28, 5] {
            w.u64(word);
        }
        let end = TreeEnd::decode(&w.finish()).expect("an older record is read");
        assert_eq!((end.discarded, end.abandoned), (5, false));
    }

    #[test]
    fn damage_reads_as_nothing() {
        let good = identity().encode();
        for at in 0..SLOT {
            let mut bad = good;
            bad[at] ^= 0x10;
            assert_eq!(Identity::decode(&bad), None, "byte {at}");
        }
        assert_eq!(TreeEnd::decode(&[0; SLOT]), None);
        assert_eq!(TreeEnd::decode(&good), None, "a record of another kind");
    }
}
