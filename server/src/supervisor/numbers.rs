//! Numbers that were given out, though the journal does not know it: a power cut may have taken the
//! latest tasks from it and left their files. A new task of the same number would have the same id,
//! and find its file's place taken.
//!
//! The files are put away before the first new task is recorded: after that they would look like those
//! of tasks that were removed, which are deleted.

use std::path::PathBuf;

use super::{Parts, Supervisor, leftovers};
use crate::{
    crash,
    journal::Memory,
    task::{Kind, TaskId},
};

/// How many numbers in a row must be free of files before the rest are taken to be: what was lost
/// was all of one moment.
const FREE_IN_A_ROW: u64 = 64;

impl Supervisor {
    /// Passes over them, and sets aside what is left of their tasks; before the first new task.
    pub(super) async fn pass_over_taken_numbers(&self) {
        for id in self.lost() {
            tracing::warn!(task = %id, "a file of a task that the journal has lost");
            if let Err(error) = leftovers::deal_with(&self.shared, &id, Memory::None).await {
                tracing::error!(task = %id, %error, "a file of a lost task stays where it is");
            }
            crash::point("recovery.lost-put-away");
        }
    }

    /// The tasks whose numbers are passed over, and whose files are still in their places.
    fn lost(&self) -> Vec<TaskId> {
        let Parts {
            journal, task_dir, ..
        } = self.parts();
        let key = journal.id_key();
        let mut seq = journal.upcoming_seq();
        let (mut lost, mut free) = (Vec::new(), 0);
        // Where nothing can be looked at, nothing can be started either, and is told why not.
        let exists = |path: PathBuf| path.try_exists().unwrap_or(false);
        while free < FREE_IN_A_ROW {
            free += 1;
            for id in [Kind::Shell, Kind::Agent].map(|kind| key.task_id(kind, seq)) {
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
