//! The floor of a cancel: a brood in a bare cgroup, one write, and the kernel's report that it is empty.
//!
//! It runs in a process of its own, which inherits the orphans and reaps them all the time: zombies of
//! runaway lineages would use up every pid.

use std::{
    path::Path,
    process::{self, Command},
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::{prctl, wait::wait},
};

use super::{Kind, Leash};
use crate::{Result, floor::cgroup, measured::program};

/// Prints the time in microseconds, and true if no process is left.
pub(super) fn run(kind: Kind) -> Result {
    prctl::set_child_subreaper(true)?;
    let dir = tempfile::Builder::new().prefix("heeler-bench-").tempdir()?;
    let mut leash = Leash::make(dir.path().join("leash"))?;
    let cage = cgroup::make(&format!("heeler-bench-{}", process::id()))?;
    let killed = breed_and_kill(kind, &mut leash, &cage);
    if killed.is_err() {
        let _ = cgroup::kill(&cage);
    }
    cgroup::remove(&cage);
    println!("{} {}", killed?.as_micros(), leash.is_loose()?);
    Ok(())
}

fn breed_and_kill(kind: Kind, leash: &mut Leash, cage: &Path) -> Result<Duration> {
    let mut brood = Command::new(program::own()?);
    brood.args(["role", "caged-brood", kind.name()]);
    brood.arg(leash.path()).arg(cage).spawn()?;
    // There is a child as long as the brood lives.
    let reaper = thread::spawn(|| while wait() != Err(Errno::ECHILD) {});
    leash.wait_for_all()?;
    let took = cgroup::kill(cage)?;
    reaper.join().map_err(|_| "the reaper has failed")?;
    Ok(took)
}
