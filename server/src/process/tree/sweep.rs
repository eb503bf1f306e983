//! Finding and killing a task's processes without its shim: by its cgroup, by the environment tag that
//! every process of it inherits, and by the session of its leader while that lives.
//!
//! This is the last resort. It cannot find a process that is in no cgroup, has cleared its environment,
//! and has left the session of a leader that is gone; a live shim can. Nothing is signalled by its pid
//! alone: a descriptor pins each process first, and then it is checked again.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::Signal,
};
use tokio::{sync::Mutex, task::spawn_blocking};

use super::{
    pidfd_open, pidfd_signal,
    procfs::{self, all_pids},
    survivor,
};
use crate::{
    process::{containment, launch::ENVIRONMENT_TAG},
    task::{Survivor, TaskUid},
};

/// The pause between two searches while killed processes die.
const STEP: Duration = Duration::from_millis(2);

/// The task to search for.
#[derive(Debug, Clone)]
pub(crate) struct SweepTarget {
    pub(crate) uid: TaskUid,
    pub(crate) cgroup: Option<PathBuf>,
    /// The leader, if its pid is of this boot.
    pub(crate) leader: Option<LeaderId>,
    /// The pid of the live shim, which is tagged too and must not be killed.
    pub(crate) spared: Option<u32>,
}

/// A leader's identity within one boot. Its session has the same number as its pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaderId {
    pub(crate) pid: u32,
    /// The start time in clock ticks since boot.
    pub(crate) start_ticks: u64,
}

/// The result of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Swept {
    /// The tree is proven empty; this many processes were found and killed.
    Gone { found: usize },
    /// The tree is not empty; these were seen last.
    NotGone(Vec<Survivor>),
}

/// Sweeps tasks. One scan of all processes serves every caller that waits for one.
#[derive(Debug, Default)]
pub(crate) struct Sweeper(Mutex<Option<Arc<TagScan>>>);

/// A found process, and the descriptor that pins it unless it is in the cgroup.
type Member = (i32, Option<OwnedFd>);

/// All tagged processes.
#[derive(Debug)]
struct TagScan {
    began: Instant,
    tagged: HashMap<TaskUid, Vec<i32>>,
}

impl Sweeper {
    /// Counts the live processes of a task and touches none.
    pub(crate) async fn count(&self, target: &SweepTarget) -> io::Result<usize> {
        for _ in 0..target.searches() {
            let found = self.find(target).await?;
            if !found.is_empty() {
                return Ok(found.len());
            }
        }
        Ok(0)
    }

    /// Kills the processes of a task until none is found and none that was killed is left, or until the
    /// time is over. An error means that the search failed, which proves nothing.
    pub(crate) async fn sweep(&self, target: &SweepTarget, within: Duration) -> io::Result<Swept> {
        let deadline = Instant::now() + within;
        let mut all = HashSet::new();
        let mut dying = Dying::default();
        let mut empty = 0;
        loop {
            let found = self.find(target).await?;
            all.extend(found.iter().map(|(pid, _)| *pid));
            if found.is_empty() && dying.all_gone() {
                empty += 1;
            } else {
                empty = 0;
                if let (false, Some(cgroup)) = (found.is_empty(), target.cgroup.clone()) {
                    spawn_blocking(move || containment::kill(&cgroup)).await?;
                }
                dying.kill(found, target);
            }
            if empty == target.searches() {
                if let Some(cgroup) = &target.cgroup {
                    containment::remove_tree(cgroup);
                }
                return Ok(Swept::Gone { found: all.len() });
            }
            if Instant::now() >= deadline {
                let left = all.iter().filter(|pid| procfs::is_alive(**pid));
                let left = left.filter_map(|pid| survivor(*pid));
                return Ok(Swept::NotGone(left.collect()));
            }
            if empty == 0 {
                tokio::time::sleep(STEP).await;
            }
        }
    }

    async fn find(&self, target: &SweepTarget) -> io::Result<Vec<Member>> {
        let scan = self.scan(Instant::now()).await?;
        let target = target.clone();
        spawn_blocking(move || target.find(&scan)).await?
    }

    /// Returns a scan that began no earlier than `since`. Callers that come during a scan wait for it,
    /// and then share the next one.
    async fn scan(&self, since: Instant) -> io::Result<Arc<TagScan>> {
        let mut latest = self.0.lock().await;
        if let Some(scan) = latest.as_ref().filter(|scan| scan.began >= since) {
            return Ok(Arc::clone(scan));
        }
        let scan = Arc::new(spawn_blocking(TagScan::take).await??);
        *latest = Some(Arc::clone(&scan));
        Ok(scan)
    }
}

/// Killed processes that may not be gone yet. A second search may miss them, because what they were found
/// by can go before they do.
#[derive(Default)]
struct Dying(Vec<OwnedFd>);

impl Dying {
    /// Kills the found processes. The leader is killed last and stopped until then: while it exists, its
    /// session's number cannot be reused.
    fn kill(&mut self, found: Vec<Member>, target: &SweepTarget) {
        let is_leader = |pid: i32| target.leader.is_some_and(|leader| leader.pid as i32 == pid);
        let leader_is_alone = found.iter().all(|(pid, _)| is_leader(*pid));
        for (pid, pidfd) in found {
            let Some(pidfd) = pidfd else { continue };
            let signal = match is_leader(pid) && !leader_is_alone {
                true => Signal::SIGSTOP,
                false => Signal::SIGKILL,
            };
            // An error means that the process is gone.
            let _ = pidfd_signal(&pidfd, signal);
            self.0.push(pidfd);
        }
    }

    /// Returns whether all are gone. A process's descriptor becomes readable when it ends.
    fn all_gone(&mut self) -> bool {
        self.0.retain(|pidfd| {
            let mut polls = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            !matches!(poll(&mut polls, PollTimeout::ZERO), Ok(1..))
        });
        self.0.is_empty()
    }
}

impl TagScan {
    fn take() -> io::Result<Self> {
        let began = Instant::now();
        let mut tagged: HashMap<TaskUid, Vec<i32>> = HashMap::new();
        for pid in all_pids()? {
            for uid in tags(pid) {
                tagged.entry(uid).or_default().push(pid);
            }
        }
        Ok(Self { began, tagged })
    }
}

impl SweepTarget {
    /// The number of consecutive searches that must find nothing. Without a cgroup a search can miss a
    /// process that is created behind it; if the shim has reported that it has no child, one is enough.
    fn searches(&self) -> u32 {
        match (&self.cgroup, self.spared) {
            (None, None) => 2,
            (Some(_), _) | (_, Some(_)) => 1,
        }
    }

    /// Returns the live processes.
    fn find(&self, scan: &TagScan) -> io::Result<Vec<Member>> {
        let mut found = HashMap::new();
        if let Some(cgroup) = &self.cgroup {
            found.extend(
                containment::members(cgroup)?
                    .into_iter()
                    .map(|pid| (pid, None)),
            );
        }
        let mut pin = |pid: i32, is_ours: &dyn Fn() -> bool| {
            let spared = self.spared.is_some_and(|shim| shim as i32 == pid);
            if let (false, Ok(pidfd)) = (spared || found.contains_key(&pid), pidfd_open(pid))
                // Checked again while the descriptor pins it: the pid may have been reused.
                && is_ours()
            {
                found.insert(pid, Some(pidfd));
            }
        };
        for pid in scan.tagged.get(&self.uid).into_iter().flatten() {
            pin(*pid, &|| {
                tags(*pid).contains(&self.uid) && procfs::is_alive(*pid)
            });
        }
        if let Some(leader) = self.leader {
            for pid in leader.session()? {
                // While the leader exists, its session's number cannot be reused.
                pin(pid, &|| {
                    procfs::session_of(pid) == Some(leader.pid as i32) && leader.is_alive()
                });
            }
        }
        Ok(found.into_iter().collect())
    }
}

impl LeaderId {
    fn is_alive(self) -> bool {
        procfs::is_alive_since(self.pid as i32, self.start_ticks)
    }

    /// Returns the pids of the leader's session; none once the leader is gone.
    fn session(self) -> io::Result<Vec<i32>> {
        if !self.is_alive() {
            return Ok(Vec::new());
        }
        let session = self.pid as i32;
        Ok(all_pids()?
            .filter(|pid| procfs::session_of(*pid) == Some(session))
            .collect())
    }
}

/// Returns the tasks that a process is tagged with: one, unless its environment was changed.
fn tags(pid: i32) -> Vec<TaskUid> {
    // Unreadable if the process is gone or another user's: then it is not a task's.
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let uid = |entry: &[u8]| {
        let value = entry
            .strip_prefix(ENVIRONMENT_TAG.as_bytes())?
            .strip_prefix(b"=")?;
        uuid::Uuid::try_parse_ascii(value).ok().map(TaskUid)
    };
    environ.split(|byte| *byte == 0).filter_map(uid).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper(uid: TaskUid) -> Child {
        Command::new("sleep")
            .arg("60")
            .env(ENVIRONMENT_TAG, uid.to_string())
            .stdin(Stdio::null())
            .spawn()
            .expect("a sleep")
    }

    fn target(uid: TaskUid) -> SweepTarget {
        SweepTarget {
            uid,
            cgroup: None,
            leader: None,
            spared: None,
        }
    }

    #[tokio::test]
    async fn only_processes_with_the_tasks_tag_are_killed() {
        let (ours, other) = (TaskUid::new(), TaskUid::new());
        let (mut child, mut bystander) = (sleeper(ours), sleeper(other));
        let sweeper = Sweeper::default();
        let target = target(ours);
        // The tag is there once the program runs.
        while sweeper.count(&target).await.expect("a /proc") == 0 {
            tokio::task::yield_now().await;
        }
        let swept = sweeper.sweep(&target, Duration::from_secs(10)).await;
        let swept = swept.expect("a /proc");
        assert_eq!(swept, Swept::Gone { found: 1 });
        assert!(!child.wait().expect("a child").success());
        assert!(bystander.try_wait().expect("a child").is_none());
        bystander.kill().expect("it lives");
        bystander.wait().expect("a child");
    }

    #[tokio::test]
    async fn a_leader_with_another_start_time_is_not_killed() {
        let mut child = sleeper(TaskUid::new());
        let pid = child.id();
        let leader = LeaderId {
            pid,
            start_ticks: 1,
        };
        let target = SweepTarget {
            leader: Some(leader),
            ..target(TaskUid::new())
        };
        let swept = Sweeper::default()
            .sweep(&target, Duration::from_secs(10))
            .await
            .expect("a /proc");
        assert_eq!(swept, Swept::Gone { found: 0 });
        assert!(child.try_wait().expect("a child").is_none());
        child.kill().expect("it lives");
        child.wait().expect("a child");
    }
}
