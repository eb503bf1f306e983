//! Panics in a call: they become its error, so that no call is left without an answer.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

use crate::problem::Problem;

/// Completes a call. Its locks may be poisoned by a panic; every user of them goes on with what they hold.
pub(crate) async fn caught<T>(
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or(Poll::Ready(Err(Problem::Defect)))
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    async fn work(is_defective: bool) -> Result<u8, Problem> {
        yield_now().await;
        assert!(!is_defective, "a defect");
        Ok(1)
    }

    /// M5
    #[tokio::test]
    async fn a_panic_is_a_tool_error_with_the_next_step() {
        assert_eq!(caught(work(false)).await.unwrap(), 1);
        let text = caught(work(true)).await.unwrap_err().text();
        assert!(text.contains("defect of Heeler"), "{text}");
        assert!(text.contains("Next: call heeler_list"), "{text}");
    }
}
