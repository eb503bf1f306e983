//! The time limits of requests: a daemon that takes calls and answers none leaves no request without an answer.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::{defect::caught, problem::Problem};

/// The longest time that a tool waits for something, below the 60 s after which clients give up.
pub(crate) const LONGEST_CALL: Duration = Duration::from_secs(50);
/// The longest time of a request.
const ANSWER: Duration = Duration::from_secs(55);
/// The longest time of a call that has started a task. The error of the request itself would not name the task.
const ANSWER_OF_START: Duration = Duration::from_secs(54);

/// Completes a request.
pub(crate) fn answered<T>(
    work: impl Future<Output = Result<T, Problem>>,
) -> impl Future<Output = Result<T, Problem>> {
    answered_at(Instant::now() + ANSWER, work)
}

/// Completes a call that has started a task. Its errors name the task, so that it is not started again.
pub(crate) fn answered_of<T>(
    id: &str,
    begun: Instant,
    work: impl Future<Output = Result<T, Problem>>,
) -> impl Future<Output = Result<T, Problem>> {
    let answer = answered_at(begun + ANSWER_OF_START, work);
    async move { answer.await.map_err(|problem| problem.after_start_of(id)) }
}

fn answered_at<T>(
    deadline: Instant,
    work: impl Future<Output = Result<T, Problem>>,
) -> impl Future<Output = Result<T, Problem>> {
    // On the heap: nested in one another, the types of the calls are beyond what the compiler lays out.
    let work = Box::pin(caught(work));
    async move {
        let answer = timeout_at(deadline, work).await;
        answer.unwrap_or(Err(Problem::NoAnswer))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    /// M2, M5
    #[tokio::test]
    async fn a_daemon_that_does_not_answer_is_an_error_that_names_what_was_started() {
        let over = Instant::now() - ANSWER_OF_START;
        let none = pending::<Result<u8, Problem>>();
        let text = answered_of("shell-a", over, none).await.unwrap_err().text();
        assert!(text.contains("the daemon does not answer"), "{text}");
        assert!(
            text.contains(r#"Next: call heeler_wait {"ids": ["shell-a"]}"#),
            "{text}"
        );
        let done = answered_of("shell-a", over, ready(Ok(1))).await;
        assert_eq!(done.unwrap(), 1);
        let cancelled = Problem::Cancelled("; shell-a is being stopped".to_owned());
        let left = answered_of::<u8>("shell-a", over, ready(Err(cancelled))).await;
        assert!(matches!(left, Err(Problem::Cancelled(_))), "{left:?}");
    }
}
