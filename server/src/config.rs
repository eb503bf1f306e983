//! What an operator can choose.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{journal::Durability, process::containment::ContainmentSetting};

/// How the daemon is to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where everything is kept; private to its user, and to one server at a time.
    pub state_dir: PathBuf,
    /// Where to listen; at least one place.
    pub listen: Vec<Listen>,
    /// What every TCP address speaks TLS with. Beyond loopback there must be one.
    pub tls: Option<TlsFiles>,
    /// Which rung of the kill ladder to stand on.
    pub containment: ContainmentSetting,
    /// What a recorded fact survives.
    pub durability: Durability,
    /// How many tasks may be live at once.
    pub limits: Limits,
    /// Where tasks start that were given no directory; otherwise the user's home.
    pub working_directory: Option<PathBuf>,
    /// What becomes of the live tasks when the server is told to end from outside.
    pub on_exit: OnExit,
    /// Where foreground tasks keep their output at first, in a directory of this state directory's own:
    /// on a file system in memory; none: `/dev/shm`.
    pub memory_dir: Option<PathBuf>,
    /// How much output may be there between all tasks, in bytes. 0: all of it goes to the disk.
    pub memory_output: u64,
    /// What is kept of the past.
    pub retention: Retention,
}

/// How many tasks may be live at once; those that wait for their turn do not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// In all.
    pub tasks: usize,
    /// In each session, if that is limited.
    pub per_session: Option<usize>,
    /// By a label's key: with each of its values.
    pub per_label: BTreeMap<String, usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tasks: Config::DEFAULT_MAX_TASKS,
            per_session: None,
            per_label: BTreeMap::new(),
        }
    }
}

/// A place to listen at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket, for this user alone.
    Unix(PathBuf),
    /// A TCP address, for whoever shows the token; port 0: one that is free.
    Tcp(SocketAddr),
}

impl Listen {
    /// The socket, if it is one.
    pub fn unix(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Tcp(_) => None,
        }
    }

    /// The TCP address, if it is one.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(address) => Some(*address),
        }
    }
}

/// A certificate and its key, in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's own certificate, and behind it those that lead to its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What becomes of the live tasks when the server is told to end from outside. A Shutdown call says for
/// itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExit {
    /// They run on, and the next server takes them back.
    #[default]
    LeaveRunning,
    /// They are stopped, and proven gone, before the server ends.
    StopTasks,
}

/// What is kept of the past. Beyond any of the limits the oldest go first, a few at a time, while the
/// server runs. A live task is never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How many finished tasks.
    pub finished: u64,
    /// How much output finished tasks may have between them, in bytes.
    pub output_bytes: u64,
    /// How long a finished task is kept once somebody has seen its end; none: however long.
    pub age: Option<Duration>,
    /// How many events, at least one; beside them whatever a task that is kept is known by.
    pub events: u64,
}

impl Default for Retention {
    /// Some 2 GB of journal and 10 GiB of output at the most.
    fn default() -> Self {
        Self {
            finished: 200_000,
            output_bytes: 10 << 30,
            age: None,
            events: 1_000_000,
        }
    }
}

impl Config {
    /// How many tasks may be live where nobody says otherwise: what the usual limits on processes
    /// and descriptors leave room for.
    pub const DEFAULT_MAX_TASKS: usize = 10_000;
    /// How much output may be in memory where nobody says otherwise.
    pub const DEFAULT_MEMORY_OUTPUT: u64 = 64 << 20;
}
