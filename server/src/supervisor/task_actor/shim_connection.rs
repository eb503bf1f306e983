//! The connection of an actor to the shim of its task.
//!
//! ```text
//!                launch                order or task file failed
//!  NotLaunched ─────────> Connected ─────────────────────────────> Unreachable ──┐
//!       │                  │  │  ^──────── reconcile: shim answers ──────┘  ^    │ retry, each
//!       │                  │  └─── disconnected: reconcile ─────────────────┘ <──┘ time later
//!       │ never launched   │ tree ended                                     │
//!       └──────────────────┴────────────> Gone <──── reconcile: tree ended ─┘
//! ```

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::process::shim::{ShimLink, ShimOrder, ShimReport};

/// The delay before the first retry, and the longest one.
const FIRST_RETRY: Duration = Duration::from_millis(10);
const LONGEST_RETRY: Duration = Duration::from_secs(1);
/// The time that a shim has to take an order.
pub(super) const ORDER_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum ShimConnection {
    /// No shim was launched, or none was looked for yet.
    NotLaunched,
    Connected(ShimLink),
    /// The task file cannot be used, or the shim or its tree lives and cannot be reached now.
    Unreachable {
        retry_at: Instant,
        delay: Duration,
    },
    /// The tree has ended: the shim was given back, or has exited.
    Gone,
}

#[derive(Debug)]
pub(super) enum ShimEvent {
    Report(ShimReport),
    /// The shim has closed the connection.
    Disconnected,
    /// It is time for another attempt to reach the shim.
    RetryDue,
}

impl ShimConnection {
    /// Waits for the next event; for ever where there is no shim. Cancel safe.
    pub(super) async fn next_event(&mut self) -> ShimEvent {
        match self {
            Self::Connected(link) => match link.next().await {
                Some(report) => ShimEvent::Report(report),
                None => ShimEvent::Disconnected,
            },
            Self::Unreachable { retry_at, .. } => {
                // On the heap: few actors wait for it.
                Box::pin(tokio::time::sleep_until(*retry_at)).await;
                ShimEvent::RetryDue
            }
            Self::NotLaunched | Self::Gone => std::future::pending().await,
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(self, Self::Connected(_))
    }

    pub(super) fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Sends an order, if there is a connection. After a failure the shim is unreachable. Orders that follow from the
    /// task's facts are sent again on the next connection; for input and sizes the caller asks again.
    pub(super) async fn send(&mut self, order: ShimOrder) {
        self.send_bytes(&order.encode()).await;
    }

    /// Sends orders with the bytes behind them, as [`Self::send`].
    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) {
        let Self::Connected(link) = self else { return };
        let sent = timeout(ORDER_WITHIN, link.send_bytes(bytes)).await;
        if !matches!(sent, Ok(Ok(()))) {
            self.set_unreachable();
        }
    }

    /// Drops the connection and schedules a retry, after twice the delay of the failed one.
    pub(super) fn set_unreachable(&mut self) {
        let delay = match self {
            Self::Unreachable { delay, .. } => (*delay * 2).min(LONGEST_RETRY),
            Self::NotLaunched | Self::Connected(_) | Self::Gone => FIRST_RETRY,
        };
        *self = Self::Unreachable {
            retry_at: Instant::now() + delay,
            delay,
        };
    }

    /// Drops the connection, as if none had been looked for.
    pub(super) fn forget(&mut self) {
        *self = Self::NotLaunched;
    }

    /// Drops the connection for good; returns the link, if there was one.
    pub(super) fn close(&mut self) -> Option<ShimLink> {
        match std::mem::replace(self, Self::Gone) {
            Self::Connected(link) => Some(link),
            Self::NotLaunched | Self::Unreachable { .. } | Self::Gone => None,
        }
    }
}
