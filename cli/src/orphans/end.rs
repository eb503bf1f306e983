//! Ends trees without a server: SIGTERM, a grace, then SIGKILL until no process is left.

use std::time::{Duration, Instant};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::time::sleep;

use super::{Orphan, ProcTable, Process};

const GRACE: Duration = Duration::from_secs(5);
/// Time limit of the kill.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// Time for a shim to record the end and to exit by itself.
const SHIM_LIMIT: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(20);

/// Ends the tree of a shim, then the shim. Returns the processes that are left.
pub(crate) async fn end(orphan: &Orphan) -> Vec<Process> {
    let shim = &orphan.root;
    signal_all(&below(shim), Signal::SIGTERM);
    wait_until(GRACE, || below(shim).is_empty()).await;
    wait_until(KILL_LIMIT, || {
        let left = below(shim);
        signal_all(&left, Signal::SIGKILL);
        left.is_empty()
    })
    .await;
    let left = below(shim);
    if left.is_empty() && !wait_until(SHIM_LIMIT, || !shim.is_alive()).await {
        signal(shim, Signal::SIGKILL);
        wait_until(SHIM_LIMIT, || !shim.is_alive()).await;
    }
    let shim = Some(shim).filter(|shim| shim.is_alive()).cloned();
    left.into_iter().chain(shim).collect()
}

/// The tree below a shim at this moment.
fn below(shim: &Process) -> Vec<Process> {
    let table = ProcTable::read();
    let below = table.processes().filter(|one| table.is_below(one, shim));
    below.cloned().collect()
}

fn signal_all(processes: &[Process], wanted: Signal) {
    for process in processes {
        signal(process, wanted);
    }
}

/// Signals the process, if it is still the same one.
fn signal(process: &Process, signal: Signal) {
    if process.is_alive() {
        // It may have exited by now.
        let _ = kill(Pid::from_raw(process.pid), signal);
    }
}

/// Returns whether the condition was met in time.
async fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        sleep(STEP).await;
    }
}
