//! The chase of processes that fork and exit without pause: they are gone as soon as they are seen.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::{
    super::{
        look::NewestPids,
        struck::{Pinned, pin},
    },
    Progress, Search,
};
use crate::process::host::schedule::{self, Class};

/// The longest chase of one task's processes before other tasks have their turn.
const CHASE: Duration = Duration::from_millis(100);
/// The number of latest pids that a pass of a chase tries: first few, so that it is faster than a fork,
/// and twice as many after each pass without a hit, for some hundred fork chains at last.
const FEWEST_CHASED: u32 = 16;
const MOST_CHASED: u32 = 1024;
/// The passes with a hit after which a chase hurries.
const HURRY_AFTER: u32 = 3;

impl Search {
    /// Kills processes that fork and exit without pause: again and again those with the latest pids,
    /// before they can fork.
    pub(super) fn chase(&mut self, newest: &NewestPids) -> Progress {
        let until = Instant::now() + CHASE;
        let mut tried = FEWEST_CHASED;
        let mut hits = 0;
        let mut hurry = None;
        while tried <= MOST_CHASED && Instant::now() < until {
            if self.strike_newest(tried, newest) == 0 {
                tried *= 2;
                continue;
            }
            tried = FEWEST_CHASED;
            hits += 1;
            if hits == HURRY_AFTER {
                hurry = Some(Hurry::begin());
            }
        }
        drop(hurry);
        match tried > MOST_CHASED {
            true => Progress::Wait,
            false => Progress::LookAgain,
        }
    }

    /// Kills those of the latest pids that have the limit tag, the newest first; returns their number.
    fn strike_newest(&mut self, tried: u32, newest: &NewestPids) -> usize {
        let Some(latest) = newest.latest() else {
            return 0;
        };
        let marks = self.marks;
        let mut count = 0;
        newest.each_down_from(latest, tried, |pid| {
            let is_ours = || marks.limit_tag_is_on(pid);
            if !is_ours() || self.struck.is_dying(pid) || self.is_leader(pid) {
                return;
            }
            match pin(pid, is_ours) {
                Pinned::Alive(pidfd) => {
                    self.killed.insert(pid);
                    self.struck.strike(pid, pidfd, Signal::SIGKILL);
                    self.last_seen = Some(pid);
                    count += 1;
                }
                // A thread cannot be pinned, and stays. A process was there a moment ago.
                Pinned::Lost if is_ours() => {}
                Pinned::Lost => {
                    self.last_seen = Some(pid);
                    count += 1;
                }
                Pinned::Dead => {}
            }
        });
        count
    }
}

/// The real-time class, where permitted, until it is dropped: the scheduler gives each new process of
/// a fork chain its share of the CPU.
struct Hurry;

impl Hurry {
    fn begin() -> Self {
        schedule::take(Class::RealTime);
        Self
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        schedule::take(Class::Normal);
    }
}
