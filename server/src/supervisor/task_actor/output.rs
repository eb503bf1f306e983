//! The output of the task, as far as its actor needs it.

use std::io;

use tokio::task::spawn_blocking;

use super::TaskActor;
use crate::{
    process::task_file::LastOutput,
    supervisor::lifecycle::Input,
    task::{Monotonic, Placement},
};

impl TaskActor {
    /// Decides about a silence that is due. A worker that shows activity in this instant may not see that
    /// the task is stale; then it is seen here.
    pub(super) async fn look_at_silence(&mut self) {
        let before = self.channels.worker.look().active;
        self.apply(self.silence()).await;
        if self.channels.worker.look().active > before {
            self.apply(Input::Activity).await;
        }
    }

    /// Looks up the latest output, for [`Input::Silence`].
    fn silence(&self) -> Input {
        let (last_output, output_bytes) = self.latest_output();
        Input::Silence {
            last_output,
            output_bytes,
        }
    }

    /// Looks up the latest output, for [`Input::StdinLookDue`].
    pub(super) fn input_look_due(&self) -> Input {
        let (last_output, output_bytes) = self.latest_output();
        Input::StdinLookDue {
            last_output,
            output_bytes,
        }
    }

    /// The time and the amount of the latest output. Output that cannot be read is not silence.
    fn latest_output(&self) -> (Option<Monotonic>, u64) {
        match self.last_output() {
            Ok(LastOutput { at, end }) => (at.map(|at| at.mono), end),
            Err(error) => {
                tracing::warn!(task = %self.life.task.id, %error, "cannot read output");
                (Some(Monotonic::now()), self.life.task.output_bytes)
            }
        }
    }

    fn last_output(&self) -> io::Result<LastOutput> {
        let task = &self.life.task;
        if task.is_hosted() {
            return Ok(LastOutput::default());
        }
        let file = self.shared.parts.task_dir.open_own(&task.id, task.uid)?;
        file.map_or(Ok(LastOutput::default()), |file| file.last_output())
    }

    /// The bytes of disk that the task's file takes; zero if there is none.
    pub(super) fn stored_output(&self) -> u64 {
        let task = &self.life.task;
        let file = self.shared.parts.task_dir.open_own(&task.id, task.uid);
        let stored = file.and_then(|file| file.map_or(Ok(0), |file| file.stored()));
        stored.unwrap_or_else(|error| {
            tracing::warn!(task = %task.id, %error, "cannot tell the size of the output");
            0
        })
    }

    /// Cleans up the output of a finished foreground task: its share of memory shrinks to the size of
    /// the output. That of a task that left the foreground goes to disk, if its shim has not moved it.
    pub(super) async fn settle_output(&self) {
        let task = &self.life.task;
        if task.spec.foreground.is_none() {
            return;
        }
        self.shared.parts.task_dir.settle_memory(&task.id);
        match task.placement() {
            Placement::Foreground => return,
            Placement::Background => {}
        }
        let (task_dir, id) = (self.shared.parts.task_dir.clone(), task.id.clone());
        let spilled = spawn_blocking(move || task_dir.spill(&id)).await;
        if let Ok(Err(error)) = spilled {
            tracing::warn!(task = %task.id, %error, "cannot move output to disk; it stays in memory");
        }
    }
}
