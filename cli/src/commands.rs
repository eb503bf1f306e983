//! The subcommands, one file each.

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
mod start;
mod wait;

use clap::Subcommand;
use tokio::runtime;

use crate::{args::deferred_args::DeferredArgs, exit::Exit, failure::Failure};

#[derive(Debug, Subcommand)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one value, and it is used at once"
)]
pub(crate) enum Command {
    /// Run the daemon in the foreground
    Serve(DeferredArgs<serve::Serve>),
    /// Start the daemon if it is not running, and print its address
    Start(DeferredArgs<start::Start>),
    /// Start a background task and print its id
    Spawn(DeferredArgs<spawn::Spawn>),
    /// Run a task in the foreground, with its output and exit code
    Run(DeferredArgs<run::Run>),
    /// List live tasks
    Ps(DeferredArgs<ps::Ps>),
    /// Show everything about one task
    Inspect(DeferredArgs<inspect::Inspect>),
    /// Stop tasks and wait until every process of them is proven gone
    Cancel(DeferredArgs<cancel::Cancel>),
    /// Move a foreground task to the background
    Detach(DeferredArgs<detach::Detach>),
    /// Wait until tasks are finished or out of the foreground
    Wait(DeferredArgs<wait::Wait>),
    /// Print the output of tasks
    Logs(DeferredArgs<logs::Logs>),
    /// Attach to a task and print its output
    Attach(DeferredArgs<attach::Attach>),
    /// List queues, or change one
    Queue(DeferredArgs<queue::Queue>),
    /// Print events
    Events(DeferredArgs<events::Events>),
    /// Delete finished tasks and their output
    Rm(DeferredArgs<rm::Rm>),
    /// Stop the daemon; its tasks keep running unless --stop-tasks is given
    Shutdown(DeferredArgs<shutdown::Shutdown>),
    /// Print a completion script for a shell
    Completions(DeferredArgs<completions::Completions>),
}

impl Command {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Serve(DeferredArgs(args)) => args.run(),
            Self::Completions(DeferredArgs(args)) => args.run(),
            Self::Start(DeferredArgs(args)) => block_on(args.run()),
            Self::Spawn(DeferredArgs(args)) => block_on(args.run()),
            Self::Run(DeferredArgs(args)) => block_on(args.run()),
            Self::Ps(DeferredArgs(args)) => block_on(args.run()),
            Self::Inspect(DeferredArgs(args)) => block_on(args.run()),
            Self::Cancel(DeferredArgs(args)) => block_on(args.run()),
            Self::Detach(DeferredArgs(args)) => block_on(args.run()),
            Self::Wait(DeferredArgs(args)) => block_on(args.run()),
            Self::Logs(DeferredArgs(args)) => block_on(args.run()),
            Self::Attach(DeferredArgs(args)) => block_on(args.run()),
            Self::Queue(DeferredArgs(args)) => block_on(args.run()),
            Self::Events(DeferredArgs(args)) => block_on(args.run()),
            Self::Rm(DeferredArgs(args)) => block_on(args.run()),
            Self::Shutdown(DeferredArgs(args)) => block_on(args.run()),
        }
    }
}

/// Runs a client command on one thread: it has one connection, and more threads would only take time to
/// start. Not inlined, since the caller's frame would have room for the future of every command.
#[inline(never)]
fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::setup)?;
    let result = runtime.block_on(command);
    // The process is about to exit: dropping the runtime would only take time.
    std::mem::forget(runtime);
    result
}
