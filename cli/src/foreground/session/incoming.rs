//! The items that a session receives from its task: output, the end of the stream, and the output that
//! follows the leader's exit.

use std::io;

use heeler_client::{
    AttachEnded, AttachItem, Chunk, Error,
    v1::{AttachEndReason, BackgroundTask, OrphanPolicy, TaskState},
};

use super::{ForegroundSession, Mode, Response};
use crate::{
    failure::Failure,
    foreground::late_output::{LateItem, LateOutput, ReadUntil},
    render::spec,
};

impl ForegroundSession {
    pub(super) fn handle_item(
        &mut self,
        item: Option<Result<AttachItem, Error>>,
    ) -> Result<(), Failure> {
        let item = item.ok_or(Error::Incomplete { field: "ended" })?;
        let item = item.inspect_err(|_| self.progress.is_lost = true)?;
        self.progress.attached = true;
        match item {
            AttachItem::Ended(ended) => self.handle_ended(ended),
            AttachItem::Output(chunk) => self.put_output(chunk)?,
            AttachItem::Attached(_) => self.output.put(&item)?,
        }
        Ok(())
    }

    fn put_output(&mut self, chunk: Chunk) -> io::Result<()> {
        self.progress.offset = chunk.end();
        self.output.put(&AttachItem::Output(chunk))
    }

    /// When the leader has exited, `run` still writes the output that follows at once. Both wait for the
    /// task's end where it does not depend on the orphans.
    pub(super) fn handle_ended(&mut self, ended: AttachEnded) {
        if ended.reason == AttachEndReason::LeaderExited {
            let soon = finishes_soon(&ended.task);
            match self.mode {
                Mode::Run(_) => {
                    let until = match soon {
                        true => ReadUntil::TaskEnd,
                        false => ReadUntil::ShortLimit,
                    };
                    let late = LateOutput::open(&self.task, self.progress.offset, until);
                    self.late_output = Some(late);
                }
                Mode::Attach if soon => self.wait_for_end(),
                Mode::Attach => {}
            }
        }
        self.progress.ended = Some(ended);
    }

    pub(super) fn handle_late(&mut self, item: LateItem) -> Result<(), Failure> {
        let finished = match item {
            LateItem::Chunk(chunk) => return Ok(self.put_output(chunk)?),
            LateItem::TaskFinished => true,
            LateItem::LimitReached => false,
        };
        self.late_output = None;
        let ended = self.progress.ended.as_ref();
        if finished || ended.is_some_and(|ended| finishes_soon(&ended.task)) {
            self.wait_for_end();
        }
        Ok(())
    }

    fn wait_for_end(&mut self) {
        let task = self.task.clone();
        self.calls
            .spawn(async move { Response::Finished(task.wait().await) });
    }
}

/// Returns whether a task whose leader has exited finishes without waiting for its orphans to exit.
fn finishes_soon(task: &BackgroundTask) -> bool {
    match spec::orphan_policy(task) {
        OrphanPolicy::Kill | OrphanPolicy::Abandon => true,
        OrphanPolicy::Unspecified | OrphanPolicy::Track => task.state() == TaskState::Stopping,
    }
}

/// The next late item; never returns if none is expected.
pub(super) async fn next(late: &mut Option<LateOutput>) -> LateItem {
    match late {
        Some(late) => late.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::TaskSpec;

    use super::*;

    /// F11
    #[test]
    fn a_task_finishes_soon_unless_its_orphans_are_tracked() {
        let mut task = BackgroundTask {
            state: TaskState::Running.into(),
            ..BackgroundTask::default()
        };
        assert!(!finishes_soon(&task));
        task.state = TaskState::Stopping.into();
        assert!(finishes_soon(&task));
        task.state = TaskState::Running.into();
        task.spec = Some(TaskSpec {
            orphan_policy: OrphanPolicy::Kill.into(),
            ..TaskSpec::default()
        });
        assert!(finishes_soon(&task));
    }
}
