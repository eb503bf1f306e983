//! The latest signs of life in sessions.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use crate::supervisor::Supervisor;
use crate::{
    journal::LiveSession,
    process::task_file::TaskDir,
    task::{Task, Timestamp},
};

/// Maximum number of task files that one call looks at. Of further tasks only events and workers count.
const MOST_FILES: usize = 1000;

impl Supervisor {
    /// The time of the latest output or message of a worker in each session. Events are not looked at.
    pub(crate) async fn signs_of_life(&self, sessions: &[LiveSession]) -> Vec<Option<Timestamp>> {
        let of_workers = |session: &LiveSession| self.worker_heard(&session.tasks);
        let heard: Vec<Option<Timestamp>> = sessions.iter().map(of_workers).collect();
        let task_dir = self.shared.parts.task_dir.clone();
        let tasks: Vec<Vec<Arc<Task>>> = sessions.iter().map(|one| one.tasks.clone()).collect();
        let written = spawn_blocking(move || {
            let mut left = MOST_FILES;
            let written = tasks.iter().map(|tasks| {
                let looked_at = tasks.len().min(left);
                left -= looked_at;
                // The newest tasks are last.
                last_output(&task_dir, &tasks[tasks.len() - looked_at..])
            });
            written.collect()
        });
        let written: Vec<Option<Timestamp>> = written.await.unwrap_or_default();
        let written = written.into_iter().chain(std::iter::repeat(None));
        heard
            .into_iter()
            .zip(written)
            .map(|(a, b)| a.max(b))
            .collect()
    }

    fn worker_heard(&self, tasks: &[Arc<Task>]) -> Option<Timestamp> {
        let heard = tasks
            .iter()
            .filter_map(|task| self.live(&task.id)?.presence().heard);
        heard.max()
    }
}

fn last_output(task_dir: &TaskDir, tasks: &[Arc<Task>]) -> Option<Timestamp> {
    let with_file = tasks.iter().filter(|task| !task.is_hosted());
    let written = with_file.filter_map(|task| {
        let file = task_dir.open_own(&task.id, task.uid).ok()??;
        Some(file.last_output().ok()?.at?.wall)
    });
    written.max()
}
