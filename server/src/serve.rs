//! The daemon from start to end.
//!
//! ```text
//!  open the state directory ─> assemble ─> listen ─> recover ─> serve ─> close ─> close the journal
//!                                            └─ calls are refused ───┘
//! ```

mod assemble;
mod state_dir;

use std::{fmt, future::Future, io, path::PathBuf, time::Duration};

use heeler_proto::server::BackgroundTasksServer;
use tokio::{
    sync::{oneshot, watch},
    task::{JoinError, JoinHandle},
    time::{Instant, timeout_at},
};
use tonic::{service::Routes, transport::Server};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::{
    config::{Config, Listen, OnExit},
    journal::{Journal, JournalError},
    process::{
        containment::{ChosenContainment, ContainmentError},
        launch::ServerAddress,
    },
    service::{
        Closing, Edge, End, Front, Gate, Guard, InProcess, LARGEST_REQUEST, ListenError, Listener,
        Metrics, NAME, Service, Tcp, TraceError, Traces, WebhookError, WebhookMeters, Webhooks,
        serve_http,
    },
    supervisor::{CancelRequest, Cascade, Recovered, Supervisor},
    task::{Actor, StopCause},
};

/// The time that calls in progress have to end when the server shuts down.
const LAST_CALLS: Duration = Duration::from_secs(3);
/// The most streams of one connection.
const STREAMS: u32 = 16 * 1024;

/// The reason why the daemon did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("another server{} uses the state directory {}", with_pid(*pid), path.display())]
    AlreadyServed { path: PathBuf, pid: Option<u32> },
    #[error("the state directory {} belongs to uid {owner}, not to uid {own}", path.display())]
    ForeignOwner { path: PathBuf, owner: u32, own: u32 },
    #[error("cannot {operation}: {source}")]
    Io {
        operation: String,
        source: io::Error,
    },
    #[error("cgroup containment is not available here: {0}")]
    Containment(#[from] ContainmentError),
    #[error(
        "{} has task files but no journal: bring journal.db back, or move {} away to begin anew",
        state_dir.display(),
        state_dir.join("tasks").display()
    )]
    JournalMissing { state_dir: PathBuf },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("the server stopped serving: {0}")]
    Transport(#[from] tonic::transport::Error),
}

fn with_pid(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

impl RunError {
    fn io(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let operation = operation.into();
        move |source| Self::Io { operation, source }
    }
}

/// The state of a daemon that has started to serve.
#[derive(Debug, Clone)]
pub struct Ready {
    /// The addresses for clients, e.g. `unix:/run/user/1000/heeler/heeler.sock`.
    pub addresses: Vec<String>,
    /// The address for JSON over HTTP and the page, if there is one.
    pub http: Option<String>,
    /// The file with the token for TCP clients, if the daemon listens on TCP.
    pub token_file: Option<PathBuf>,
    /// The file with the secret of the webhooks, if there are any.
    pub webhook_secret_file: Option<PathBuf>,
    pub containment: ChosenContainment,
    pub recovered: Recovered,
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for address in &self.addresses {
            writeln!(f, "heeler: listening on {address}")?;
        }
        if let Some(address) = &self.http {
            writeln!(f, "heeler: listening on {address}")?;
        }
        if let Some(path) = &self.token_file {
            let path = path.display();
            writeln!(f, "heeler: TCP clients need the token in {path}")?;
        }
        if let Some(path) = &self.webhook_secret_file {
            let path = path.display();
            writeln!(f, "heeler: webhooks are signed with the secret in {path}")?;
        }
        write!(f, "heeler: containment: {}", self.containment)?;
        if self.recovered.tasks > 0 {
            let Recovered { tasks, live } = self.recovered;
            write!(f, "\nheeler: recovered {tasks} tasks, {live} of them live")?;
        }
        Ok(())
    }
}

/// Serves until `shutdown` completes or a Shutdown call ends it. Tasks outlive the server unless the
/// configuration or the call stops them. `ready` is called after recovery, when calls are accepted.
pub async fn run(
    config: Config,
    shutdown: impl Future<Output = ()>,
    ready: impl FnOnce(&Ready),
) -> Result<(), RunError> {
    let _lock = state_dir::open(&config)?;
    // Before the assembly: the environment of tasks names the port, which the kernel may choose.
    let tcp = Tcp::bind(&config)?;
    let (supervisor, journal) = assemble::assemble(&config, reach(&config, &tcp))?;
    let served = serve(&config, tcp, &supervisor, &journal, shutdown, ready).await;
    journal.close().await?;
    served
}

async fn serve(
    config: &Config,
    tcp: Tcp,
    supervisor: &Supervisor,
    journal: &Journal,
    shutdown: impl Future<Output = ()>,
    ready: impl FnOnce(&Ready),
) -> Result<(), RunError> {
    let addresses = unix_addresses(config).chain(tcp.addresses()).collect();
    let http = tcp.http().map(|(scheme, at)| format!("{scheme}://{at}"));
    let token_file = tcp.token_file();
    let secret_file = |webhooks| Webhooks::secret_file(webhooks, &config.state_dir);
    let webhook_secret_file = config.webhooks.as_ref().map(secret_file);
    let mut server = Running::listen(config, tcp, supervisor, journal).await?;
    let (recovered, is_recovered) = oneshot::channel();
    let serving = async {
        let recovered_tasks = supervisor.recover().await?;
        supervisor.start_pruning(config.retention);
        server.gate.open();
        // `told_to_end` may have given up waiting.
        let _ = recovered.send(());
        set_health(&server.health, ServingStatus::Serving).await;
        ready(&Ready {
            addresses,
            http,
            token_file,
            webhook_secret_file,
            containment: supervisor.containment().clone(),
            recovered: recovered_tasks,
        });
        supervisor.stock_up_shims();
        std::future::pending().await
    };
    let ended_early = tokio::select! {
        () = told_to_end(config, supervisor, shutdown, is_recovered) => None,
        () = server.end.requested() => None,
        ended = &mut server.transport => Some(ended),
        failed = serving => return failed,
    };
    let closed = server.close(ended_early).await;
    supervisor.leave_tasks().await;
    closed
}

/// Completes when the process is told to end, after the tasks are stopped if the operator wants that.
async fn told_to_end(
    config: &Config,
    supervisor: &Supervisor,
    shutdown: impl Future<Output = ()>,
    is_recovered: oneshot::Receiver<()>,
) {
    shutdown.await;
    match config.on_exit {
        OnExit::LeaveRunning => {}
        OnExit::StopTasks => {
            // A task that is not recovered yet cannot be stopped.
            let _ = is_recovered.await;
            let stopped = supervisor.stop_all(stop_for_shutdown()).await;
            tracing::info!(
                finished = stopped.finished,
                live = stopped.live,
                "stopped the tasks"
            );
        }
    }
}

fn stop_for_shutdown() -> CancelRequest {
    CancelRequest {
        cause: StopCause::Shutdown,
        mode: None,
        actor: Actor::heeler(),
        reason: None,
        cascade: Cascade::Alone,
    }
}

/// The listening server.
struct Running {
    /// Lets calls in after recovery.
    gate: Gate,
    /// Ends streams and waits when the server closes.
    close: watch::Sender<bool>,
    /// Completes when a Shutdown call asks for the end.
    end: End,
    health: HealthReporter,
    transport: JoinHandle<Result<(), tonic::transport::Error>>,
    http: Option<JoinHandle<()>>,
    webhooks: Option<JoinHandle<()>>,
    traces: Option<Traces>,
    task_spans: Option<JoinHandle<()>>,
}

impl Running {
    /// Listens on every address. The gate refuses calls until recovery is done.
    async fn listen(
        config: &Config,
        tcp: Tcp,
        supervisor: &Supervisor,
        journal: &Journal,
    ) -> Result<Self, RunError> {
        let (gate, end) = (Gate::default(), End::default());
        let (close, closing) = watch::channel(false);
        let closing = Closing::new(closing);
        let (health, health_service) = tonic_health::server::health_reporter();
        set_health(&health, ServingStatus::NotServing).await;
        let service = Service::new(
            supervisor.clone(),
            journal.clone(),
            closing.clone(),
            end.clone(),
        );
        let webhook_meters = WebhookMeters::default();
        let webhooks = match &config.webhooks {
            Some(webhooks) => {
                let dir = &config.state_dir;
                Some(Webhooks::open(webhooks, dir, &service, &webhook_meters)?)
            }
            None => {
                Webhooks::none(&config.state_dir);
                None
            }
        };
        let traces = config.otlp.as_deref().map(Traces::open).transpose()?;
        let (token, http_address) = (tcp.token(), tcp.http());
        let paths = config.listen.iter().filter_map(Listen::unix);
        let (connections, http_connections) = Listener::bind(paths, tcp)?.connections(&closing);
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(heeler_proto::FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
                // For generic clients that show the details of an error.
                .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
        };
        let no_reflection = |error| RunError::io("offer reflection")(io::Error::other(error));
        let edge = Edge::new(
            gate.clone(),
            token,
            LARGEST_REQUEST,
            supervisor.clone(),
            traces.clone(),
        );
        let routes = Routes::new(
            BackgroundTasksServer::new(service).max_decoding_message_size(LARGEST_REQUEST),
        )
        .add_service(health_service)
        .add_service(reflection().build_v1().map_err(no_reflection)?)
        // For generic clients that are a little older.
        .add_service(reflection().build_v1alpha().map_err(no_reflection)?)
        .prepare();
        let http = config.http.as_ref().zip(http_address);
        let http = http.map(|(config, (scheme, address))| {
            let guard = Guard::new(scheme, address, &config.hosts, &config.origins);
            let calls = edge.meters().clone();
            let metrics = Metrics::new(supervisor.clone(), journal.clone(), calls, webhook_meters);
            let backend = InProcess::new(edge.clone(), routes.clone(), metrics);
            let front = Front::new(backend, guard, config.access);
            tokio::spawn(serve_http(http_connections, front, closing.clone()))
        });
        let router = Server::builder()
            .max_concurrent_streams(STREAMS)
            .layer(edge)
            .add_routes(routes);
        // From before the recovery, which may record ends.
        let follow =
            |traces: Traces| traces.follow(journal.clone(), journal.head(), closing.clone());
        let task_spans = traces.clone().map(|traces| tokio::spawn(follow(traces)));
        let transport = tokio::spawn(
            router.serve_with_incoming_shutdown(connections, async move { closing.begun().await }),
        );
        Ok(Self {
            gate,
            close,
            end,
            health,
            transport,
            http,
            webhooks: webhooks.map(|webhooks| tokio::spawn(webhooks.run())),
            traces,
            task_spans,
        })
    }

    /// Accepts no more calls and gives those in progress some time to end. `ended_early` is the result
    /// of a transport that has ended by itself.
    async fn close(
        mut self,
        ended_early: Option<Result<Result<(), tonic::transport::Error>, JoinError>>,
    ) -> Result<(), RunError> {
        set_health(&self.health, ServingStatus::NotServing).await;
        self.gate.close();
        self.close.send_replace(true);
        let last_calls = Instant::now() + LAST_CALLS;
        let ended = match ended_early {
            Some(ended) => ended,
            None => match timeout_at(last_calls, &mut self.transport).await {
                Ok(ended) => ended,
                Err(_) => {
                    self.transport.abort();
                    Ok(Ok(()))
                }
            },
        };
        for mut other in [self.http, self.webhooks, self.task_spans]
            .into_iter()
            .flatten()
        {
            if timeout_at(last_calls, &mut other).await.is_err() {
                other.abort();
            }
        }
        if let Some(traces) = self.traces {
            traces.flush().await;
        }
        ended.unwrap_or(Ok(())).map_err(RunError::from)
    }
}

fn unix_addresses(config: &Config) -> impl Iterator<Item = String> {
    let paths = config.listen.iter().filter_map(Listen::unix);
    paths.map(|path| format!("unix:{}", path.display()))
}

/// The address at which tasks reach this server: a Unix socket, if there is one.
fn reach(config: &Config, tcp: &Tcp) -> ServerAddress {
    let address = unix_addresses(config).next().or_else(|| tcp.own_address());
    ServerAddress {
        takes_tokens: tcp.token_file().is_some(),
        address: address.unwrap_or_default(),
    }
}

async fn set_health(health: &HealthReporter, status: ServingStatus) {
    health.set_service_status("", status).await;
    health.set_service_status(NAME, status).await;
}
