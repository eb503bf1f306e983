//! Ends trees without a server: SIGTERM, a grace, then SIGKILL until no process is left.

use std::time::{Duration, Instant};

use rustix::process::Signal;
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
    signal_all(&below(shim), Signal::TERM);
    wait_until(GRACE, || below(shim).is_empty()).await;
    wait_until(KILL_LIMIT, || {
        let left = below(shim);
        signal_all(&left, Signal::KILL);
        left.is_empty()
    })
    .await;
    let left = below(shim);
    if left.is_empty() && !wait_until(SHIM_LIMIT, || !shim.is_alive()).await {
        shim.signal(Signal::KILL);
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

fn signal_all(processes: &[Process], signal: Signal) {
    for process in processes {
        process.signal(signal);
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
