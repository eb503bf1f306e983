//! The checks and the clean-up at the end of a test.
//!
//! Live tasks are stopped through the API and the daemon is ended; then no process of the daemon and no
//! cgroup of a task may be left. After a failed test everything is removed by force.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use crate::{
    Api, DEADLINE, Daemon, Process, outcome::survivors, process, waiting::eventually_blocking,
};

/// The time limit for a shim to exit after the end of its task.
const SETTLE: Duration = Duration::from_secs(10);

impl Drop for Daemon {
    fn drop(&mut self) {
        let failed = std::thread::panicking();
        let mut problems = Vec::new();
        if !failed && self.child.is_some() {
            problems.extend(self.end().err());
        }
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let limit = if failed { Duration::ZERO } else { SETTLE };
        eventually_blocking(limit, || self.leftovers().is_empty());
        for process in self.leftovers() {
            problems.push(format!(
                "left behind: {} {}",
                process.pid,
                process.command()
            ));
        }
        self.kill_all();
        problems.extend(self.remove_cgroups(limit));
        let log = self.log();
        if !failed && let Err(error) = fs::remove_dir_all(self.dir.path()) {
            let dir = self.dir.path().display();
            problems.push(format!("left behind: {dir}, {error}"));
        }
        if failed {
            eprintln!("--- the daemon's log:\n{log}---\n{problems:#?}");
        } else {
            assert!(
                problems.is_empty(),
                "{problems:#?}\n--- the daemon's log:\n{log}"
            );
        }
    }
}

impl Daemon {
    /// Every process of its tasks, shims included.
    pub fn processes(&self) -> Vec<Process> {
        let own = self.child.as_ref().map(|child| child.id() as i32);
        let all = process::belonging_to(self.dir.path(), &self.address());
        let beside = |process: &Process| {
            Some(process.pid) == own || process.is_idle_shim(own, &self.state_dir().join("tasks"))
        };
        all.into_iter().filter(|process| !beside(process)).collect()
    }

    /// Every process of its tasks, and the idle shims, which end with the daemon.
    fn leftovers(&self) -> Vec<Process> {
        let mut all = self.processes();
        all.extend(process::shims_of(&self.state_dir().join("tasks")));
        all
    }

    /// Waits until no process of its tasks is left.
    pub async fn no_processes(&self) {
        crate::eventually("no process of this daemon", || self.processes().is_empty()).await;
    }

    fn end(&mut self) -> Result<(), String> {
        stop_tasks(self.address())?;
        let pid = self.pid();
        if !eventually_blocking(SETTLE, || process::zombies_of(pid).is_empty()) {
            return Err(format!(
                "zombies of the daemon: {:?}",
                process::zombies_of(pid)
            ));
        }
        Process::now(pid)
            .ok_or("the daemon is gone")?
            .signal(Signal::SIGTERM);
        match self.exited(DEADLINE) {
            Some(status) if status.code() == Some(0) => Ok(()),
            Some(status) => Err(format!("the daemon ended with {status}")),
            None => Err("the daemon ignored SIGTERM".to_owned()),
        }
    }

    fn kill_all(&self) {
        let end = Instant::now() + DEADLINE;
        loop {
            let left = self.leftovers();
            if left.is_empty() || Instant::now() > end {
                return;
            }
            for process in left {
                process.signal(Signal::SIGKILL);
            }
        }
    }

    /// Removes the cgroups of its tasks, and reports those that were left.
    fn remove_cgroups(&self, limit: Duration) -> Vec<String> {
        let Some(root) = self.cgroup_root() else {
            return Vec::new();
        };
        let tasks: Vec<OsString> = below(&self.path("state/tasks"))
            .iter()
            .flat_map(|part| below(part))
            .filter_map(|file| file.file_name().map(OsStr::to_owned))
            .collect();
        let own = || {
            let mut leaves = below(&root);
            leaves.retain(|leaf| {
                leaf.is_dir()
                    && leaf
                        .file_name()
                        .is_some_and(|id| tasks.iter().any(|own| own == id))
            });
            leaves
        };
        eventually_blocking(limit, || own().is_empty());
        let left = own();
        for leaf in &left {
            let _ = fs::write(leaf.join("cgroup.kill"), "1");
            eventually_blocking(SETTLE, || fs::remove_dir(leaf).is_ok() || !leaf.exists());
        }
        let _ = fs::remove_dir(&root);
        left.iter()
            .map(|leaf| format!("left behind: {}", leaf.display()))
            .collect()
    }

    /// The cgroup of its tasks, if it has one. Its name is made from the epoch.
    pub fn cgroup_root(&self) -> Option<PathBuf> {
        let id = self.epoch.as_ref()?.replace('-', "");
        let ours = |path: &PathBuf| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let rest = name
                .strip_prefix("heeler-")
                .unwrap_or_default()
                .replace('-', "");
            !rest.is_empty() && id.starts_with(&rest)
        };
        below(&super::containment::own_cgroup()?)
            .into_iter()
            .find(ours)
    }
}

fn below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Stops every task, on a thread of its own: a runtime cannot be blocked on from within.
fn stop_tasks(address: String) -> Result<(), String> {
    let stop = async move {
        let api = Api::connect(&address)
            .await
            .map_err(|error| error.to_string())?;
        let answer = api
            .stop_everything()
            .await
            .map_err(|status| format!("{status:?}"))?;
        let tasks = answer.results.iter().filter_map(|one| one.task.as_ref());
        match tasks.flat_map(survivors).next() {
            Some(survivor) => Err(format!("a survivor: {survivor:?}")),
            None => Ok(()),
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let thread = std::thread::spawn(move || runtime.block_on(stop));
    thread
        .join()
        .unwrap_or_else(|_| Err("stopping the tasks panicked".to_owned()))
}
