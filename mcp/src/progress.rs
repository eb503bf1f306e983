//! Progress notifications while a call waits, so that clients which extend their time limit do, and people
//! see that something happens.

use std::time::{Duration, Instant};

use rmcp::model::ProgressNotificationParam;
use tokio::time::{MissedTickBehavior, interval_at};

use crate::{connection::Call, view::span};

const INTERVAL: Duration = Duration::from_secs(5);

/// Completes a call. Meanwhile the client is told that it goes on, if it asked for progress.
pub(crate) async fn with_progress<T>(
    call: &Call<'_>,
    what: &str,
    work: impl Future<Output = T>,
) -> T {
    let Some(token) = call.request.meta.get_progress_token() else {
        return work.await;
    };
    let begun = Instant::now();
    let mut ticks = interval_at((begun + INTERVAL).into(), INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => {
                let waited = begun.elapsed();
                let notice = ProgressNotificationParam::new(token.clone(), waited.as_secs_f64())
                    .with_message(format!("{what}: {}", span(waited)));
                // A client that is gone is noticed elsewhere.
                drop(call.request.peer.notify_progress(notice).await);
            }
        }
    }
}
