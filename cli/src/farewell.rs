//! What a person should know when a task lets go of him, beyond what the exit code says.

use heeler_client::{
    AttachEnded,
    v1::{AttachEndReason, BackgroundTask, OrphanPolicy, TaskState},
};

use crate::words;

/// The last words; none, where the end is the task's own affair or was asked for here.
pub(crate) fn last_words(ended: &AttachEnded, stops: u32) -> Option<String> {
    let AttachEnded { task, reason } = ended;
    let id = &task.id;
    match reason {
        AttachEndReason::Detached => {
            let how = task.detached.as_ref().map(words::detached);
            let how = how.map(|how| format!(" ({how})")).unwrap_or_default();
            Some(format!("{id} goes on in the background{how}"))
        }
        AttachEndReason::LeaderExited if stops == 0 => Some(format!(
            "{id} goes on in the background: processes that it started are still there"
        )),
        AttachEndReason::LeaderExited => None,
        AttachEndReason::Finished | AttachEndReason::Unspecified => match task.state() {
            _ if stops > 0 => None,
            TaskState::Cancelled | TaskState::TimedOut => {
                Some(format!("{id} was stopped: {}", stopped(task)))
            }
            TaskState::Lost => Some(format!("{id}: {}", words::state_and_outcome(task))),
            TaskState::Failed if never_ran(task) => {
                Some(format!("{id}: {}", words::state_and_outcome(task)))
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

/// Whether a task whose leader is gone ends without waiting for the others.
pub(crate) fn is_near(task: &BackgroundTask) -> bool {
    match task.orphan_policy() {
        OrphanPolicy::Kill | OrphanPolicy::Abandon => true,
        OrphanPolicy::Unspecified | OrphanPolicy::Track => task.state() == TaskState::Stopping,
    }
}

fn stopped(task: &BackgroundTask) -> String {
    match &task.stop {
        Some(stop) => words::asked(stop),
        None => words::reason(task.end_reason()).to_owned(),
    }
}

fn never_ran(task: &BackgroundTask) -> bool {
    words::exit_code(task).is_none()
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{EndReason, Outcome, StopRecord, UnknownOutcome, outcome};

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
    fn an_end_of_its_own_needs_no_words() {
        for (state, code) in [(TaskState::Completed, 0), (TaskState::Failed, 7)] {
            let end = ended(
                state,
                AttachEndReason::Finished,
                outcome::Result::ExitCode(code),
            );
            assert_eq!(last_words(&end, 0), None);
        }
    }

    /// C11
    #[test]
    fn a_stop_by_another_is_told_and_one_from_here_is_not() {
        let result = outcome::Result::ExitCode(0);
        let mut end = ended(TaskState::TimedOut, AttachEndReason::Finished, result);
        end.task.stop = Some(StopRecord {
            cause: EndReason::Deadline.into(),
            ..StopRecord::default()
        });
        let text = last_words(&end, 0);
        assert_eq!(text.as_deref(), Some("shell-a was stopped: its timeout"));
        assert_eq!(last_words(&end, 1), None);
    }

    #[test]
    fn what_goes_on_or_was_lost_is_told() {
        let exit = || outcome::Result::ExitCode(0);
        let goes_on = ended(TaskState::Running, AttachEndReason::Detached, exit());
        assert!(last_words(&goes_on, 0).unwrap().contains("background"));
        let mut lingers = ended(TaskState::Running, AttachEndReason::LeaderExited, exit());
        assert!(last_words(&lingers, 0).unwrap().contains("background"));
        assert!(!is_near(&lingers.task));
        lingers.task.orphan_policy = OrphanPolicy::Kill.into();
        assert!(is_near(&lingers.task));
        let unknown = outcome::Result::Unknown(UnknownOutcome::default());
        let lost = ended(TaskState::Lost, AttachEndReason::Finished, unknown);
        assert!(last_words(&lost, 0).unwrap().contains("LOST"));
    }
}
