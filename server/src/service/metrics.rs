//! The metrics of the server, in the text form of OpenMetrics.
//!
//! Counters and histograms are kept where their facts are and begin at zero with each server; everything else
//! is gathered at the request. No label has a value that clients can multiply: no task, no session, and at most
//! [`MOST_QUEUES`] queues. docs/METRICS.md lists them all.

mod families;
mod gather;

use std::sync::Arc;

use prometheus_client::{encoding::text, registry::Registry};
use tokio::{sync::Mutex, task::spawn_blocking};
use tonic::Status;

use self::gather::Sources;
use super::{WebhookMeters, transport::CallMeters};
use crate::{journal::Journal, supervisor::Supervisor};

/// The media type of the text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The most queues that have metrics of their own: the first ones by name that have settings.
const MOST_QUEUES: usize = 100;

/// The metrics; its clones are the same metrics.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    /// One request is served at a time.
    turn: Arc<Mutex<()>>,
}

impl Metrics {
    pub(crate) fn new(
        supervisor: Supervisor,
        journal: Journal,
        calls: CallMeters,
        webhooks: WebhookMeters,
    ) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Sources {
            supervisor,
            journal,
            calls,
            webhooks,
        }));
        Self {
            registry: Arc::new(registry),
            turn: Arc::default(),
        }
    }

    /// Gathers all metrics, beside the runtime: some are read from /proc.
    pub(super) async fn text(&self) -> Result<String, Status> {
        let _turn = self.turn.lock().await;
        let registry = Arc::clone(&self.registry);
        let encoded = spawn_blocking(move || {
            let mut metrics = String::new();
            text::encode(&mut metrics, &registry).map(|()| metrics)
        });
        let failed = || Status::internal("the metrics could not be gathered");
        encoded.await.map_err(|_| failed())?.map_err(|_| failed())
    }
}
