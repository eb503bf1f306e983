//! The measurements, one file each, in the order in which they run.

mod callers;
mod calls;
mod cancel;
mod capture;
mod command;
mod follow;
mod history;
mod input;
mod output;
mod restart;
mod size;
mod spawn_latency;
mod spawn_throughput;
mod watchers;
mod workers;

pub(crate) use callers::play as call_from_inside;

use crate::{Result, bench::Bench};

/// The names of the cases. Those that need many finished tasks come last, because these take a while to
/// create.
pub(crate) const NAMES: [&str; 15] = [
    "spawn_throughput",
    "spawn_latency",
    "command",
    "cancel",
    "capture",
    "follow",
    "output",
    "input",
    "watchers",
    "calls",
    "callers",
    "workers",
    "restart",
    "history",
    "size",
];

/// Runs a case.
pub(crate) async fn run(name: &str, bench: &Bench) -> Result {
    match name {
        "spawn_throughput" => spawn_throughput::run(bench).await,
        "spawn_latency" => spawn_latency::run(bench).await,
        "command" => command::run(bench).await,
        "cancel" => cancel::run(bench).await,
        "capture" => capture::run(bench).await,
        "follow" => follow::run(bench).await,
        "output" => output::run(bench).await,
        "input" => input::run(bench).await,
        "watchers" => watchers::run(bench).await,
        "calls" => calls::run(bench).await,
        "callers" => callers::run(bench).await,
        "workers" => workers::run(bench).await,
        "restart" => restart::run(bench).await,
        "history" => history::run(bench).await,
        "size" => size::run(bench).await,
        _ => Err(format!("{name} is no case").into()),
    }
}
