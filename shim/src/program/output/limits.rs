//! The rules that a task's output is under, and their record in the task file.

use core::mem;

use heeler_shim::{
    layout::{Blocks, Log},
    output_policy::{OnLimit, OutputPolicy},
    record::{Limit, LimitCause, OutputState, Ring},
    stamp::Stamp,
};

use crate::program::sys::{Errno, Fd, Result, file};

/// The record is at most so many dropped bytes behind.
const UNRECORDED_BYTES: u64 = 1024 * 1024;
/// The record is at most so many microseconds behind, while output is dropped.
const UNRECORDED_MICROS: u64 = 10_000;

/// The rules, as they are and as the task file has them.
pub(super) struct Limits {
    policy: OutputPolicy,
    state: OutputState,
    /// The dropped bytes, and the time of the latest, that the record does not have yet.
    unrecorded: u64,
    latest: Stamp,
    is_total_reached: bool,
    news: News,
}

/// A fact to be acted on, once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    None,
    /// Output is dropped from now on.
    LimitReached,
    /// The same, and the tree is to be killed for it.
    KillDue,
}

impl Limits {
    pub(super) fn new(policy: OutputPolicy) -> Self {
        Self {
            policy,
            state: OutputState::default(),
            unrecorded: 0,
            latest: Stamp::default(),
            is_total_reached: false,
            news: News::None,
        }
    }

    pub(super) fn take_news(&mut self) -> News {
        mem::replace(&mut self.news, News::None)
    }

    /// The dropped bytes that the record has: a reader sees no others.
    pub(super) fn dropped(&self) -> u64 {
        self.state.dropped
    }

    /// Counts bytes beyond the total.
    pub(super) fn drop(&mut self, bytes: u64, log: &Log, time: Stamp, disk: &Fd) {
        self.unrecorded += bytes;
        self.latest = time;
        let recorded = self.state.last_dropped.monotonic_micros;
        let since = time.monotonic_micros.saturating_sub(recorded);
        if !mem::replace(&mut self.is_total_reached, true) {
            self.reach_total(log, time);
            self.record_dropped(disk);
        } else if self.unrecorded >= UNRECORDED_BYTES || since >= UNRECORDED_MICROS {
            self.record_dropped(disk);
        }
    }

    /// Returns whether dropped bytes are not in the record yet.
    pub(super) fn is_behind(&self) -> bool {
        self.unrecorded > 0
    }

    /// Brings the record up to date. A disk that refuses it is asked again with the next bytes.
    pub(super) fn record_dropped(&mut self, disk: &Fd) {
        let next = OutputState {
            dropped: self.state.dropped + self.unrecorded,
            last_dropped: self.latest,
            ..self.state
        };
        if self.record(next, disk).is_ok() {
            self.unrecorded = 0;
        }
    }

    /// Returns whether blocks of the ring have been overwritten.
    pub(super) fn has_ring(&self) -> bool {
        self.state.ring.is_some()
    }

    /// Records that blocks of the ring are overwritten from now on, unless the record says so. A ring
    /// without a limit is that of a full disk.
    pub(super) fn record_ring(&mut self, log: &Log, time: Stamp, disk: &Fd) -> Result<()> {
        let is_recorded = self.state.ring.is_some_and(|ring| ring.head == log.head());
        let is_limit = self.state.limit.is_none() && !log.is_below_bound();
        if is_recorded && !is_limit {
            return Ok(());
        }
        if is_limit {
            self.reach_bound(log, time);
        }
        self.record_blocks(log, Blocks::default(), u64::MAX, disk)
    }

    /// Records the blocks that count: all before `end` but the removed ones.
    pub(super) fn record_blocks(
        &mut self,
        log: &Log,
        removed: Blocks,
        end: u64,
        disk: &Fd,
    ) -> Result<()> {
        let ring = Ring {
            head: log.head(),
            removed,
            end,
        };
        let next = OutputState {
            ring: Some(ring),
            ..self.state
        };
        self.record(next, disk)
    }

    /// Notes that output rotates by rule, if it is new.
    pub(super) fn reach_bound(&mut self, log: &Log, time: Stamp) {
        if self.state.limit.is_none() {
            self.news = News::LimitReached;
            self.state.limit = Some(Limit {
                cause: match self.policy.rotates_by_itself(&log.bound()) {
                    true => LimitCause::Policy,
                    false => LimitCause::ServerBudget,
                },
                time,
                offset: log.head_end(),
                kills: false,
            });
        }
    }

    /// Notes that no further output is kept.
    fn reach_total(&mut self, log: &Log, time: Stamp) {
        let limit = self.state.limit.get_or_insert(Limit {
            cause: LimitCause::Policy,
            time,
            offset: log.offset(),
            kills: false,
        });
        limit.kills = self.policy.on_limit == OnLimit::Kill;
        self.news = match limit.kills {
            true => News::KillDue,
            false => News::LimitReached,
        };
    }

    /// Writes the next version of the record over the older one of the two in the file.
    fn record(&mut self, next: OutputState, disk: &Fd) -> Result<()> {
        let next = OutputState {
            number: self.state.number + 1,
            ..next
        };
        let slot = next.encode();
        match file::write_at(disk, &slot, next.position())? {
            len if len == slot.len() => self.state = next,
            _ => return Err(Errno::ENOSPC),
        }
        Ok(())
    }
}
