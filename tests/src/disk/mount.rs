//! Mounts that only the test's thread and its children see.

use std::process::Command;

use nix::sched::{CloneFlags, unshare};

use crate::skipped;

/// Gives the calling thread a mount namespace of its own, which its children inherit. Returns false,
/// after reporting a skip, where the user may not mount.
pub(crate) fn own_mounts() -> bool {
    if !nix::unistd::geteuid().is_root() {
        // Not `skipped`: CI cannot help it, short of running as root.
        eprintln!("SKIPPED: only root can mount a disk");
        return false;
    }
    if let Err(error) = unshare(CloneFlags::CLONE_NEWNS) {
        skipped(&format!("cannot unshare the mount namespace: {error}"));
        return false;
    }
    run("mount", &["--make-rprivate", "/"]);
    true
}

pub(crate) fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
}
