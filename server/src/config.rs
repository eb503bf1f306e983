//! The configuration of the daemon.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{journal::Durability, process::containment::ContainmentSetting};

#[derive(Debug, Clone)]
pub struct Config {
    /// The directory of the journal and the task files; private to its user, and to one server at a
    /// time.
    pub state_dir: PathBuf,
    /// The addresses to listen on; at least one.
    pub listen: Vec<Listen>,
    /// The certificate of every TCP address. Addresses beyond loopback need one.
    pub tls: Option<TlsFiles>,
    pub containment: ContainmentSetting,
    pub durability: Durability,
    pub limits: Limits,
    /// The directory of tasks whose request names none; by default the user's home.
    pub working_directory: Option<PathBuf>,
    pub on_exit: OnExit,
    /// The file system in memory for the output of foreground tasks; by default `/dev/shm`. Each state
    /// directory has a directory of its own in it.
    pub memory_dir: Option<PathBuf>,
    /// The most output in memory, of all tasks together, in bytes; 0 keeps all output on disk.
    pub memory_output: u64,
    /// The most output on disk, of all tasks together, in bytes. By default
    /// [`Self::DEFAULT_MAX_OUTPUT`], or a tenth of the file system if that is less and at least 256 MiB.
    pub max_output: Option<u64>,
    pub retention: Retention,
    pub probe_hosts: ProbeHosts,
}

/// The most live tasks; queued tasks do not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// In all.
    pub tasks: usize,
    /// In each session, if limited.
    pub per_session: Option<usize>,
    /// By label key: with the same value of this label.
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

/// The hosts that a ready policy's URL may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProbeHosts {
    /// Loopback addresses, and `localhost` with the names below it.
    #[default]
    Loopback,
    Any,
}

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket, for this user alone.
    Unix(PathBuf),
    /// A TCP address, for clients with the token; port 0 takes a free one.
    Tcp(SocketAddr),
}

impl Listen {
    pub fn unix(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Tcp(_) => None,
        }
    }

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
    /// The server's own certificate, followed by the chain to its authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The treatment of live tasks when a signal ends the server. A Shutdown call has its own option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExit {
    /// They run on, and the next server takes them over.
    #[default]
    LeaveRunning,
    /// They are stopped, and proven gone, before the server ends.
    StopTasks,
}

/// The most finished tasks and events that are kept. Beyond a limit the oldest are pruned first, a few
/// at a time, while the server runs. A live task is never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The number of finished tasks.
    pub finished: u64,
    /// The age of a finished task whose end was delivered; `None` sets no limit.
    pub age: Option<Duration>,
    /// The number of events, at least one. Events that a kept task needs are kept besides.
    pub events: u64,
}

impl Default for Retention {
    /// About 2 GB of journal at most.
    fn default() -> Self {
        Self {
            finished: 200_000,
            age: None,
            events: 1_000_000,
        }
    }
}

impl Config {
    /// The default limit of live tasks: the usual limits of processes and descriptors allow as many.
    pub const DEFAULT_MAX_TASKS: usize = 10_000;
    /// The default of `memory_output`.
    pub const DEFAULT_MEMORY_OUTPUT: u64 = 64 << 20;
    /// The default of `max_output`.
    pub const DEFAULT_MAX_OUTPUT: u64 = 10 << 30;
    /// By default, output takes at most one part in this many of the file system.
    pub(crate) const OUTPUT_PART: u64 = 10;
    /// The least of that: on a very small file system a tenth would cost finished tasks whose end was
    /// not delivered.
    pub(crate) const MIN_DEFAULT_MAX_OUTPUT: u64 = 256 << 20;
    /// The smallest `max_output`: that of a few small tasks.
    pub const MIN_MAX_OUTPUT: u64 = 1 << 20;
}
