//! Numbers that were given out, though the journal does not know it: a power cut may have taken the
//! latest tasks from it and left their files. A new task of the same number would have the same id,
//! and find its file's place taken.

use super::Supervisor;
use crate::task::{Kind, Seq};

/// How many numbers in a row must be free of files before the rest are taken to be: what was lost
/// was all of one moment.
const FREE_IN_A_ROW: u64 = 64;

impl Supervisor {
    /// Passes over them; before the first new task.
    pub(super) fn pass_over_taken_numbers(&self) {
        let journal = &self.parts().journal;
        let mut seq = journal.upcoming_seq();
        let mut free = 0;
        while free < FREE_IN_A_ROW {
            if self.has_file(seq) {
                tracing::warn!(seq = seq.0, "a file of a task that the journal has lost");
                journal.pass_over(seq);
                free = 0;
            } else {
                free += 1;
            }
            seq.0 += 1;
        }
    }

    fn has_file(&self, seq: Seq) -> bool {
        let parts = self.parts();
        let key = parts.journal.id_key();
        [Kind::Shell, Kind::Agent].into_iter().any(|kind| {
            let path = parts.task_dir.path(&key.task_id(kind, seq));
            // Where nothing can be looked at, nothing can be started either, and is told why not.
            path.try_exists().unwrap_or(false)
        })
    }
}
