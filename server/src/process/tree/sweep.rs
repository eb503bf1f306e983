//! Finding and killing a task's processes without its shim: by its cgroup, by the two marks that every
//! process of it inherits, and by the session of its leader while that lives.
//!
//! The marks are the environment tag and the limit tag. A process is found by either of them. It is not
//! found if it is in no cgroup of the task, has lost both marks, and has left the session of a leader
//! that is gone; a live shim can find such a process, unless it has also left the shim's descendants.
//!
//! Nothing is signalled by its pid alone: a descriptor pins each process first, and then it is checked
//! again. A process is dead when its descriptor says so, and not when /proc shows a zombie: its first
//! thread may have ended before the others.
//!
//! | module | owns |
//! | --- | --- |
//! | `worker` | the thread that does all searches |
//! | `search` | the search for one task's processes, their kill, and the chase of fork chains |
//! | `look` | one look at all processes of the machine |
//! | `marks` | the marks of one process |
//! | `struck` | the processes that were killed and may not be dead yet |

mod look;
mod marks;
mod search;
mod struck;
mod worker;

#[cfg(test)]
mod tests;

use std::{
    io,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use tokio::sync::{mpsc, oneshot};

pub(super) use marks::Marks;

use crate::task::{Survivor, TaskUid};
use search::{Purpose, Search};

/// The searches that may wait for the thread; further callers wait for a place.
const QUEUE: usize = 256;
/// The time after which a search is given up by its caller. A round of a sweep takes a second.
const LONGEST_SEARCH: Duration = Duration::from_secs(10);

/// The task to search for.
#[derive(Debug, Clone)]
pub(crate) struct SweepTarget {
    pub(crate) uid: TaskUid,
    pub(crate) cgroup: Option<PathBuf>,
    /// The leader, if its pid is of this boot.
    pub(crate) leader: Option<LeaderId>,
    /// The pid of a shim that has reported that it has no child. It is never killed.
    pub(crate) spared: Option<u32>,
}

/// The marks that a sweep searches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchedMarks {
    /// The limit tag, which is read in a fraction of the time.
    LimitTag,
    /// The environment tag as well.
    Both,
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
    /// The search finds no process any more; this many were found and killed.
    Gone { found: usize },
    /// The tree is not known to be empty. At least one process, as seen last.
    NotGone(Vec<Survivor>),
}

/// Sweeps tasks, on a thread that is started with the server: at the limit of processes a new one could
/// not be had. One look at all processes serves every search.
#[derive(Debug)]
pub(crate) struct Sweeper {
    work: mpsc::Sender<Work>,
    longest_search: Duration,
}

/// Work for the thread.
#[derive(Debug)]
enum Work {
    Search(Box<Search>),
    LookAhead(SearchedMarks),
}

impl Sweeper {
    pub(crate) fn start() -> io::Result<Self> {
        let (work, queue) = mpsc::channel(QUEUE);
        let thread = thread::Builder::new().name("sweeper".to_owned());
        // It ends when the sender is dropped, or with the process: a read of a process that hangs in
        // the kernel may never return.
        thread.spawn(move || worker::run(queue))?;
        Ok(Self {
            work,
            longest_search: LONGEST_SEARCH,
        })
    }

    /// Looks at all processes while others of the task are dying, so that a sweep that follows soon needs
    /// to look only at those that are newer.
    pub(crate) fn look_ahead(&self, marks: SearchedMarks) {
        // A thread that has so much to do looks at all processes anyway.
        let _ = self.work.try_send(Work::LookAhead(marks));
    }

    /// Counts the live processes of a task and touches none. If the count is not certain, it is not 0.
    pub(crate) async fn count(&self, target: &SweepTarget) -> io::Result<usize> {
        self.search(target, SearchedMarks::Both, Purpose::Count)
            .await
    }

    /// Kills the processes of a task until none is found and none that was killed is left, or until the
    /// time is over.
    pub(crate) async fn sweep(&self, target: &SweepTarget, within: Duration) -> io::Result<Swept> {
        self.sweep_by(target, SearchedMarks::Both, within).await
    }

    /// The same, for processes with these marks.
    pub(crate) async fn sweep_by(
        &self,
        target: &SweepTarget,
        marks: SearchedMarks,
        within: Duration,
    ) -> io::Result<Swept> {
        let deadline = Instant::now() + within;
        let kill = |reply| Purpose::Kill { deadline, reply };
        self.search(target, marks, kill).await
    }

    async fn search<T>(
        &self,
        target: &SweepTarget,
        marks: SearchedMarks,
        purpose: impl FnOnce(oneshot::Sender<T>) -> Purpose,
    ) -> io::Result<T> {
        let stopped = || io::Error::other("the search for processes has stopped");
        let (reply, answer) = oneshot::channel();
        let search = Search::new(target.clone(), marks, purpose(reply));
        let work = Work::Search(Box::new(search));
        self.work.send(work).await.map_err(|_| stopped())?;
        // The search may hang in the kernel; its caller must not.
        let answer = tokio::time::timeout(self.longest_search, answer).await;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the search for processes hangs");
        answer.map_err(late)?.map_err(|_| stopped())
    }
}
