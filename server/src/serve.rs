//! From a [`Config`] to a running daemon, and down again.

use std::{
    fmt, fs,
    future::Future,
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::PathBuf,
    time::Duration,
};

use heeler_proto::server::BackgroundTasksServer;
use tokio::sync::{oneshot, watch};
use tonic::transport::Server;
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::{
    config::{Config, Listen, OnExit},
    journal::{Boot, Durability, Journal, JournalError},
    process::{
        self, BootId, StateLock,
        containment::{ChosenContainment, ContainmentError},
        launch::{BaseEnv, ServerAddress},
        own_uid,
        shim::{RecordSync, ShimPool},
        socket,
        task_file::{MemoryDir, TaskDir},
    },
    service::{Closing, Edge, End, Gate, ListenError, Listener, NAME, Service, Tcp},
    supervisor::{CancelRequest, Cascade, Parts, Recovered, Supervisor},
    task::{Actor, StopCause},
};

/// How long calls under way may take to end when the server goes down.
const LAST_CALLS: Duration = Duration::from_secs(3);
/// What is asked for comes back in events and lists, where clients take 4 MiB at a time.
const LARGEST_REQUEST: usize = 3 * 1024 * 1024;
/// Space that is kept for facts when the disk is full: some hundreds of cancels, ends and removals.
const WAL_RESERVE: i64 = 4 << 20;
/// Streams that one connection may have open.
const STREAMS: u32 = 16 * 1024;

/// Why the daemon did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is one already.
    #[error("another server uses the state directory {}", .0.display())]
    AlreadyServed(PathBuf),
    /// The state directory is somebody else's.
    #[error("the state directory {} belongs to uid {owner}, not to uid {own}", path.display())]
    ForeignOwner {
        /// Which directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        own: u32,
    },
    /// Something could not be done.
    #[error("cannot {operation}: {source}")]
    Io {
        /// What.
        operation: String,
        /// Why not.
        source: io::Error,
    },
    /// The rung that was asked for cannot be had.
    #[error("the kill containment has no cgroup rung here: {0}")]
    Containment(#[from] ContainmentError),
    /// There are tasks, and nothing that knows of them.
    #[error(
        "{} has task files but no journal: bring journal.db back, or move {} away to begin anew",
        state_dir.display(),
        state_dir.join("tasks").display()
    )]
    JournalMissing {
        /// Where.
        state_dir: PathBuf,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Nobody could come in.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The transport broke.
    #[error("the server stopped serving: {0}")]
    Transport(#[from] tonic::transport::Error),
}

/// What a daemon that serves can say of itself.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Where it listens, e.g. `unix:/run/user/1000/heeler/heeler.sock`, as a client is told of it.
    pub addresses: Vec<String>,
    /// Where the token is that callers over TCP have to show, if any can come.
    pub token_file: Option<PathBuf>,
    /// Which rung of the kill ladder it has.
    pub containment: ChosenContainment,
    /// What it took back.
    pub recovered: Recovered,
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for address in &self.addresses {
            writeln!(f, "heeler: listening on {address}")?;
        }
        if let Some(path) = &self.token_file {
            writeln!(
                f,
                "heeler: callers over TCP show the token in {}",
                path.display()
            )?;
        }
        write!(f, "heeler: kill containment: {}", self.containment)?;
        if self.recovered.tasks > 0 {
            let Recovered { tasks, live } = self.recovered;
            write!(f, "\nheeler: took back {tasks} tasks, {live} of them live")?;
        }
        Ok(())
    }
}

/// Serves until `shutdown` completes or a Shutdown call ends it; tasks outlive the server unless it was
/// told otherwise. `ready` is called once every earlier task has been taken back and calls are let in.
pub async fn run(
    config: Config,
    shutdown: impl Future<Output = ()>,
    ready: impl FnOnce(&Ready),
) -> Result<(), RunError> {
    let _lock = open_state(&config)?;
    // First, since tasks are told of a port that the kernel may choose.
    let tcp = Tcp::bind(&config)?;
    let supervisor = assemble(&config, reach(&config, &tcp))?;
    let journal = supervisor.parts().journal.clone();
    let served = serve(&config, tcp, supervisor, shutdown, ready).await;
    journal.close().await?;
    served
}

async fn serve(
    config: &Config,
    tcp: Tcp,
    supervisor: Supervisor,
    shutdown: impl Future<Output = ()>,
    ready: impl FnOnce(&Ready),
) -> Result<(), RunError> {
    let gate = Gate::default();
    let (close, closing) = watch::channel(false);
    let closing = Closing::new(closing);
    let (health, health_service) = tonic_health::server::health_reporter();
    set_health(&health, ServingStatus::NotServing).await;
    let end = End::default();
    let service = Service::new(supervisor.clone(), closing.clone(), end.clone());
    let (token, token_file) = (tcp.token(), tcp.token_file());
    let addresses = unix_addresses(config).chain(tcp.addresses()).collect();
    let paths = config.listen.iter().filter_map(Listen::unix);
    let connections = Listener::bind(paths, tcp)?.connections(&closing);
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(heeler_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        // So that a generic client can show an error's details.
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|error| RunError::Io {
            operation: "offer reflection".to_owned(),
            source: io::Error::other(error),
        })?;
    let router = Server::builder()
        .max_concurrent_streams(STREAMS)
        .layer(Edge::new(gate.clone(), token, LARGEST_REQUEST))
        .add_service(health_service)
        .add_service(reflection)
        .add_service(
            BackgroundTasksServer::new(service).max_decoding_message_size(LARGEST_REQUEST),
        );
    let until = closing.clone();
    let mut server = tokio::spawn(
        router.serve_with_incoming_shutdown(connections, async move { until.begun().await }),
    );

    let (taken_back, all_taken_back) = oneshot::channel();
    let serving = async {
        let recovered = supervisor.recover().await?;
        supervisor.keep_within(config.retention);
        gate.open();
        // Nobody may be waiting for it.
        let _ = taken_back.send(());
        set_health(&health, ServingStatus::Serving).await;
        ready(&Ready {
            addresses,
            token_file,
            containment: supervisor.parts().containment.clone(),
            recovered,
        });
        supervisor.parts().shims.stock_up();
        std::future::pending().await
    };
    let ending = async {
        shutdown.await;
        match config.on_exit {
            OnExit::LeaveRunning => {}
            OnExit::StopTasks => {
                // What has not been taken back yet could not be stopped.
                let _ = all_taken_back.await;
                stop_tasks(&supervisor).await;
            }
        }
    };
    let broken = tokio::select! {
        () = ending => None,
        () = end.asked() => None,
        ended = &mut server => Some(ended),
        failed = serving => return failed,
    };
    set_health(&health, ServingStatus::NotServing).await;
    gate.close();
    close.send_replace(true);
    let ended = match broken {
        Some(ended) => ended,
        None => match tokio::time::timeout(LAST_CALLS, &mut server).await {
            Ok(ended) => ended,
            Err(_) => {
                server.abort();
                Ok(Ok(()))
            }
        },
    };
    supervisor.leave().await;
    supervisor.parts().task_dir.release_memory_dir();
    ended.unwrap_or(Ok(())).map_err(RunError::from)
}

async fn stop_tasks(supervisor: &Supervisor) {
    let stopped = supervisor
        .stop_all(CancelRequest {
            cause: StopCause::Shutdown,
            mode: None,
            actor: Actor::default(),
            reason: None,
            cascade: Cascade::Alone,
        })
        .await;
    tracing::info!(
        over = stopped.over,
        left = stopped.left,
        "stopped its tasks"
    );
}

fn unix_addresses(config: &Config) -> impl Iterator<Item = String> {
    let paths = config.listen.iter().filter_map(Listen::unix);
    paths.map(|path| format!("unix:{}", path.display()))
}

/// How the server's own tasks reach it: by a Unix socket, where there is one.
fn reach(config: &Config, tcp: &Tcp) -> ServerAddress {
    match unix_addresses(config).next() {
        Some(address) => ServerAddress {
            address,
            token_file: None,
        },
        None => ServerAddress {
            address: tcp.own_address().unwrap_or_default(),
            token_file: tcp.token_file(),
        },
    }
}

async fn set_health(health: &HealthReporter, status: ServingStatus) {
    health.set_service_status("", status).await;
    health.set_service_status(NAME, status).await;
}

/// Makes the state directory, private to its user, and takes its lock.
fn open_state(config: &Config) -> Result<StateLock, RunError> {
    let path = config.state_dir.as_path();
    let failed = |operation: &str| {
        let operation = format!("{operation} {}", path.display());
        move |source| RunError::Io { operation, source }
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed("make the state directory"))?;
    let found = fs::metadata(path).map_err(failed("look at the state directory"))?;
    if found.uid() != own_uid() {
        let path = path.to_owned();
        return Err(RunError::ForeignOwner {
            path,
            owner: found.uid(),
            own: own_uid(),
        });
    }
    if found.mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "the state directory was open to others: now 0700");
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .map_err(failed("close to others the state directory"))?;
    }
    // Of several that are started at once, those that come too late do not wait to be needed.
    let is_served = || {
        let mut sockets = config.listen.iter().filter_map(Listen::unix);
        sockets.any(socket::answers)
    };
    let lock = StateLock::take(&path.join("lock"), is_served)
        .map_err(failed("lock the state directory"))?;
    lock.ok_or_else(|| RunError::AlreadyServed(path.to_owned()))
}

/// Where there is no memory to be had, there is the disk. What is in memory is read in any case.
fn with_memory(task_dir: TaskDir, config: &Config, journal: &Journal) -> TaskDir {
    let path = MemoryDir::of(journal.directory_id(), config.memory_dir.as_deref());
    for stale in MemoryDir::remove_stale(&path, &config.state_dir) {
        tracing::info!(path = %stale.display(), "removed the memory of a deleted state directory");
    }
    match MemoryDir::open(&path, &config.state_dir, config.memory_output) {
        Ok(memory) => task_dir.with_memory(memory),
        Err(error) => {
            if config.memory_output > 0 {
                tracing::warn!(%error, "output of foreground tasks goes to the disk at once");
            }
            task_dir
        }
    }
}

fn assemble(config: &Config, reach: ServerAddress) -> Result<Supervisor, RunError> {
    let failed = |operation: &str| {
        let operation = operation.to_owned();
        move |source| RunError::Io { operation, source }
    };
    let descriptors = process::raise_descriptor_limit();
    let task_dir = TaskDir::new(&config.state_dir);
    if Journal::is_missing(&config.state_dir) && !task_dir.is_empty() {
        let state_dir = config.state_dir.clone();
        return Err(RunError::JournalMissing { state_dir });
    }
    let BootId(boot) = BootId::current().map_err(failed("tell which boot this is"))?;
    let journal = Journal::open(&config.state_dir, config.durability, Boot(boot))?;
    let wal = Journal::wal_file(&config.state_dir);
    if let Err(error) = process::reserve_space(&wal, WAL_RESERVE) {
        tracing::warn!(%error, "no space is reserved: on a full disk no task can be cancelled");
    }
    task_dir
        .create()
        .map_err(failed("make the task directories"))?;
    let task_dir = with_memory(task_dir, config, &journal);
    let records = match config.durability {
        Durability::Process => RecordSync::Cached,
        Durability::Power => RecordSync::Synced,
    };
    let shims =
        ShimPool::unpack(&task_dir, records, descriptors).map_err(failed("unpack the shim"))?;
    let name = journal.directory_id().simple().to_string();
    let containment = ChosenContainment::choose(config.containment, &name, &shims)?;
    process::ignore_child_signals().map_err(failed("ignore SIGCHLD"))?;
    let base_env = BaseEnv::from_process(reach);
    let home = base_env
        .home()
        .map_or_else(|| PathBuf::from("/"), PathBuf::from);
    Ok(Supervisor::new(Parts {
        journal,
        shims,
        containment,
        base_env,
        task_dir,
        working_directory: config.working_directory.clone().unwrap_or(home),
        limits: config.limits.clone(),
    }))
}
