//! Finding a task's processes without its shim: by its cgroup, and by the mark in the environment
//! that every process of it was born with.
//!
//! The last rung. A process that has cleared its environment and is in no cgroup cannot be found
//! here; as long as the shim lives it does not have to be.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use super::{containment, environment::MARK, pidfd_open, pidfd_signal, tree};
use crate::task::{Survivor, TaskUid};

/// How long to wait between two looks while killed processes die.
const STEP: Duration = Duration::from_millis(2);

/// Where a task's processes may be.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Whose.
    pub uid: TaskUid,
    /// The task's cgroup.
    pub cgroup: Option<PathBuf>,
    /// The shim, which carries the mark too, if it is to be left alone.
    pub shim_pid: Option<u32>,
}

impl Sweep {
    /// Kills what it finds until it finds nothing, or until the time is over; returns who is left.
    /// An error says that it could not look, which is no proof of anything. Blocks.
    pub fn run(&self, within: Duration) -> io::Result<Vec<Survivor>> {
        let deadline = Instant::now() + within;
        loop {
            let found = self.pass()?;
            if found.is_empty() || Instant::now() >= deadline {
                if let (true, Some(cgroup)) = (found.is_empty(), &self.cgroup) {
                    containment::remove_tree(cgroup);
                }
                return Ok(found
                    .iter()
                    .filter_map(|pid| tree::survivor(*pid))
                    .collect());
            }
            std::thread::sleep(STEP);
        }
    }

    /// Kills everything that is there now, and says what that was.
    fn pass(&self) -> io::Result<Vec<i32>> {
        let mut found = Vec::new();
        if let Some(cgroup) = &self.cgroup {
            // Fails only where there is no such cgroup any more, or it cannot be listed either.
            let _ = fs::write(cgroup.join("cgroup.kill"), "1");
            found.extend(members(cgroup)?);
        }
        for pid in self.marked()? {
            let Ok(pidfd) = pidfd_open(pid) else { continue };
            // Looked at again now that the descriptor pins it: the number may have been reused.
            if self.is_marked(pid) && tree::is_alive(pid) {
                // A process that is gone by now is what we want.
                let _ = pidfd_signal(&pidfd, Signal::SIGKILL);
                found.push(pid);
            }
        }
        Ok(found)
    }

    fn marked(&self) -> io::Result<Vec<i32>> {
        let shim_pid = self.shim_pid.map(|pid| pid as i32);
        let others = tree::all_pids()?.filter(|pid| Some(*pid) != shim_pid);
        Ok(others.filter(|pid| self.is_marked(*pid)).collect())
    }

    fn is_marked(&self, pid: i32) -> bool {
        let mark = format!("{MARK}={}", self.uid);
        // Gone, or another user's: then it is none of ours.
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut entries = environ.split(|byte| *byte == 0);
        entries.any(|entry| entry == mark.as_bytes())
    }
}

fn members(cgroup: &Path) -> io::Result<Vec<i32>> {
    match fs::read_to_string(cgroup.join("cgroup.procs")) {
        Ok(procs) => Ok(procs.lines().filter_map(|line| line.parse().ok()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
