//! The subcommands, one file each, and which of them need a daemon.

mod cancel;
mod completions;
mod events;
mod inspect;
mod logs;
mod ps;
mod rm;
pub(crate) mod serve;
mod shutdown;
mod spawn;
mod wait;

use clap::Subcommand;
use tokio::runtime;

use crate::exit::{Exit, Failure};

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the daemon in the foreground
    Serve(serve::Serve),
    /// Start a background task and print its id
    Spawn(spawn::Spawn),
    /// List live tasks: running ones first, then newest first
    Ps(ps::Ps),
    /// Show one task whole
    Inspect(inspect::Inspect),
    /// Stop tasks, and wait for the proof that nothing of them is left
    Cancel(cancel::Cancel),
    /// Wait until tasks are over
    Wait(wait::Wait),
    /// Print what tasks have written
    Logs(logs::Logs),
    /// Print what has happened
    Events(events::Events),
    /// Forget finished tasks and delete their output
    Rm(rm::Rm),
    /// End the daemon, and leave its tasks running unless told to stop them
    Shutdown(shutdown::Shutdown),
    /// Print a script that completes arguments in a shell
    Completions(completions::Completions),
}

impl Command {
    /// Does it.
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Serve(args) => args.run(),
            Self::Completions(args) => args.run(),
            Self::Spawn(args) => block_on(args.run()),
            Self::Ps(args) => block_on(args.run()),
            Self::Inspect(args) => block_on(args.run()),
            Self::Cancel(args) => block_on(args.run()),
            Self::Wait(args) => block_on(args.run()),
            Self::Logs(args) => block_on(args.run()),
            Self::Events(args) => block_on(args.run()),
            Self::Rm(args) => block_on(args.run()),
            Self::Shutdown(args) => block_on(args.run()),
        }
    }
}

/// A client has one connection and waits for it: more threads would only take time to start.
fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Other(format!("cannot begin: {error}")))?;
    runtime.block_on(command)
}
