//! The attempts of a task that is kept after a failure, to be started again when a server orders it.
//!
//! The shim decides nothing about them: whether there is another attempt, and when, is in the journal before the
//! order comes. A repeated order changes nothing, since it names the attempt.

use heeler_shim::record::{AttemptBegin, Stage};

use super::{
    Started,
    assignment::{AfterFailure, Task},
    leader::Failure,
    start,
    streams::{Pipes, Streams},
    task_file::TaskFile,
};

/// The attempts so far.
pub(super) struct Attempts<'a> {
    task: Task<'a>,
    /// The number of the latest one, from 1.
    latest: u32,
    /// True if the next one is to begin.
    ordered: bool,
    /// CPU time and largest memory of those before the latest one.
    cpu_micros: u64,
    max_memory: u64,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(task: Task<'a>) -> Self {
        Self {
            task,
            latest: 1,
            ordered: false,
            cpu_micros: 0,
            max_memory: 0,
        }
    }

    /// Returns whether there may be another attempt after a failure.
    pub(super) fn are_kept(&self) -> bool {
        self.task.after_failure == AfterFailure::Keep
    }

    /// Makes the latest attempt the last one.
    pub(super) fn give_up(&mut self) {
        self.task.after_failure = AfterFailure::End;
        self.ordered = false;
    }

    /// Takes an order for an attempt; any but the next one is skipped.
    pub(super) fn order(&mut self, attempt: u32) {
        self.ordered |= self.latest.checked_add(1) == Some(attempt);
    }

    /// Returns whether an attempt is to begin.
    pub(super) fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Begins the attempt that was ordered; `None` if there is none, or the disk refuses its record.
    pub(super) fn begin(
        &mut self,
        file: &mut TaskFile,
        output_begin: u64,
    ) -> Option<Result<Started<'a>, Failure>> {
        if !self.ordered {
            return None;
        }
        let attempt = self.latest.saturating_add(1);
        let begin = AttemptBegin {
            attempt,
            output_begin,
        };
        file.begin_attempt(begin).ok()?;
        (self.latest, self.ordered) = (attempt, false);
        let streams = Pipes::new().and_then(|pipes| Streams::new(self.task.stdin, pipes));
        let streams = streams.map_err(Failure::at(Stage::Prepare));
        Some(streams.and_then(|streams| start(&self.task, streams)))
    }

    /// Counts the resource use of an attempt that is over.
    pub(super) fn count(&mut self, cpu_micros: u64, max_memory: u64) {
        self.cpu_micros = self.cpu_micros.saturating_add(cpu_micros);
        self.max_memory = self.max_memory.max(max_memory);
    }

    /// CPU time of all attempts, with that of the latest one.
    pub(super) fn total_cpu(&self, latest: u64) -> u64 {
        self.cpu_micros.saturating_add(latest)
    }

    /// Largest memory of all attempts, with that of the latest one.
    pub(super) fn most_memory(&self, latest: u64) -> u64 {
        self.max_memory.max(latest)
    }
}
