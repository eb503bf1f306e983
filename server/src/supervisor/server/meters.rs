//! Times of the supervisor, and its use of what is limited, for the metrics.

use std::{sync::OnceLock, time::Duration};

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::supervisor::Supervisor;

#[derive(Debug)]
pub(crate) struct Meters {
    /// The seconds from a request to its leader that runs, of tasks that did not wait.
    pub(crate) spawns: Histogram,
    /// The duration of the recovery, once it is done.
    pub(crate) recovery: OnceLock<Duration>,
}

/// The output on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredOutput {
    pub(crate) live: u64,
    pub(crate) finished: u64,
    pub(crate) max: u64,
}

impl Meters {
    pub(in crate::supervisor) fn new() -> Self {
        Self {
            // From 250 microseconds to 16 seconds.
            spawns: Histogram::new(exponential_buckets(250e-6, 2.0, 17)),
            recovery: OnceLock::new(),
        }
    }
}

impl Supervisor {
    pub(crate) fn meters(&self) -> &Meters {
        &self.shared.meters
    }

    /// The output of all tasks, and the most that is kept.
    pub(crate) fn stored_output(&self) -> StoredOutput {
        let (live, max) = self.shared.output_budget.use_and_limit();
        StoredOutput {
            live,
            finished: self.journal().finished_totals().stored_bytes,
            max,
        }
    }
}
