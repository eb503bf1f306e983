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
    /// The HTTP address, if any.
    pub http: Option<Http>,
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
    /// For the URLs of ready policies.
    pub probe_hosts: AllowedHosts,
    /// The receivers of events, if any.
    pub webhooks: Option<Webhooks>,
    /// The URL of a collector that takes traces by OTLP over gRPC, if any.
    pub otlp: Option<String>,
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
    /// The most ancestors of a task.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tasks: Config::DEFAULT_MAX_TASKS,
            per_session: None,
            per_label: BTreeMap::new(),
            depth: Config::DEFAULT_MAX_DEPTH,
        }
    }
}

/// The hosts that the server may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllowedHosts {
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

/// An address for JSON over HTTP and the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Port 0 takes a free one.
    pub address: SocketAddr,
    pub access: HttpAccess,
    /// Names of the server beside those of loopback, e.g. `build.example.com` or `localhost:8080`.
    pub hosts: Vec<String>,
    /// Origins whose pages may make calls, e.g. `https://ide.example.com`.
    pub origins: Vec<String>,
}

/// The calls that an HTTP address takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpAccess {
    #[default]
    All,
    /// Calls that change nothing.
    ReadOnly,
}

/// Receivers of events over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhooks {
    /// `http://` or `https://`; at least one, here or in a file.
    pub urls: Vec<String>,
    /// Private files with further URLs, one a line.
    pub url_files: Vec<PathBuf>,
    /// The names of the types of events to send, e.g. `ENDED`; empty: all.
    pub events: Vec<String>,
    /// The file with the secret that signs what is sent; by default `webhook-secret` in the state directory.
    /// It is created if it does not exist.
    pub secret_file: Option<PathBuf>,
    pub hosts: AllowedHosts,
}

impl Webhooks {
    /// The events that a person wants to hear of: the default of the command.
    pub const DEFAULT_EVENTS: [&str; 5] =
        ["ENDED", "STALE", "NEEDS_INPUT", "NOT_READY", "KILL_OVERDUE"];
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
    /// The default limit of a task's ancestors: agents that spawn agents without end are stopped by it.
    pub const DEFAULT_MAX_DEPTH: usize = 8;

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
