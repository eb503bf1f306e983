//! Finding a task's processes without its shim: by its cgroup, by the mark in the environment that
//! every process of it was born with, and by its leader, as long as that lives.
//!
//! The last rung. A process that is in no cgroup, has cleared its environment and has left the
//! session of a leader that is gone cannot be found here; as long as the shim lives it does not have
//! to be. Nothing is signalled by its number: a descriptor pins each process first, and then it is
//! looked at again.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::Signal,
};
use tokio::{sync::Mutex, task::spawn_blocking};

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
    /// The leader, if its number is one of this boot.
    pub leader: Option<LeaderId>,
    /// The shim, which carries the mark too, if it lives and is to be left alone.
    pub spared: Option<u32>,
}

/// A leader's identity within one boot: its session has the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderId {
    /// Its process id.
    pub pid: u32,
    /// Its start in clock ticks since boot.
    pub start_ticks: u64,
}

/// What a sweep has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swept {
    /// The tree is proven empty.
    Gone {
        /// How many processes were found, and killed.
        found: usize,
    },
    /// It is not, and these were seen last.
    NotGone(Vec<Survivor>),
}

/// Who looks for marks: one look at all processes serves everybody who waits for one.
#[derive(Debug, Default)]
pub struct Lookout(Mutex<Option<Arc<Census>>>);

/// A process that was found: what pins it, unless the cgroup does.
type Member = (i32, Option<OwnedFd>);

/// Every process that carries a mark.
#[derive(Debug)]
struct Census {
    began: Instant,
    marked: HashMap<TaskUid, Vec<i32>>,
}

impl Lookout {
    /// How many processes of a task are alive; none of them is touched.
    pub async fn count(&self, sweep: &Sweep) -> io::Result<usize> {
        for _ in 0..sweep.looks() {
            let found = self.find(sweep).await?;
            if !found.is_empty() {
                return Ok(found.len());
            }
        }
        Ok(0)
    }

    /// Kills what it finds until it finds nothing and nothing that it has struck is left, or until the
    /// time is over. An error says that it could not look, which is no proof of anything.
    pub async fn sweep(&self, sweep: &Sweep, within: Duration) -> io::Result<Swept> {
        let deadline = Instant::now() + within;
        let mut all = HashSet::new();
        let mut dying = Dying::default();
        let mut empty = 0;
        loop {
            let found = self.find(sweep).await?;
            all.extend(found.iter().map(|(pid, _)| *pid));
            if found.is_empty() && dying.is_over() {
                empty += 1;
            } else {
                empty = 0;
                if let (false, Some(cgroup)) = (found.is_empty(), sweep.cgroup.clone()) {
                    spawn_blocking(move || containment::kill(&cgroup)).await?;
                }
                dying.strike(found, sweep);
            }
            if empty == sweep.looks() {
                if let Some(cgroup) = &sweep.cgroup {
                    containment::remove_tree(cgroup);
                }
                return Ok(Swept::Gone { found: all.len() });
            }
            if Instant::now() >= deadline {
                let left = all.iter().filter(|pid| tree::is_alive(**pid));
                let left = left.filter_map(|pid| tree::survivor(*pid));
                return Ok(Swept::NotGone(left.collect()));
            }
            if empty == 0 {
                tokio::time::sleep(STEP).await;
            }
        }
    }

    async fn find(&self, sweep: &Sweep) -> io::Result<Vec<Member>> {
        let census = self.census(Instant::now()).await?;
        let sweep = sweep.clone();
        spawn_blocking(move || sweep.find(&census)).await?
    }

    /// A census that began no earlier than this. Those who come while one is being taken wait, and
    /// then share the next.
    async fn census(&self, since: Instant) -> io::Result<Arc<Census>> {
        let mut latest = self.0.lock().await;
        if let Some(census) = latest.as_ref().filter(|census| census.began >= since) {
            return Ok(Arc::clone(census));
        }
        let census = Arc::new(spawn_blocking(Census::take).await??);
        *latest = Some(Arc::clone(&census));
        Ok(census)
    }
}

/// Those that were struck and may not be gone yet. Some could not be found a second time: what they
/// were found by may have gone before them.
#[derive(Default)]
struct Dying(Vec<OwnedFd>);

impl Dying {
    /// Kills them. The leader comes last, and stands still until then: as long as it is there, its
    /// session can be told from another of the same number.
    fn strike(&mut self, found: Vec<Member>, sweep: &Sweep) {
        let is_leader = |pid: i32| sweep.leader.is_some_and(|leader| leader.pid as i32 == pid);
        let leader_is_alone = found.iter().all(|(pid, _)| is_leader(*pid));
        for (pid, pidfd) in found {
            let Some(pidfd) = pidfd else { continue };
            let signal = match is_leader(pid) && !leader_is_alone {
                true => Signal::SIGSTOP,
                false => Signal::SIGKILL,
            };
            // A process that is gone by now is what we want.
            let _ = pidfd_signal(&pidfd, signal);
            self.0.push(pidfd);
        }
    }

    /// Whether all are gone. A descriptor of a process is readable when the process is not.
    fn is_over(&mut self) -> bool {
        self.0.retain(|pidfd| {
            let mut polls = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            !matches!(poll(&mut polls, PollTimeout::ZERO), Ok(1..))
        });
        self.0.is_empty()
    }
}

impl Census {
    fn take() -> io::Result<Self> {
        let began = Instant::now();
        let mut marked: HashMap<TaskUid, Vec<i32>> = HashMap::new();
        for pid in tree::all_pids()? {
            for uid in marks(pid) {
                marked.entry(uid).or_default().push(pid);
            }
        }
        Ok(Self { began, marked })
    }
}

impl Sweep {
    /// How often in a row nobody must be found. Without a cgroup a look can miss a process that is
    /// born behind it; where the shim has said that it has no child, one look is enough.
    fn looks(&self) -> u32 {
        match (&self.cgroup, self.spared) {
            (None, None) => 2,
            (Some(_), _) | (_, Some(_)) => 1,
        }
    }

    /// Whoever is alive.
    fn find(&self, census: &Census) -> io::Result<Vec<Member>> {
        let mut found = HashMap::new();
        if let Some(cgroup) = &self.cgroup {
            found.extend(members(cgroup)?.into_iter().map(|pid| (pid, None)));
        }
        let mut pin = |pid: i32, is_ours: &dyn Fn() -> bool| {
            let spared = self.spared.is_some_and(|shim| shim as i32 == pid);
            if let (false, Ok(pidfd)) = (spared || found.contains_key(&pid), pidfd_open(pid))
                // Looked at again now that the descriptor pins it: the number may have been reused.
                && is_ours()
            {
                found.insert(pid, Some(pidfd));
            }
        };
        for pid in census.marked.get(&self.uid).into_iter().flatten() {
            pin(*pid, &|| {
                marks(*pid).contains(&self.uid) && tree::is_alive(*pid)
            });
        }
        if let Some(leader) = self.leader {
            for pid in leader.session()? {
                // As long as the leader is there, its number means no other session.
                pin(pid, &|| {
                    tree::session_of(pid) == Some(leader.pid as i32) && leader.is_alive()
                });
            }
        }
        Ok(found.into_iter().collect())
    }
}

impl LeaderId {
    fn is_alive(self) -> bool {
        tree::is_alive_since(self.pid as i32, self.start_ticks)
    }

    /// The leader and those of its session; nobody once it is gone.
    fn session(self) -> io::Result<Vec<i32>> {
        if !self.is_alive() {
            return Ok(Vec::new());
        }
        let session = self.pid as i32;
        Ok(tree::all_pids()?
            .filter(|pid| tree::session_of(*pid) == Some(session))
            .collect())
    }
}

/// The tasks that a process says it is of: one, unless it was made to say more.
fn marks(pid: i32) -> Vec<TaskUid> {
    // Gone, or another user's: then it is none of ours.
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let uid = |entry: &[u8]| {
        let value = entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?;
        uuid::Uuid::try_parse_ascii(value).ok().map(TaskUid)
    };
    environ.split(|byte| *byte == 0).filter_map(uid).collect()
}

/// Those in a cgroup and below it.
fn members(cgroup: &Path) -> io::Result<Vec<i32>> {
    let mut members = match fs::read_to_string(cgroup.join("cgroup.procs")) {
        Ok(procs) => procs.lines().filter_map(|line| line.parse().ok()).collect(),
        Err(error) if is_gone(&error) => Vec::new(),
        Err(error) => return Err(error),
    };
    for child in containment::children(cgroup) {
        members.extend(self::members(&child)?);
    }
    Ok(members)
}

/// A cgroup that is removed while it is read says so in its own way.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ENODEV)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper(uid: TaskUid) -> Child {
        Command::new("sleep")
            .arg("60")
            .env(MARK, uid.to_string())
            .stdin(Stdio::null())
            .spawn()
            .expect("a sleep")
    }

    fn sweep_for(uid: TaskUid) -> Sweep {
        Sweep {
            uid,
            cgroup: None,
            leader: None,
            spared: None,
        }
    }

    #[tokio::test]
    async fn a_marked_process_is_found_and_killed_and_another_is_not() {
        let (ours, other) = (TaskUid::new(), TaskUid::new());
        let (mut child, mut bystander) = (sleeper(ours), sleeper(other));
        let lookout = Lookout::default();
        let sweep = sweep_for(ours);
        // The mark is there once the program runs.
        while lookout.count(&sweep).await.expect("a /proc") == 0 {
            tokio::task::yield_now().await;
        }
        let swept = lookout.sweep(&sweep, Duration::from_secs(10)).await;
        let swept = swept.expect("a /proc");
        assert_eq!(swept, Swept::Gone { found: 1 });
        assert!(!child.wait().expect("a child").success());
        assert!(bystander.try_wait().expect("a child").is_none());
        bystander.kill().expect("it lives");
        bystander.wait().expect("a child");
    }

    #[tokio::test]
    async fn a_leader_that_began_at_another_time_is_not_ours() {
        let mut child = sleeper(TaskUid::new());
        let pid = child.id();
        let leader = LeaderId {
            pid,
            start_ticks: 1,
        };
        let sweep = Sweep {
            leader: Some(leader),
            ..sweep_for(TaskUid::new())
        };
        let swept = Lookout::default()
            .sweep(&sweep, Duration::from_secs(10))
            .await
            .expect("a /proc");
        assert_eq!(swept, Swept::Gone { found: 0 });
        assert!(child.try_wait().expect("a child").is_none());
        child.kill().expect("it lives");
        child.wait().expect("a child");
    }
}
