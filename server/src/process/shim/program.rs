//! The shim's program, which is part of this one.
//!
//! At start-up it is put into a sealed memory file, from which every shim is executed: nothing has to be
//! installed beside the server, nothing is left on disk, and a new server brings its own shim while
//! those of the old one run on. `posix_spawn` starts a shim, at a cost that does not grow with the server;
//! everything that needs code between fork and exec happens in the shim.

use std::{
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
    sys::memfd::{MFdFlags, memfd_create},
};

use super::{ShimProcess, link::ShimLink};
use crate::process::task_file::TaskDir;

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/heeler-shim"));

/// The durability of the records that a shim writes at an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordSync {
    /// The record survives the death of any process.
    Cached,
    /// The record survives a power cut too.
    Synced,
}

/// The program, ready to be executed, and its arguments.
#[derive(Debug)]
pub(super) struct ShimProgram {
    memory: File,
    flags: String,
    /// The directory of task files, shown in a list of processes.
    task_dir: PathBuf,
}

impl ShimProgram {
    /// Unpacks the program. `descriptors` is the limit of open descriptors for tasks, if it is not the
    /// server's own.
    pub(super) fn unpack(
        task_dir: &TaskDir,
        sync: RecordSync,
        descriptors: Option<u64>,
    ) -> io::Result<Self> {
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
        let mut flags = format!("b{}", boot_id.trim().replace('-', ""));
        if let Some(descriptors) = descriptors {
            flags = format!("{flags},n{descriptors}");
        }
        match sync {
            RecordSync::Cached => {}
            RecordSync::Synced => flags.push_str(",s"),
        }
        Ok(Self {
            memory,
            flags,
            task_dir: task_dir.as_path().to_owned(),
        })
    }

    /// Starts a shim, which waits for a task.
    pub(super) fn start(&self) -> io::Result<ShimLink> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let shim = self
            .command()
            .args(["run", &self.flags])
            .arg(&self.task_dir)
            .arg(TaskDir::path_placeholder(&self.task_dir))
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .spawn()?;
        ShimLink::to_started(ours, ShimProcess::started(shim.id()))
    }

    /// Starts a process in a cgroup, to test whether that works.
    pub(super) fn probe(&self, cgroup: &Path) -> io::Result<()> {
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
