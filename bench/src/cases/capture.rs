//! The output rate of a task, against the same program that writes to a file: within its limit, and beyond
//! a small one, where nearly every byte takes the place of an older one.

use std::{
    fs::{self, File},
    process::{Command, Stdio},
    time::Instant,
};

use heeler_proto::v1::RemoveRequest;

use crate::{
    Result,
    bench::Bench,
    measured::{
        connection::Stub,
        daemon::{Containment, Daemon},
        program,
        tasks::{self, Ends},
    },
    result::{
        figures::{median, median_ratio, throughput},
        report::{Goal, Row},
    },
    tell,
};

const ROUNDS: usize = 7;

/// The size of a write, the number of writes, and the goal.
const SIZES: [(&str, usize, usize, Goal); 3] = [
    ("64 KiB", 64 << 10, 4096, Goal::at_least(0.35, 0.5)),
    ("4 KiB", 4 << 10, 32 << 10, Goal::at_least(1.0, 1.3)),
    ("100 B", 100, 400_000, Goal::at_least(0.9, 2.0)),
];

/// Limits that no output here reaches, and that nearly all of it is beyond.
pub(super) const NO_LIMIT: u64 = 1 << 40;
const SMALL_LIMIT: u64 = 4 << 20;

pub(super) async fn run(bench: &Bench) -> Result {
    let daemon = bench.daemon(Containment::Best).await?;
    for (name, size, count, goal) in SIZES {
        let (mut floors, mut figures, mut rotating) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            floors.push(to_file(&daemon, size, count)?);
            figures.push(to_daemon(&daemon, size, count, NO_LIMIT).await?);
            rotating.push(to_daemon(&daemon, size, count, SMALL_LIMIT).await?);
        }
        for (what, figures) in [("writes", figures), ("writes, rotating", rotating)] {
            tell(Row {
                what: format!("capture of {name} {what}; floor: > file"),
                figure: throughput(median(&figures)),
                floor: throughput(median(&floors)),
                value: median_ratio(&figures, &floors),
                goal: Some(goal),
            });
        }
    }
    daemon.end().await
}

/// Returns bytes per second.
fn to_file(daemon: &Daemon, size: usize, count: usize) -> Result<f64> {
    let path = daemon.path("out");
    let mut command = Command::new(program::own()?);
    command.args(["role", "write", &size.to_string(), &count.to_string()]);
    command.stdin(Stdio::null()).stdout(File::create(&path)?);
    let begun = Instant::now();
    let status = command.status()?;
    let took = begun.elapsed();
    fs::remove_file(path)?;
    match status.success() {
        true => Ok((size * count) as f64 / took.as_secs_f64()),
        false => Err(format!("{command:?}: {status}").into()),
    }
}

/// Returns bytes per second. Nothing stays on disk.
async fn to_daemon(daemon: &Daemon, size: usize, count: usize, limit: u64) -> Result<f64> {
    let (mut stub, ends) = (daemon.stub().await?, Ends::watch(&daemon.socket()).await?);
    let begun = Instant::now();
    let id = writer(&mut stub, size, count, limit).await?;
    ends.of(&id).await?;
    let took = begun.elapsed();
    remove(&mut stub, id).await?;
    Ok((size * count) as f64 / took.as_secs_f64())
}

/// Starts a task that writes.
pub(super) async fn writer(
    stub: &mut Stub,
    size: usize,
    count: usize,
    limit: u64,
) -> Result<String> {
    let own = program::own()?.display().to_string();
    let (size, count) = (size.to_string(), count.to_string());
    tasks::spawn_limited(stub, &[&own, "role", "write", &size, &count], limit).await
}

/// Removes a finished task and its output.
pub(super) async fn remove(stub: &mut Stub, id: String) -> Result {
    let filter = Some(tasks::named(id));
    stub.remove(RemoveRequest { filter }).await?;
    Ok(())
}
