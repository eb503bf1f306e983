//! The server's priority while processes of a task fork and exit without pause.
//!
//! The scheduler gives each new process its share of the CPU, so a server that shares a CPU control group
//! with them would wait for tens of milliseconds whenever it wakes up: also for a Cancel.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::process::Priority;
use crate::supervisor::{JobGuard, Shared};

/// The time that a storm is assumed to last after a report of it. Shims repeat theirs every two seconds.
const LASTS: Duration = Duration::from_secs(5);

/// The better priority, and its end, if there is one.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct Haste(Mutex<Option<(Priority, Instant)>>);

impl Haste {
    /// Takes or prolongs the priority; returns true if it was taken.
    fn prolong(&self) -> bool {
        let until = Instant::now() + LASTS;
        let mut haste = self.lock();
        let is_new = haste.is_none();
        let (_, end) = haste.get_or_insert_with(|| (Priority::take(), until));
        *end = until;
        is_new
    }

    pub(in crate::supervisor) fn is_made(&self) -> bool {
        self.lock().is_some()
    }

    /// Gives the priority back if its time is over; returns the end otherwise.
    fn end_if_due(&self) -> Option<Instant> {
        let mut haste = self.lock();
        haste.take_if(|(_, end)| *end <= Instant::now());
        haste.as_ref().map(|(_, end)| *end)
    }

    /// No code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, Option<(Priority, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Takes a better priority, until a while after the last call.
    pub(in crate::supervisor) fn make_haste(self: &Arc<Self>) {
        if !self.haste.prolong() {
            return;
        }
        let job = JobGuard::new(self);
        tokio::spawn(async move {
            while let Some(end) = job.0.haste.end_if_due() {
                tokio::select! {
                    () = job.0.shutdown_begun() => return,
                    () = tokio::time::sleep_until(end) => {}
                }
            }
        });
    }
}
