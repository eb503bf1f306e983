//! The attempts of a task that is restarted on failure, in words.

use heeler_client::{
    time,
    v1::{BackgroundTask, TaskAttempts},
};

use super::{outcome, spec, units};

/// `attempt 3`.
pub(crate) fn latest(task: &BackgroundTask) -> String {
    let attempts = task.attempts.as_ref();
    format!("attempt {}", attempts.map_or(1, |attempts| attempts.latest))
}

/// The attempt that has failed, such as `attempt 1: exit code 7`.
pub(crate) fn failed(task: &BackgroundTask) -> String {
    let attempts = task.attempts.clone().unwrap_or_default();
    let outcome = attempts.failed_outcome.as_ref();
    let outcome = outcome.map(outcome::clause).unwrap_or_default();
    format!("attempt {}: {outcome}", attempts.latest.saturating_sub(1))
}

/// The attempts so far and the rule, such as `attempt 2 from offset 40, after exit code 7; at most 5 restarts in a
/// row`; empty without a rule.
pub(crate) fn describe(task: &BackgroundTask) -> String {
    let (Some(attempts), Some(policy)) = (&task.attempts, &spec::of(task).restart) else {
        return String::new();
    };
    let limit = match policy.max_restarts() {
        0 => "no limit".to_owned(),
        1 => "at most 1 restart in a row".to_owned(),
        max => format!("at most {max} restarts in a row"),
    };
    let delay = policy.delay.map(time::from_proto);
    let delay = delay.map(|delay| format!(", after {} at first", units::duration(delay)));
    format!("{}; {limit}{}", now(attempts), delay.unwrap_or_default())
}

fn now(attempts: &TaskAttempts) -> String {
    let Some(failed) = &attempts.failed_outcome else {
        return "attempt 1".to_owned();
    };
    let TaskAttempts {
        latest,
        output_offset,
        ..
    } = attempts;
    let failed = outcome::clause(failed);
    match attempts.due_time {
        Some(due) => format!(
            "attempt {latest} at {}, after {failed}",
            units::timestamp(due)
        ),
        None => format!("attempt {latest} from offset {output_offset}, after {failed}"),
    }
}
