//! Counts and times of what the journal has committed since it was opened, for the metrics.

use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::{Journal, file, read::SizedFact};
use crate::task::{EndReason, EndState, EventKind, FactKind, Kind, Monotonic, ProofResult, Task};

/// The blocks in which the kernel counts the size of a file.
const BLOCK: u64 = 512;

/// The meters. Only the writer changes them, after a commit.
#[derive(Debug)]
pub(crate) struct Meters {
    /// The durations of transactions, in seconds.
    pub(crate) commits: Histogram,
    /// The seconds from the request to stop a task to the record that its tree is proven empty.
    pub(crate) stops: Histogram,
    counts: Mutex<Counts>,
}

/// The facts that were committed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) facts: HashMap<FactKind, u64>,
    pub(crate) ended: HashMap<(Kind, EndState, EndReason), u64>,
    /// The output of the tasks that ended, in bytes.
    pub(crate) output_bytes: u64,
}

/// The bytes of disk that the journal takes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JournalSize {
    pub(crate) main: u64,
    pub(crate) wal: u64,
}

impl Meters {
    pub(super) fn new() -> Self {
        Self {
            // From 20 microseconds to 10 seconds.
            commits: Histogram::new(exponential_buckets(20e-6, 2.0, 20)),
            // From 1 millisecond to 33 seconds.
            stops: Histogram::new(exponential_buckets(1e-3, 2.0, 16)),
            counts: Mutex::default(),
        }
    }

    /// The facts up to now.
    pub(crate) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    /// Counts a transaction.
    pub(super) fn count(&self, facts: &[SizedFact], took: Duration) {
        self.commits.observe(took.as_secs_f64());
        if facts.is_empty() {
            return;
        }
        let mut counts = self.lock();
        for sized in facts {
            *counts.facts.entry(sized.fact.kind()).or_default() += 1;
            if let Some(event) = sized.fact.event()
                && event.kind == EventKind::Ended
            {
                self.count_end(&mut counts, &event.task);
            }
        }
    }

    fn count_end(&self, counts: &mut Counts, task: &Task) {
        let Some(ended) = &task.ended else { return };
        let end = (task.spec.kind, ended.state, ended.reason);
        *counts.ended.entry(end).or_default() += 1;
        counts.output_bytes += task.output_bytes;
        let Some(stop) = &task.stop else { return };
        let result = stop.proof.as_ref().map(|proof| &proof.result);
        if let Some(ProofResult::Proven(_)) = result {
            let took = Monotonic::now().since(stop.requested.mono);
            self.stops.observe(took.as_secs_f64());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal {
    pub(crate) fn meters(&self) -> &Meters {
        &self.shared.totals.meters
    }

    /// The present size of the journal on disk.
    pub(crate) fn size(&self) -> io::Result<JournalSize> {
        let size = |path: &Path| fs::metadata(path).map(|found| found.blocks() * BLOCK);
        let path = &self.shared.path;
        Ok(JournalSize {
            main: size(path)?,
            wal: size(&file::wal(path))?,
        })
    }
}
