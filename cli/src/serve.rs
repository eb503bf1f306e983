//! Running the daemon in this process: its runtime, its log, its signals, and how it ends. What it
//! does is `heeler_server`'s.

use std::{
    env,
    io::{self, IsTerminal, Write},
};

use heeler_server::{Config, Ready, RunError};
use nix::unistd;
use tokio::{
    runtime,
    signal::unix::{SignalKind, signal},
};
use tracing_subscriber::EnvFilter;

use crate::exit::{Exit, Failure};

/// The environment variable that says what is logged.
const LOG_ENV: &str = "HEELER_LOG";

/// Whose session the daemon lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    /// That of whoever holds it in the foreground.
    Callers,
    /// Its own: no terminal's end and no Ctrl-C reaches it.
    Own,
}

/// Serves until SIGTERM, SIGINT or a Shutdown call. Tasks outlive it unless it was told otherwise.
pub(crate) fn run(config: Config, session: Session) -> Result<Exit, Failure> {
    if session == Session::Own {
        leave_caller().map_err(|error| failed("leave the caller's session", error))?;
    }
    start_log()?;
    let runtime = runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed("start the runtime", error))?;
    runtime.block_on(async {
        // Before anything is served: a signal in between must not be lost, nor kill.
        let shutdown = shutdown().map_err(|error| failed("listen for signals", error))?;
        heeler_server::run(config, shutdown, announce)
            .await
            .map_err(|error| match error {
                RunError::AlreadyServed(_) => Failure::StateInUse(error.to_string()),
                RunError::ForeignOwner { .. }
                | RunError::Io { .. }
                | RunError::Containment(_)
                | RunError::JournalMissing { .. }
                | RunError::Listen(_)
                | RunError::Transport(_) => Failure::Serve(error.to_string()),
                RunError::Journal(error) => Failure::Serve(with_causes(&error)),
            })
    })?;
    Ok(Exit::Done)
}

/// Becomes a session leader and closes every descriptor that a script may have left open in its
/// children: a lock or a pipe that this process kept would be kept for as long as it lives.
fn leave_caller() -> io::Result<()> {
    unistd::setsid()?;
    let inherited: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in inherited {
        // The listing's own is among them, and closed by now.
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

/// Colours are for a terminal, and not where `NO_COLOR` is set to anything: see <https://no-color.org>.
fn wants_colour() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !refused
}

fn shutdown() -> io::Result<impl Future<Output = ()>> {
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
    // With stderr closed there is nobody to tell; serving goes on.
    let _ = io::stderr().write_all(format!("{ready}\n").as_bytes());
}

/// An error with its causes, in one line.
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
    Failure::Serve(format!("cannot {operation}: {error}"))
}
