//! The subcommands, one file each, and which of them need a daemon.

mod attach;
mod cancel;
mod completions;
mod detach;
mod events;
mod inspect;
mod logs;
mod ps;
mod queue;
mod rm;
mod run;
pub(crate) mod serve;
mod shutdown;
mod spawn;
mod wait;

use clap::Subcommand;
use tokio::runtime;

use crate::{
    deferred::Deferred,
    exit::{Exit, Failure},
};

/// What to do.
#[derive(Debug, Subcommand)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one, and it is used at once"
)]
pub(crate) enum Command {
    /// Run the daemon in the foreground
    Serve(Deferred<serve::Serve>),
    /// Start a background task and print its id
    Spawn(Deferred<spawn::Spawn>),
    /// Run a task in the foreground: its output, its exit code
    Run(Deferred<run::Run>),
    /// List live tasks: running ones first, then newest first
    Ps(Deferred<ps::Ps>),
    /// Show one task whole
    Inspect(Deferred<inspect::Inspect>),
    /// Stop tasks, and wait for the proof that nothing of them is left
    Cancel(Deferred<cancel::Cancel>),
    /// Put a foreground task into the background
    Detach(Deferred<detach::Detach>),
    /// Wait until tasks are over, or released
    Wait(Deferred<wait::Wait>),
    /// Print what tasks have written
    Logs(Deferred<logs::Logs>),
    /// Follow a task's output, and hold it if it is in the foreground
    Attach(Deferred<attach::Attach>),
    /// List the queues, or change one
    Queue(Deferred<queue::Queue>),
    /// Print what has happened
    Events(Deferred<events::Events>),
    /// Forget finished tasks and delete their output
    Rm(Deferred<rm::Rm>),
    /// End the daemon, and leave its tasks running unless told to stop them
    Shutdown(Deferred<shutdown::Shutdown>),
    /// Print a script that completes arguments in a shell
    Completions(Deferred<completions::Completions>),
}

impl Command {
    /// Does it.
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Serve(Deferred(args)) => args.run(),
            Self::Completions(Deferred(args)) => args.run(),
            Self::Spawn(Deferred(args)) => block_on(args.run()),
            Self::Run(Deferred(args)) => block_on(args.run()),
            Self::Ps(Deferred(args)) => block_on(args.run()),
            Self::Inspect(Deferred(args)) => block_on(args.run()),
            Self::Cancel(Deferred(args)) => block_on(args.run()),
            Self::Detach(Deferred(args)) => block_on(args.run()),
            Self::Wait(Deferred(args)) => block_on(args.run()),
            Self::Logs(Deferred(args)) => block_on(args.run()),
            Self::Attach(Deferred(args)) => block_on(args.run()),
            Self::Queue(Deferred(args)) => block_on(args.run()),
            Self::Events(Deferred(args)) => block_on(args.run()),
            Self::Rm(Deferred(args)) => block_on(args.run()),
            Self::Shutdown(Deferred(args)) => block_on(args.run()),
        }
    }
}

/// A client has one connection and waits for it: more threads would only take time to start. Not
/// inlined, for the caller's frame would have room for every command's future.
#[inline(never)]
fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Other(format!("cannot begin: {error}")))?;
    let result = runtime.block_on(command);
    // The process is about to end: taking the runtime apart first is only time.
    std::mem::forget(runtime);
    result
}
