//! The restart policy, in and out.

use std::time::Duration;

use heeler_proto::v1;

use super::super::{check, convert, refusal::Refusal};
use crate::task::{
    DEFAULT_MAX_RESTART_DELAY, DEFAULT_MAX_RESTARTS, DEFAULT_RESET_AFTER, DEFAULT_RESTART_DELAY,
    Restart,
};

/// A shorter delay would let a leader that fails at once take a core.
const SHORTEST_DELAY: Duration = Duration::from_millis(20);

pub(super) fn read(policy: v1::RestartPolicy) -> Result<Restart, Refusal> {
    const DELAY: &str = "spec.restart.delay";
    const MAX_DELAY: &str = "spec.restart.max_delay";
    let given = check::optional_duration(DELAY, policy.delay)?;
    let delay = given.unwrap_or(DEFAULT_RESTART_DELAY);
    if delay < SHORTEST_DELAY {
        return Err(Refusal::field(DELAY, "is shorter than 20 ms"));
    }
    let max_delay = match check::optional_duration(MAX_DELAY, policy.max_delay)? {
        Some(max) if max < delay => {
            return Err(Refusal::field(MAX_DELAY, "is shorter than delay"));
        }
        Some(max) => max,
        None => DEFAULT_MAX_RESTART_DELAY.max(delay),
    };
    let reset_after = check::timeout("spec.restart.reset_after", policy.reset_after)?;
    Ok(Restart {
        delay,
        max_delay,
        max_restarts: match policy.max_restarts {
            None => Some(DEFAULT_MAX_RESTARTS),
            Some(0) => None,
            Some(max) => Some(max),
        },
        reset_after: reset_after.unwrap_or(DEFAULT_RESET_AFTER),
    })
}

pub(super) fn show(restart: &Restart) -> v1::RestartPolicy {
    v1::RestartPolicy {
        delay: Some(convert::duration(restart.delay)),
        max_delay: Some(convert::duration(restart.max_delay)),
        max_restarts: Some(restart.max_restarts.unwrap_or(0)),
        reset_after: Some(convert::duration(restart.reset_after)),
    }
}
