//! Waiting for a condition, with a deadline. Tests do not wait for a fixed time.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// The time limit of any step, on a machine that is busy with other tests.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The pause between two checks of a condition that has no notification.
pub const STEP: Duration = Duration::from_millis(5);

/// Waits until the condition holds.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    eventually_some(what, || condition().then_some(())).await;
}

/// Waits until the condition holds; returns false at the limit.
pub async fn eventually_or_not(mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        if Instant::now() > end {
            return false;
        }
        tokio::time::sleep(STEP).await;
    }
    true
}

/// Waits until `look` returns a value.
pub async fn eventually_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "not within {DEADLINE:?}: {what}");
        tokio::time::sleep(STEP).await;
    }
}

/// Blocks until the condition holds; returns false at the limit.
pub fn eventually_blocking(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(STEP);
    }
}

/// Awaits a future, which must complete within the deadline.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(done) => done,
        Err(_) => panic!("not within {DEADLINE:?}: {what}"),
    }
}

/// Awaits a future for at most a second, or gives it up.
pub async fn within_or<T>(future: impl Future<Output = T>, otherwise: impl FnOnce() -> T) -> T {
    let limit = Duration::from_secs(1);
    tokio::time::timeout(limit, future)
        .await
        .unwrap_or_else(|_| otherwise())
}
