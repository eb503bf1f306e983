//! Shims: starting them, keeping a few at hand, and giving them tasks.
//!
//! The shim's program is part of this one. At start-up it is put into a sealed memory file, from
//! which every shim is executed: nothing has to be installed beside the server, nothing is left on
//! disk, and a new server brings its own shim while those of the old one run on.
//!
//! ```text
//!              start              launch: the task goes over the link
//!  (nothing) ────────> at hand ───────────────────────────────────────> at work
//!                         ^                                                │
//!                         └──── give_back: its tree has ended quietly ─────┘
//! ```
//!
//! A shim costs an exec, and a task should not wait for that: so some are started ahead, and one
//! whose task is over takes another. Those at hand end when the server does; those at work do not.
//!
//! A shim is started by `posix_spawn`, whose cost does not grow with the server; everything that
//! needs code between fork and exec happens in the shim.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use heeler_shim::wire::{After, Order, Report};
use nix::{
    fcntl::{FcntlArg, SealFlag, fcntl},
    sys::memfd::{MFdFlags, memfd_create},
};

use super::{environment::EnvBlock, link::Link, task_file::TaskDir};
use crate::task::TaskUid;

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/heeler-shim"));

/// How many shims are at hand when nothing happens.
const AT_HAND: usize = 2;
/// How long a shim may take to make room for a task.
const ASSIGN_WITHIN: Duration = Duration::from_secs(5);
/// How many are kept of those whose task is over.
const KEPT: usize = 16;

/// The shim's program, ready to be executed, and the shims that wait for a task.
#[derive(Debug)]
pub struct Shims {
    memory: File,
    /// What a shim would otherwise have to look up.
    flags: String,
    /// Where task files are: not for the shim, but for whoever sees it in a list of processes.
    task_dir: PathBuf,
    at_hand: Mutex<Vec<Link>>,
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
    /// Where its output begins, while it is in memory; `None`: in the task file. See
    /// [`TaskDir::memory_place`].
    pub memory: Option<&'a Path>,
    /// The cgroup to make and start it in.
    pub cgroup: Option<&'a Path>,
    /// Where it starts.
    pub working_directory: &'a Path,
    /// The file to execute.
    pub program: &'a Path,
    /// Its arguments, the name it is called by first.
    pub argv: &'a [String],
    /// All its variables.
    pub env: &'a EnvBlock,
}

impl Shims {
    /// Unpacks the program. Tasks may have this many descriptors open, if that is not what the
    /// server may.
    pub fn unpack(
        task_dir: &TaskDir,
        records: Records,
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
        match records {
            Records::Cached => {}
            Records::Synced => flags.push_str(",s"),
        }
        Ok(Self {
            memory,
            flags,
            task_dir: task_dir.as_path().to_owned(),
            at_hand: Mutex::default(),
        })
    }

    /// Has a shim start a task; what becomes of it is told on the link.
    pub async fn launch(&self, launch: &Launch<'_>) -> io::Result<Link> {
        let assignment = launch.encode();
        loop {
            // One that has died while it waited cannot have begun.
            let waiting = self.at_hand().pop();
            let Some(mut link) = waiting else { break };
            if assign(&mut link, &assignment).await.is_ok() {
                return Ok(link);
            }
        }
        let mut link = self.start()?;
        assign(&mut link, &assignment).await?;
        Ok(link)
    }

    /// Takes back a shim that waits for another task.
    pub fn give_back(&self, link: Link) {
        let mut at_hand = self.at_hand();
        if at_hand.len() < KEPT && link.is_between_messages() {
            at_hand.push(link);
        }
    }

    /// Takes back a shim whose task is over, if it says that it waits for another.
    pub async fn retire(&self, mut link: Link) {
        while let Some(report) = link.next().await {
            if let Report::TreeEnded { shim } = report {
                match shim {
                    After::Waits => self.give_back(link),
                    After::Ends => {}
                }
                return;
            }
        }
    }

    /// Whether [`Self::stock_up`] has something to do.
    pub fn is_short(&self) -> bool {
        self.at_hand().len() < AT_HAND
    }

    /// Starts shims until there are enough at hand. One that cannot be started now is started when
    /// it is needed, or says then why not.
    pub fn stock_up(&self) {
        while self.is_short() {
            match self.start() {
                Ok(link) => self.at_hand().push(link),
                Err(error) => {
                    tracing::warn!(%error, "no shim can be started ahead");
                    return;
                }
            }
        }
    }

    /// Lets those go that wait.
    pub fn dismiss(&self) {
        self.at_hand().clear();
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

    fn start(&self) -> io::Result<Link> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        self.command()
            .args(["2", &self.flags])
            .arg(&self.task_dir)
            .arg(TaskDir::room_for_path(&self.task_dir))
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .spawn()?;
        Link::new(ours)
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

    fn at_hand(&self) -> std::sync::MutexGuard<'_, Vec<Link>> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shim that has not got all of it begins nothing.
async fn assign(link: &mut Link, assignment: &[u8]) -> io::Result<()> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the shim does not take its task");
    tokio::time::timeout(ASSIGN_WITHIN, link.send_bytes(assignment))
        .await
        .map_err(late)?
}

impl Launch<'_> {
    /// The order to begin, and the description behind it.
    fn encode(&self) -> Vec<u8> {
        let order = |bytes| Order::Begin {
            bytes,
            arguments: self.argv.len() as u64,
            variables: self.env.count() as u64,
        };
        let mut out = order(0).encode().to_vec();
        let header = out.len();
        out.extend_from_slice(self.uid.as_bytes());
        let mut text = |bytes: &[u8]| {
            out.extend_from_slice(bytes);
            out.push(0);
        };
        text(self.task_file.as_os_str().as_bytes());
        for optional in [self.memory, self.cgroup] {
            text(optional.map_or(OsStr::new(""), Path::as_os_str).as_bytes());
        }
        text(self.working_directory.as_os_str().as_bytes());
        text(self.program.as_os_str().as_bytes());
        for argument in self.argv {
            text(argument.as_bytes());
        }
        out.extend_from_slice(self.env.as_bytes());
        let bytes = (out.len() - header) as u64;
        out[..header].copy_from_slice(&order(bytes).encode());
        out
    }
}
