//! Room in memory for the output of new foreground tasks.
//!
//! ```text
//!  Spawn ── room ─────> reserve; ask for more room ──────────┐
//!    └───── no room ──> ask, wait a moment, reserve or not ──┤
//!                                                            v
//!          keeper:  room is missing? ── remove finished foreground tasks, oldest first
//! ```
//!
//! Finished foreground tasks make room for new ones: those whose end was delivered first, then those
//! whose end no client has received for a while. The keeper removes them ahead of the need, so that a part
//! of the budget is free; a Spawn waits for it only if many tasks start at once.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    task::spawn_blocking,
    time::timeout,
};

use super::{limits::covering, log_failure, removal::Remover};
use crate::{
    journal::{FinishedClass, JournalError},
    supervisor::{JobGuard, Parts, Shared},
    task::{Revision, TaskId, Timestamp},
};

/// One part in this many of the memory is kept free, and room for one task at least.
const SPARE_PART: u64 = 8;
/// The longest wait of a Spawn for room. A removal takes a millisecond or two.
const WAIT: Duration = Duration::from_millis(200);
/// A task whose end was not delivered keeps its memory this long: its client may be reading the output,
/// or has lost its connection and comes back.
const UNDELIVERED: Duration = Duration::from_secs(60);
/// The most tasks that are removed at once, so that a waiting Spawn soon gets the room of the first.
const MOST: usize = 32;

/// The requests of Spawns for room in memory, and the answers of its keeper.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct MemoryRoom {
    wanted: Notify,
    /// The number of Spawns that wait for room.
    waiting: AtomicU64,
    passes: watch::Sender<Passes>,
}

/// The passes of the keeper, by their number.
#[derive(Debug, Clone, Copy, Default)]
struct Passes {
    begun: u64,
    /// The latest one that had nothing to remove.
    vain: u64,
}

impl Shared {
    /// Reserves memory for a new task's output; `None` if the output must begin on disk.
    pub(in crate::supervisor) async fn reserve_memory(&self, id: &TaskId) -> Option<PathBuf> {
        let task_dir = &self.parts.task_dir;
        let reserved = task_dir.reserve_memory(id);
        let room = &self.memory_room;
        if reserved.is_some() || !task_dir.has_settled_memory() {
            room.wanted.notify_one();
            return reserved;
        }
        room.waiting.fetch_add(1, Ordering::Relaxed);
        let reserved = timeout(WAIT, self.memory_freed(id)).await;
        room.waiting.fetch_sub(1, Ordering::Relaxed);
        reserved.ok().flatten()
    }

    /// Reserves memory as soon as the keeper has made room; `None` if there is nothing to remove.
    async fn memory_freed(&self, id: &TaskId) -> Option<PathBuf> {
        let room = &self.memory_room;
        let mut passes = room.passes.subscribe();
        let begun = passes.borrow_and_update().begun;
        room.wanted.notify_one();
        loop {
            // The sender is in `self`, so the channel cannot close.
            let _ = passes.changed().await;
            let vain = passes.borrow_and_update().vain;
            let reserved = self.parts.task_dir.reserve_memory(id);
            if reserved.is_some() || vain > begun {
                return reserved;
            }
        }
    }
}

/// Keeps room in memory until the server shuts down.
pub(super) async fn run(job: JobGuard) {
    let mut keeper = Keeper {
        shared: Arc::clone(&job.0),
        remover: Remover::new(Arc::clone(&job.0)),
    };
    loop {
        tokio::select! {
            biased;
            () = job.0.shutdown_begun() => return,
            () = job.0.memory_room.wanted.notified() => keeper.make_room().await,
        }
    }
}

#[derive(Debug)]
struct Keeper {
    shared: Arc<Shared>,
    remover: Remover,
}

impl Keeper {
    /// Removes tasks until enough room is free, or there is nothing to remove.
    async fn make_room(&mut self) {
        let shared = Arc::clone(&self.shared);
        let passes = &shared.memory_room.passes;
        while !shared.is_shutting_down() {
            passes.send_modify(|passes| passes.begun += 1);
            let removed = self.remove_some().await.unwrap_or_else(|error| {
                log_failure(&error);
                0
            });
            passes.send_modify(|passes| {
                if removed == 0 {
                    passes.vain = passes.begun;
                }
            });
            if removed == 0 {
                return;
            }
        }
    }

    /// Returns the number of tasks that were removed.
    async fn remove_some(&mut self) -> Result<usize, JournalError> {
        let shortage = self.shortage().await;
        if shortage == 0 {
            return Ok(0);
        }
        self.shared.parts.journal.write_delivered().await?;
        let delivered = FinishedClass::DeliveredForeground;
        let mut chosen = self.choose(delivered, Duration::ZERO, shortage).await?;
        if chosen.is_empty() {
            let any = FinishedClass::Foreground;
            chosen = self.choose(any, UNDELIVERED, shortage).await?;
        }
        let count = chosen.len();
        self.remover.remove(chosen).await?;
        Ok(count)
    }

    /// The bytes that are missing for the Spawns that wait, and for some more.
    async fn shortage(&self) -> u64 {
        let task_dir = self.shared.parts.task_dir.clone();
        let waiting = self.shared.memory_room.waiting.load(Ordering::Relaxed);
        let missing = spawn_blocking(move || {
            let capacity = task_dir.memory_capacity();
            let spare = (capacity / SPARE_PART).max(1);
            task_dir.memory_shortage(waiting.saturating_add(spare).min(capacity))
        });
        // It fails only by a panic.
        missing.await.unwrap_or(0)
    }

    /// Chooses tasks of a class with output in memory that ended this long ago. Those without, whose
    /// output was spilled, are passed over: the limit of all output bounds their number.
    async fn choose(
        &self,
        class: FinishedClass,
        age: Duration,
        shortage: u64,
    ) -> Result<Vec<TaskId>, JournalError> {
        let Parts {
            journal, task_dir, ..
        } = &self.shared.parts;
        let now = Timestamp::now();
        let mut after = Revision(0);
        loop {
            let mut page = journal.oldest_finished(class, after, MOST).await?;
            let old = page.partition_point(|candidate| now.since(candidate.ended) >= age);
            page.truncate(old);
            let Some(last) = page.last() else {
                return Ok(Vec::new());
            };
            after = last.end;
            let candidates = self.remover.removable(page);
            let chosen = covering(shortage, &candidates, |id| task_dir.settled_memory(id));
            if !chosen.is_empty() {
                return Ok(chosen);
            }
        }
    }
}
