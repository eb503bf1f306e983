//! Tasks that the journal has lost: a power cut may have cost it the latest tasks and left their
//! files. A new task with the same `seq` would have the same id, and find the place of its file taken.
//!
//! The files are set aside before the first new task is recorded. After that they would look like the
//! files of removed tasks, which are deleted.

use std::path::PathBuf;

use super::leftovers;
use crate::{
    crash,
    journal::Memory,
    supervisor::{Parts, Supervisor},
    task::{Kind, TaskId},
};

/// The number of consecutive ids without a file after which the search ends: a power cut costs the
/// tasks of one moment.
const FREE_IN_A_ROW: u64 = 64;

/// The kinds of tasks that have files.
const KINDS: [Kind; 2] = [Kind::Shell, Kind::Agent];

impl Supervisor {
    /// Skips the ids of lost tasks, and sets their files aside.
    pub(super) async fn skip_lost_task_ids(&self) {
        for id in self.find_lost_tasks() {
            tracing::warn!(task = %id, "found the file of a task that is not in the journal");
            if let Err(error) = leftovers::clear_file(&self.shared, &id, Memory::None).await {
                tracing::error!(task = %id, %error, "cannot set aside the file of a lost task");
            }
            crash::point("recovery.lost-set-aside");
        }
    }

    /// Skips the `seq` of every lost task; returns the ids whose files are still in their places.
    fn find_lost_tasks(&self) -> Vec<TaskId> {
        let Parts {
            journal, task_dir, ..
        } = &self.shared.parts;
        let key = journal.id_key();
        let mut seq = journal.upcoming_seq();
        let (mut lost, mut free) = (Vec::new(), 0);
        // Where the directory cannot be read, a start will fail and report the reason.
        let exists = |path: PathBuf| path.try_exists().unwrap_or(false);
        while free < FREE_IN_A_ROW {
            free += 1;
            for id in KINDS.map(|kind| key.task_id(kind, seq)) {
                let is_in_place = exists(task_dir.path(&id));
                if is_in_place || exists(task_dir.stray(&id)) {
                    journal.pass_over(seq);
                    free = 0;
                }
                lost.extend(is_in_place.then_some(id));
            }
            seq.0 += 1;
        }
        lost
    }
}
