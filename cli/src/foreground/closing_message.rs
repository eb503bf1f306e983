//! The closing message of `run` and `attach`: facts about the end that the exit code does not tell.

use heeler_client::{
    AttachEnded,
    v1::{AttachEndReason, BackgroundTask, EndReason, TaskState},
};

use crate::render::{causes, outcome, status};

/// Returns no message if the task ended by itself, or was stopped by this command.
pub(crate) fn closing_message(ended: &AttachEnded, stop_requests: u32) -> Option<String> {
    let AttachEnded { task, reason } = ended;
    let id = &task.id;
    match reason {
        AttachEndReason::Detached => {
            let cause = task.detachment.as_ref().map(causes::detach);
            let cause = cause.map(|cause| format!(" ({cause})"));
            let cause = cause.unwrap_or_default();
            Some(format!("{id} continues in the background{cause}"))
        }
        AttachEndReason::LeaderExited if stop_requests == 0 => Some(format!(
            "{id} continues in the background: its leader has exited, other processes have not"
        )),
        AttachEndReason::LeaderExited => None,
        AttachEndReason::Finished | AttachEndReason::Unspecified => match task.state() {
            _ if stop_requests > 0 => None,
            TaskState::Cancelled | TaskState::TimedOut => {
                Some(format!("{id} was stopped: {}", stop_cause(task)))
            }
            TaskState::Lost => Some(format!("{id}: {}", status::state_and_outcome(task))),
            TaskState::Failed
                if outcome::exit_code(task).is_none()
                    || task.end_reason() == EndReason::OutputLimit =>
            {
                Some(format!("{id}: {}", status::state_and_outcome(task)))
            }
            TaskState::Unspecified
            | TaskState::Queued
            | TaskState::Starting
            | TaskState::Running
            | TaskState::Stopping
            | TaskState::Completed
            | TaskState::Failed => None,
        },
    }
}

fn stop_cause(task: &BackgroundTask) -> String {
    match &task.stop {
        Some(stop) => causes::stop(stop),
        None => causes::end_reason(task.end_reason()).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{Outcome, StopRecord, UnknownOutcome, outcome};

    use super::*;

    fn ended(state: TaskState, reason: AttachEndReason, result: outcome::Result) -> AttachEnded {
        let task = BackgroundTask {
            id: "shell-a".to_owned(),
            state: state.into(),
            outcome: Some(Outcome {
                result: Some(result),
            }),
            ..BackgroundTask::default()
        };
        AttachEnded { task, reason }
    }

    #[test]
    fn a_task_that_exits_by_itself_has_no_message() {
        for (state, code) in [(TaskState::Completed, 0), (TaskState::Failed, 7)] {
            let result = outcome::Result::ExitCode(code);
            let end = ended(state, AttachEndReason::Finished, result);
            assert_eq!(closing_message(&end, 0), None);
        }
    }

    /// C11
    #[test]
    fn a_stop_from_elsewhere_has_a_message_and_one_from_here_has_none() {
        let result = outcome::Result::ExitCode(0);
        let mut end = ended(TaskState::TimedOut, AttachEndReason::Finished, result);
        end.task.stop = Some(StopRecord {
            cause: EndReason::Timeout.into(),
            ..StopRecord::default()
        });
        let text = closing_message(&end, 0);
        assert_eq!(text.as_deref(), Some("shell-a was stopped: timeout"));
        assert_eq!(closing_message(&end, 1), None);
    }

    #[test]
    fn a_task_that_continues_or_is_lost_has_a_message() {
        let exit = || outcome::Result::ExitCode(0);
        let detached = ended(TaskState::Running, AttachEndReason::Detached, exit());
        let text = closing_message(&detached, 0).unwrap();
        assert!(text.contains("background"), "{text}");
        let orphans = ended(TaskState::Running, AttachEndReason::LeaderExited, exit());
        let text = closing_message(&orphans, 0).unwrap();
        assert!(text.contains("background"), "{text}");
        let unknown = outcome::Result::Unknown(UnknownOutcome::default());
        let lost = ended(TaskState::Lost, AttachEndReason::Finished, unknown);
        assert!(closing_message(&lost, 0).unwrap().contains("LOST"));
    }
}
