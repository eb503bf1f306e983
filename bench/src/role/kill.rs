//! The floor of a cancel: a brood in a bare cgroup, one write, and the kernel's word that it is empty.
//!
//! In a process of its own, which inherits the orphans and takes their statuses all the while: as
//! zombies, those of runaway lineages would use up every pid there is.

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
use crate::{Result, cgroup, program};

/// Prints how many microseconds it took, and whether nobody is left.
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
    // There is a child until the brood is gone.
    let reaper = thread::spawn(|| while wait() != Err(Errno::ECHILD) {});
    leash.wait_for_all()?;
    let took = cgroup::kill(cage)?;
    reaper.join().map_err(|_| "the reaper has failed")?;
    Ok(took)
}
