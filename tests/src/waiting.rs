//! Waiting for a condition, with a deadline: never for a length of time.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// How long anything may take on a machine that is busy with other tests.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Between two looks at something that cannot tell of itself.
pub const STEP: Duration = Duration::from_millis(5);

/// Until the condition holds.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    eventually_some(what, || condition().then_some(())).await;
}

/// Until there is something.
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

/// The same where there is no runtime. Whether it came true.
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

/// What the future gives, which must come in time.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(done) => done,
        Err(_) => panic!("not within {DEADLINE:?}: {what}"),
    }
}
