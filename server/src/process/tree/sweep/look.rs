//! One look at all processes of the machine.
//!
//! Processes that fork and exit without pause could pass behind a list that is read from the first pid
//! to the last. So a look ends by trying the pids that were assigned meanwhile, until none is assigned
//! during such a pass. Within it the pids are tried in the order in which they were assigned: a process
//! that is being created cannot be seen yet, but its parent, which has an earlier pid, can.
//!
//! If other processes fork all the time, every pass tries the newest pids once more. A chain that is
//! there is then missed only if each of dozens of passes happens to come between two of its links.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

use super::{
    super::procfs::all_pids,
    SearchedMarks,
    marks::{Marks, TaskMarks},
};

/// The most pids that one pass tries, the newest: of a chain only the last link is alive, and a pass
/// must be short.
const LARGEST_PASS: u32 = 256;
/// The pids assigned just before a pass that it tries once more: their processes may have been about to
/// be created.
const TRIED_AGAIN: u32 = 32;
/// The most pids that were assigned since a look that was taken ahead: beyond them, a new one is as good.
const MOST_NEWER: u32 = 512;
/// The age up to which such a look is continued: within it the pids cannot be assigned once around, after
/// which few would seem to be newer.
pub(super) const OLDEST_AHEAD: Duration = Duration::from_millis(100);
/// The most passes of one look.
const PASSES: usize = 64;

/// All processes, and the marks of those that have one.
#[derive(Debug)]
pub(super) struct Look {
    /// The pids of all processes; none if the look continues another one.
    pub(super) pids: Vec<i32>,
    marked: Vec<(i32, Marks)>,
    /// False if the processes could not be listed.
    pub(super) is_complete: bool,
}

impl Look {
    pub(super) fn take(searched: SearchedMarks, newest: &NewestPids) -> Self {
        let before = newest.latest();
        let (pids, is_listed): (Vec<i32>, bool) = match all_pids() {
            Ok(pids) => (pids.collect(), true),
            Err(error) => {
                tracing::error!(%error, "cannot list the processes");
                (Vec::new(), false)
            }
        };
        let mut look = Self {
            marked: Vec::new(),
            pids,
            is_complete: is_listed,
        };
        for index in 0..look.pids.len() {
            look.add(look.pids[index], reading(searched));
        }
        look.follow(newest, before);
        look
    }

    /// Adds a process if it may be of a task.
    fn add(&mut self, pid: i32, read: fn(i32) -> Marks) {
        let marks = read(pid);
        if marks.are_there() {
            self.marked.push((pid, marks));
        }
    }

    /// The pids of the processes that have a mark of the task. Some may be threads, and some gone.
    pub(super) fn of_task(&self, task: &TaskMarks) -> impl Iterator<Item = i32> {
        let ours = self.marked.iter().filter(|(_, marks)| marks.are_of(task));
        ours.map(|(pid, _)| *pid)
    }

    /// Tries the pids assigned since `before`.
    fn follow(&mut self, newest: &NewestPids, mut before: Option<u32>) {
        for _ in 0..PASSES {
            // Without the latest pid there is only the list.
            let (Some(from), Some(latest)) = (before, newest.latest()) else {
                return;
            };
            let count = newest.distance(from, latest) + TRIED_AGAIN;
            newest.each_up_to(latest, count.min(LARGEST_PASS), |pid| {
                self.add(pid, Marks::limit_of);
            });
            if newest.latest() == Some(latest) {
                return;
            }
            before = Some(latest);
        }
    }
}

/// Returns the way to read the searched marks of a process.
fn reading(searched: SearchedMarks) -> fn(i32) -> Marks {
    match searched {
        SearchedMarks::Both => Marks::of,
        SearchedMarks::LimitTag => Marks::limit_of,
    }
}

/// A look that was taken ahead of its need. A descendant has its task's marks from the moment of its fork, so
/// only the processes that had marks, and those that are newer, have to be looked at again.
#[derive(Debug)]
pub(super) struct Ahead {
    searched: SearchedMarks,
    began: Instant,
    /// The pid that was assigned last before the look.
    before: u32,
    marked: Vec<i32>,
}

impl Ahead {
    /// Looks at all processes; `None` if that cannot be continued.
    pub(super) fn take(searched: SearchedMarks, newest: &NewestPids) -> Option<Self> {
        let began = Instant::now();
        let before = newest.latest()?;
        let look = Look::take(searched, newest);
        let marked = look.marked.iter().map(|(pid, _)| *pid).collect();
        look.is_complete.then_some(Self {
            searched,
            began,
            before,
            marked,
        })
    }

    fn includes(&self, searched: SearchedMarks) -> bool {
        match (self.searched, searched) {
            (SearchedMarks::LimitTag, SearchedMarks::Both) => false,
            (SearchedMarks::Both, _) | (SearchedMarks::LimitTag, SearchedMarks::LimitTag) => true,
        }
    }

    /// Looks at the processes that had marks, and at the newer ones; `None` if there are too many or may be.
    pub(super) fn continued(&self, searched: SearchedMarks, newest: &NewestPids) -> Option<Look> {
        let latest = newest.latest()?;
        let newer = newest.distance(self.before, latest) + TRIED_AGAIN;
        let is_old = self.began.elapsed() > OLDEST_AHEAD;
        if is_old || newer > MOST_NEWER || !self.includes(searched) {
            return None;
        }
        let mut look = Look {
            pids: Vec::new(),
            marked: Vec::new(),
            is_complete: true,
        };
        let read = reading(searched);
        for pid in &self.marked {
            look.add(*pid, read);
        }
        newest.each_up_to(latest, newer, |pid| look.add(pid, read));
        look.follow(newest, Some(latest));
        Some(look)
    }
}

/// The most recently assigned pids.
#[derive(Debug)]
pub(super) struct NewestPids {
    /// `/proc/loadavg`, whose last field is the latest pid.
    load: Option<File>,
    /// One more than the largest pid.
    limit: u32,
}

impl NewestPids {
    pub(super) fn of_kernel() -> Self {
        let limit = std::fs::read_to_string("/proc/sys/kernel/pid_max").ok();
        Self {
            load: File::open("/proc/loadavg").ok(),
            limit: limit
                .and_then(|limit| limit.trim().parse().ok())
                .unwrap_or(1 << 15),
        }
    }

    /// Returns the pid that was assigned last.
    pub(super) fn latest(&self) -> Option<u32> {
        let mut buffer = [0; 64];
        let len = self.load.as_ref()?.read_at(&mut buffer, 0).ok()?;
        let text = str::from_utf8(buffer.get(..len)?).ok()?;
        let pid = text.split_ascii_whitespace().next_back()?.parse().ok()?;
        (pid < self.limit).then_some(pid)
    }

    /// Returns the number of pids assigned from one to another. Pids wrap around.
    fn distance(&self, from: u32, to: u32) -> u32 {
        match to.checked_sub(from) {
            Some(distance) => distance,
            None => to + self.limit.saturating_sub(from),
        }
    }

    /// Passes the `count` latest pids to `each`, in the order in which they were assigned.
    fn each_up_to(&self, latest: u32, count: u32, each: impl FnMut(i32)) {
        let back = (0..count.min(self.limit)).rev();
        back.filter_map(|back| self.before(latest, back))
            .for_each(each);
    }

    /// Passes the `count` latest pids to `each`, the latest first.
    pub(super) fn each_down_from(&self, latest: u32, count: u32, each: impl FnMut(i32)) {
        let back = 0..count.min(self.limit);
        back.filter_map(|back| self.before(latest, back))
            .for_each(each);
    }

    /// The pid assigned this many pids before another; `None` for 0, which is no pid.
    fn before(&self, latest: u32, back: u32) -> Option<i32> {
        let pid = match latest.checked_sub(back) {
            Some(pid) => pid,
            None => latest + self.limit - back,
        };
        (pid > 0).then_some(pid as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pids(limit: u32) -> NewestPids {
        NewestPids { load: None, limit }
    }

    #[test]
    fn the_newest_pids_are_passed_in_the_order_of_their_assignment() {
        let passed = |latest, count| {
            let mut passed = Vec::new();
            pids(100).each_up_to(latest, count, |pid| passed.push(pid));
            passed
        };
        assert_eq!(passed(50, 3), [48, 49, 50]);
        assert_eq!(passed(1, 4), [98, 99, 1], "0 is no pid");
        assert_eq!(passed(50, 1000).len(), 99, "each once");
        assert_eq!(pids(100).distance(40, 50), 10);
        assert_eq!(pids(100).distance(98, 3), 5);
    }

    #[test]
    fn the_kernel_tells_the_latest_pid() {
        let newest = NewestPids::of_kernel();
        let before = newest.latest().expect("a /proc/loadavg");
        let mut child = std::process::Command::new("true").spawn().expect("a child");
        let pid = child.id();
        child.wait().expect("it is ours");
        let latest = newest.latest().expect("a /proc/loadavg");
        assert!(newest.distance(before, pid) <= newest.distance(before, latest));
    }
}
