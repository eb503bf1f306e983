//! The memory, including the kernel's, and the CPU time of an idle daemon and of each of its tasks.

use std::{collections::HashMap, time::Duration};

use nix::{
    sys::{
        signal::{Signal, kill},
        wait::waitpid,
    },
    unistd::Pid,
};

use crate::{
    Result,
    bench::Bench,
    floor::bare::Bare,
    measured::{
        daemon::Containment,
        process,
        program::TRUE,
        tasks::{self, Naming},
    },
    result::{
        figures::median,
        report::{Goal, Row},
    },
    tell,
};

/// Number of tasks that the total is divided by.
const SHARED_BY: usize = 500;
const LIVE: usize = 1000;
const ROUNDS: usize = 3;
const WARM_UP: usize = 1000;
/// A shim returns the memory of a burst after a second.
const SETTLE: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(5);

pub(super) async fn run(bench: &Bench) -> Result {
    per_task(bench).await?;
    let daemon = bench.daemon_on(bench.long_past().await?).await?;
    tasks::sleepers(&daemon.socket(), LIVE).await?;
    tokio::time::sleep(SETTLE).await;
    let what = "daemon, 1,000 live tasks and 100,000 finished: RSS";
    megabytes(
        what,
        process::rss(daemon.pid())?,
        Goal::bound(60.0, 30.0, "MB"),
    );
    let mut before: HashMap<i32, Duration> = HashMap::new();
    before.extend(
        daemon
            .shims()
            .into_iter()
            .map(|pid| (pid, process::cpu(pid))),
    );
    before.insert(daemon.pid(), process::cpu(daemon.pid()));
    tokio::time::sleep(IDLE).await;
    let used = process::cpu_since(&before);
    let percent = 100.0 * used.as_secs_f64() / IDLE.as_secs_f64();
    // A value below two digits is zero.
    let value = (percent * 100.0).round() / 100.0;
    tell(Row {
        what: format!("idle CPU of the daemon and {} shims", before.len() - 1),
        figure: format!("{percent:.3} %"),
        floor: String::new(),
        value,
        goal: Some(Goal::bound(0.3, 0.0, "%")),
    });
    daemon.end().await
}

async fn per_task(bench: &Bench) -> Result {
    let daemon = bench.daemon(Containment::Best).await?;
    tokio::time::sleep(SETTLE).await;
    megabytes(
        "daemon, idle: RSS",
        process::rss(daemon.pid())?,
        Goal::bound(15.0, 8.0, "MB"),
    );
    let (mut all_in, mut shares, mut own) = (Vec::new(), Vec::new(), Vec::new());
    // Its caches are filled first, because they are not a task's.
    tasks::throughput(&daemon.socket(), TRUE, Naming::Unnamed, WARM_UP).await?;
    // Once, because the daemon keeps the memory for the next round.
    let daemon_before = process::pss(daemon.pid())?;
    for _ in 0..ROUNDS {
        let bare = bare_kernel_memory().await?;
        let kernel = process::kernel_memory()?;
        tasks::sleepers(&daemon.socket(), SHARED_BY).await?;
        tokio::time::sleep(SETTLE).await;
        let kernel = process::kernel_memory()? as f64 - kernel as f64;
        let shims = daemon.shims();
        let pss = shims
            .iter()
            .map(|pid| process::pss(*pid))
            .sum::<Result<u64>>()? as f64;
        let grown = process::pss(daemon.pid())? as f64 - daemon_before as f64;
        let each = |bytes: f64| bytes / 1024.0 / shims.len() as f64;
        shares.push(each(pss));
        own.push(each(grown));
        all_in.push(each(pss + grown + kernel - bare));
        daemon.stop_tasks().await?;
    }
    daemon.end().await?;
    let row = |what: &str, values: &[f64], goal| Row {
        what: what.to_owned(),
        figure: format!("{:.1} KB", median(values)),
        floor: String::new(),
        value: median(values),
        goal,
    };
    tell(row(
        "shim, PSS",
        &shares,
        Some(Goal::bound(60.0, 25.0, "KB")),
    ));
    tell(row("a live task in the daemon, PSS", &own, None));
    let goal = Goal::bound(160.0, 110.0, "KB");
    tell(row(
        "a live task all in, kernel included, less a bare one",
        &all_in,
        Some(goal),
    ));
    Ok(())
}

/// The kernel's memory for the same number of bare processes.
async fn bare_kernel_memory() -> Result<f64> {
    let before = process::kernel_memory()?;
    let bare = Bare::new(&["/bin/sleep", "1000"])?;
    let mut sleepers = Sleepers(Vec::new());
    for _ in 0..SHARED_BY {
        sleepers.0.push(bare.spawn()?);
    }
    tokio::time::sleep(SETTLE).await;
    Ok(process::kernel_memory()? as f64 - before as f64)
}

/// Bare processes, which end with this value.
struct Sleepers(Vec<Pid>);

impl Drop for Sleepers {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill(*pid, Signal::SIGKILL);
        }
        for pid in &self.0 {
            let _ = waitpid(*pid, None);
        }
    }
}

fn megabytes(what: &str, bytes: u64, goal: Goal) {
    let value = bytes as f64 / f64::from(1 << 20);
    tell(Row {
        what: what.to_owned(),
        figure: format!("{value:.1} MB"),
        floor: String::new(),
        value,
        goal: Some(goal),
    });
}
