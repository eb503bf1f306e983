//! Runs the daemon in this process: its runtime, its log and its signals. The server itself is
//! `heeler_server`.

use std::{
    env,
    io::{self, IsTerminal, Write},
    sync::{Arc, Barrier},
    time::Duration,
};

use heeler_server::{Config, Ready, RunError};
use nix::unistd;
use tokio::{
    runtime::{self, Runtime},
    signal::unix::{SignalKind, signal},
};
use tracing_subscriber::EnvFilter;

use crate::{exit::Exit, failure::Failure};

/// The environment variable with the log filter, e.g. `debug`.
const LOG_ENV: &str = "HEELER_LOG";

/// Threads for reads of files and of `/proc` that are there from the start. If all are busy and no other
/// can be started, further reads wait for one.
const BLOCKING_THREADS: usize = 4;
/// Maximum number of such threads. They stay once they are started, and an idle one costs little; a
/// process that hangs can block the reads of its `/proc` files, and with them as many threads.
const MAX_BLOCKING_THREADS: usize = 64;
/// Longer than any daemon runs.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The process session that the daemon runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessSession {
    /// The caller's: Ctrl-C and the end of the terminal reach the daemon.
    Callers,
    Own,
}

/// Serves until SIGTERM, SIGINT or a Shutdown call.
pub(crate) fn run(config: Config, session: ProcessSession) -> Result<Exit, Failure> {
    if session == ProcessSession::Own {
        leave_caller().map_err(|error| failed("leave the caller's session", error))?;
    }
    start_log()?;
    let runtime = start_runtime().map_err(|error| failed("start the runtime", error))?;
    runtime.block_on(async {
        // Before the server starts: a signal in between must neither be lost nor kill the process.
        let shutdown = shutdown_signal().map_err(|error| failed("listen for signals", error))?;
        heeler_server::run(config, shutdown, announce)
            .await
            .map_err(|error| match error {
                RunError::AlreadyServed { .. } => Failure::StateInUse(error.to_string()),
                RunError::ForeignOwner { .. }
                | RunError::Io { .. }
                | RunError::Containment(_)
                | RunError::JournalMissing { .. }
                | RunError::Listen(_)
                | RunError::Webhook(_)
                | RunError::Trace(_)
                | RunError::Transport(_) => Failure::Other(error.to_string()),
                RunError::Journal(error) => Failure::Other(with_causes(&error)),
            })
    })?;
    Ok(Exit::Success)
}

/// Starts every thread that a call may need. A machine at its limit of processes starts no further ones,
/// and that is when tasks have to be cancelled.
fn start_runtime() -> io::Result<Runtime> {
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .thread_keep_alive(FOR_EVER)
        .build()?;
    // Each waits for the others, so each is a thread of its own.
    let all = Arc::new(Barrier::new(BLOCKING_THREADS + 1));
    for _ in 0..BLOCKING_THREADS {
        let all = Arc::clone(&all);
        runtime.spawn_blocking(move || all.wait());
    }
    all.wait();
    Ok(runtime)
}

/// Becomes a session leader and closes every inherited descriptor: the daemon would keep a lock or a pipe
/// of the calling script open for as long as it runs.
fn leave_caller() -> io::Result<()> {
    unistd::setsid()?;
    let inherited: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in inherited {
        // The descriptor of the listing itself is among them, and already closed.
        let _ = unistd::close(fd);
    }
    Ok(())
}

fn start_log() -> Result<(), Failure> {
    let filter = match env::var(LOG_ENV) {
        Ok(directives) if !directives.is_empty() => EnvFilter::try_new(directives)
            .map_err(|error| Failure::Usage(format!("{LOG_ENV}: {error}")))?,
        Ok(_) | Err(_) => EnvFilter::new("info"),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(wants_colour())
        .with_writer(io::stderr)
        .init();
    Ok(())
}

/// Colours are for terminals, unless `NO_COLOR` is set: see <https://no-color.org>.
fn wants_colour() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !refused
}

fn shutdown_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn announce(ready: &Ready) {
    // A closed stderr is no reason to stop serving.
    let _ = io::stderr().write_all(format!("{ready}\n").as_bytes());
}

/// The error and its sources, on one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn failed(operation: &str, error: io::Error) -> Failure {
    Failure::Other(format!("cannot {operation}: {error}"))
}
