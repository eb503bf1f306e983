//! Starting shims.
//!
//! The shim's program is part of this one. At start-up it is put into a sealed memory file, from
//! which every shim is executed: nothing has to be installed beside the server, nothing is left on
//! disk, and a new server brings its own shim while those of the old one run on.
//!
//! A shim is started by `posix_spawn`, whose cost does not grow with the server; everything that
//! needs code between fork and exec happens in the shim. Its environment is its task's environment;
//! its arguments carry the rest.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use nix::{
    fcntl::{FcntlArg, SealFlag, fcntl},
    sys::{
        memfd::{MFdFlags, memfd_create},
        time::TimeValLike,
    },
    time::{ClockId, clock_gettime},
};

use super::link::Link;
use crate::task::TaskUid;

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/heeler-shim"));

/// The shim's program, ready to be executed.
#[derive(Debug)]
pub struct Shim {
    memory: File,
    /// What a shim would otherwise have to look up.
    constants: String,
}

/// Whether a shim waits for the disk when it writes a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// No: they survive the death of any process.
    Cached,
    /// Yes: they survive a loss of power too.
    Synced,
}

/// What a shim is to start.
#[derive(Debug)]
pub struct Launch<'a> {
    /// For which task.
    pub uid: TaskUid,
    /// Where to keep records and output; must not exist yet.
    pub task_file: &'a Path,
    /// The cgroup to make and start it in.
    pub cgroup: Option<&'a Path>,
    /// Where it starts.
    pub working_directory: &'a Path,
    /// How records are written.
    pub records: Records,
    /// The file to execute.
    pub program: &'a Path,
    /// Its arguments, the name it is called by first.
    pub argv: &'a [String],
    /// All its variables.
    pub env: &'a BTreeMap<OsString, OsString>,
}

impl Shim {
    /// Unpacks the program. Tasks may have this many descriptors open, if that is not what the
    /// server may.
    pub fn unpack(descriptors: Option<u64>) -> io::Result<Self> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let memory: OwnedFd = memfd_create(c"heeler-shim", flags)?;
        let mut memory = File::from(memory);
        memory.write_all(PROGRAM)?;
        let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK;
        fcntl(
            &memory,
            FcntlArg::F_ADD_SEALS(seals | SealFlag::F_SEAL_SEAL),
        )?;
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let mut constants = format!("b{}", boot_id.trim().replace('-', ""));
        if let Some(descriptors) = descriptors {
            constants = format!("{constants},n{descriptors}");
        }
        Ok(Self { memory, constants })
    }

    /// Starts a shim; what becomes of it is told on the link.
    pub fn launch(&self, launch: &Launch<'_>) -> io::Result<Link> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let records = match launch.records {
            Records::Cached => "",
            Records::Synced => ",s",
        };
        let before = clock_gettime(ClockId::CLOCK_BOOTTIME)?.num_nanoseconds();
        let flags = format!("{},t{before}{records}", self.constants);
        self.command()
            .arg("1")
            .arg(launch.uid.0.simple().to_string())
            .arg(launch.task_file)
            .arg(launch.cgroup.map_or(OsStr::new(""), Path::as_os_str))
            .arg(launch.working_directory)
            .args([flags.as_str(), "--"])
            .arg(launch.program)
            .args(launch.argv)
            .env_clear()
            .envs(launch.env)
            .stdin(OwnedFd::from(theirs))
            .spawn()?;
        Link::new(ours)
    }

    /// Puts a process into a cgroup, to see whether that can be done.
    pub fn probe(&self, cgroup: &Path) -> io::Result<()> {
        let status = self
            .command()
            .arg("probe")
            .arg(cgroup)
            .stdin(Stdio::null())
            .status()?;
        match status.code() {
            Some(0) => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::Error::other(status.to_string())),
        }
    }

    fn command(&self) -> Command {
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.memory.as_raw_fd()));
        let mut command = Command::new(path);
        command
            .arg0("heeler-shim")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}
