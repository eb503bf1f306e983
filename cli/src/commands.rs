//! The subcommands, one file each.

mod about;
mod check;
pub(crate) mod daemon;
mod events;
mod follow;
mod inspect;
mod logs;
mod mcp;
mod ps;
mod queue;
mod report;
mod send;
mod sessions;
mod tasks;
mod top;

use clap::Subcommand;
use tokio::runtime;

use about::{completions, man, version};
use daemon::{dashboard, doctor, serve, shutdown, start};
use tasks::{attach, cancel, detach, kill, restart, rm, run, spawn, update, wait};

use crate::{
    args::{deferred_args::DeferredArgs, preset::PresetArgs},
    context::ClientArgs,
    exit::Exit,
    failure::Failure,
};

#[derive(Debug, Subcommand)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one value, and it is used at once"
)]
pub(crate) enum Command {
    /// Start a background task and print its id
    #[command(visible_alias = "add")]
    Spawn(DeferredArgs<spawn::Spawn>),
    /// Run a task in the foreground, with its output and exit code
    Run(DeferredArgs<run::Run>),
    /// List live tasks
    #[command(visible_aliases = ["ls", "list", "status"])]
    Ps(DeferredArgs<ps::Ps>),
    /// Show the live tasks on a screen, with the output of one
    Top(DeferredArgs<top::Top>),
    /// Show everything about tasks
    Inspect(DeferredArgs<inspect::Inspect>),
    /// Print the output of tasks
    #[command(visible_alias = "log")]
    Logs(DeferredArgs<logs::Logs>),
    /// Print the output of tasks until they finish: logs -f
    Follow(DeferredArgs<PresetArgs<follow::Follow>>),
    /// Attach to a task and print its output
    Attach(DeferredArgs<attach::Attach>),
    /// Move a foreground task to the background
    Detach(DeferredArgs<detach::Detach>),
    /// Wait until tasks are finished, out of the foreground, or have written a line
    Wait(DeferredArgs<wait::Wait>),
    /// Stop tasks and prove that nothing of them is left
    #[command(visible_alias = "stop")]
    Cancel(DeferredArgs<cancel::Cancel>),
    /// Kill tasks without a stop signal: cancel --force
    Kill(DeferredArgs<PresetArgs<kill::Kill>>),
    /// Stop a task and start the same command as a new task
    Restart(DeferredArgs<restart::Restart>),
    /// Send a message to the worker of a task
    Send(DeferredArgs<send::Send>),
    /// From inside a task: report its progress
    Report(DeferredArgs<report::Report>),
    /// From inside a task: exit with 10 if it has been asked to stop
    Check(DeferredArgs<check::Check>),
    /// Change the patterns that are looked for in a task's output
    Update(DeferredArgs<update::Update>),
    /// Delete finished tasks and their output
    Rm(DeferredArgs<rm::Rm>),
    /// List the sessions that have live tasks
    Sessions(DeferredArgs<sessions::Sessions>),
    /// List queues, or change one
    Queue(DeferredArgs<queue::Queue>),
    /// Print events
    Events(DeferredArgs<events::Events>),
    /// Show the tasks in a browser
    Dashboard(DeferredArgs<dashboard::Dashboard>),
    /// Serve the Model Context Protocol on stdin and stdout, for agents
    Mcp(DeferredArgs<mcp::Mcp>),
    /// Check the daemon, and find processes whose daemon is gone
    #[command(visible_alias = "info")]
    Doctor(DeferredArgs<doctor::Doctor>),
    /// Run the daemon in the foreground
    Serve(DeferredArgs<serve::Serve>),
    /// Start the daemon if it is not running, and print its address
    Start(DeferredArgs<start::Start>),
    /// Stop the daemon; its tasks keep running unless --stop-tasks is given
    Shutdown(DeferredArgs<shutdown::Shutdown>),
    /// Print a completion script for a shell
    Completions(DeferredArgs<completions::Completions>),
    /// Print a manual page
    Man(DeferredArgs<man::Man>),
    /// Print the version
    Version(DeferredArgs<version::Version>),
}

impl Command {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Serve(DeferredArgs(args)) => args.run(),
            Self::Completions(DeferredArgs(args)) => args.run(),
            Self::Man(DeferredArgs(args)) => args.run(),
            Self::Version(DeferredArgs(args)) => args.run(),
            Self::Start(DeferredArgs(args)) => block_on(args.run()),
            Self::Spawn(DeferredArgs(args)) => block_on(args.run()),
            Self::Run(DeferredArgs(args)) => block_on(args.run()),
            Self::Ps(DeferredArgs(args)) => block_on(args.run()),
            Self::Top(DeferredArgs(args)) => block_on(args.run()),
            Self::Inspect(DeferredArgs(args)) => block_on(args.run()),
            Self::Cancel(DeferredArgs(args)) => block_on(args.run()),
            Self::Kill(DeferredArgs(PresetArgs(args))) => block_on(args.forced()?.run()),
            Self::Restart(DeferredArgs(args)) => block_on(args.run()),
            Self::Detach(DeferredArgs(args)) => block_on(args.run()),
            Self::Send(DeferredArgs(args)) => block_on(args.run()),
            Self::Report(DeferredArgs(args)) => block_on(args.run()),
            Self::Check(DeferredArgs(args)) => block_on(args.run()),
            Self::Update(DeferredArgs(args)) => block_on(args.run()),
            Self::Wait(DeferredArgs(args)) => block_on(args.run()),
            Self::Logs(DeferredArgs(args)) => block_on(args.run()),
            Self::Follow(DeferredArgs(PresetArgs(args))) => block_on(args.following().run()),
            Self::Attach(DeferredArgs(args)) => block_on(args.run()),
            Self::Sessions(DeferredArgs(args)) => block_on(args.run()),
            Self::Queue(DeferredArgs(args)) => block_on(args.run()),
            Self::Events(DeferredArgs(args)) => block_on(args.run()),
            Self::Rm(DeferredArgs(args)) => block_on(args.run()),
            Self::Shutdown(DeferredArgs(args)) => block_on(args.run()),
            Self::Dashboard(DeferredArgs(args)) => block_on(args.run()),
            Self::Mcp(DeferredArgs(args)) => block_on(args.run()),
            Self::Doctor(DeferredArgs(args)) => block_on(args.run()),
        }
    }

    /// The flags of a client command.
    pub(crate) fn client_args(&self) -> Option<&ClientArgs> {
        match self {
            Self::Serve(_) | Self::Completions(_) | Self::Man(_) | Self::Version(_) => None,
            Self::Start(DeferredArgs(args)) => Some(&args.client),
            Self::Spawn(DeferredArgs(args)) => Some(&args.client),
            Self::Run(DeferredArgs(args)) => Some(&args.client),
            Self::Ps(DeferredArgs(args)) => Some(&args.client),
            Self::Top(DeferredArgs(args)) => Some(&args.client),
            Self::Inspect(DeferredArgs(args)) => Some(&args.client),
            Self::Cancel(DeferredArgs(args)) | Self::Kill(DeferredArgs(PresetArgs(args))) => {
                Some(&args.client)
            }
            Self::Restart(DeferredArgs(args)) => Some(&args.client),
            Self::Detach(DeferredArgs(args)) => Some(&args.client),
            Self::Send(DeferredArgs(args)) => Some(&args.client),
            Self::Report(DeferredArgs(args)) => Some(&args.client),
            Self::Check(DeferredArgs(args)) => Some(&args.client),
            Self::Update(DeferredArgs(args)) => Some(&args.client),
            Self::Wait(DeferredArgs(args)) => Some(&args.client),
            Self::Logs(DeferredArgs(args)) | Self::Follow(DeferredArgs(PresetArgs(args))) => {
                Some(&args.client)
            }
            Self::Attach(DeferredArgs(args)) => Some(&args.client),
            Self::Sessions(DeferredArgs(args)) => Some(&args.client),
            Self::Queue(DeferredArgs(args)) => Some(&args.client),
            Self::Events(DeferredArgs(args)) => Some(&args.client),
            Self::Rm(DeferredArgs(args)) => Some(&args.client),
            Self::Shutdown(DeferredArgs(args)) => Some(&args.client),
            Self::Dashboard(DeferredArgs(args)) => Some(&args.client),
            Self::Mcp(DeferredArgs(args)) => Some(&args.client),
            Self::Doctor(DeferredArgs(args)) => Some(&args.client),
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
