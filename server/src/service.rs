//! The gRPC edge: the only part of the server that names generated types or `Status`.
//!
//! ```text
//! transport ──> rpc ──> supervisor, journal
//!   who calls,    │ ^
//!   how many      v │
//!               wire: checks, conversions, refusals
//! ```
//!
//! A bad request is refused here, before any other part of the server hears of it.

mod rpc;
mod transport;
mod wire;

#[cfg(feature = "fuzz")]
pub(crate) use rpc::fuzz;

use std::sync::Arc;

use heeler_proto::v1;
use tokio::sync::{Notify, watch};

use transport::Call;
pub(crate) use transport::{Edge, Gate, ListenError, Listener, Tcp};

use crate::{
    journal::Journal,
    supervisor::Supervisor,
    task::{Filter, Task, TaskId, Timestamp},
};
use wire::{convert, encodings::Encodings, refusal::Refusal};

/// The service's name, as in health checks and paths.
pub(crate) const NAME: &str = "heeler.v1.BackgroundTasks";

/// The largest request: it comes back in events and lists, of which clients accept 4 MiB.
pub(crate) const LARGEST_REQUEST: usize = 3 * 1024 * 1024;

/// The service.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    supervisor: Supervisor,
    /// For reading only.
    journal: Journal,
    started: Timestamp,
    closing: Closing,
    end: End,
    encodings: Arc<Encodings>,
}

/// Announces that the server is shutting down.
#[derive(Debug, Clone)]
pub(crate) struct Closing(watch::Receiver<bool>);

impl Closing {
    /// Begins when the sender sends true or is dropped.
    pub(crate) fn new(closing: watch::Receiver<bool>) -> Self {
        Self(closing)
    }

    fn has_begun(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits until the server is shutting down.
    pub(crate) async fn begun(&self) {
        let mut closing = self.0.clone();
        let _ = closing.wait_for(|closing| *closing).await;
    }
}

/// The request of a call to end the server.
#[derive(Debug, Clone, Default)]
pub(crate) struct End(Arc<Notify>);

impl End {
    fn request(&self) {
        self.0.notify_one();
    }

    /// Waits until a call has requested the end.
    pub(crate) async fn requested(&self) {
        self.0.notified().await;
    }
}

impl Service {
    /// Serves a supervisor. The gate refuses calls until it has recovered its tasks.
    pub(crate) fn new(
        supervisor: Supervisor,
        journal: Journal,
        closing: Closing,
        end: End,
    ) -> Self {
        Self {
            supervisor,
            journal,
            started: Timestamp::now(),
            closing,
            end,
            encodings: Arc::default(),
        }
    }

    /// Returns a task by id, live or finished.
    async fn find(&self, id: &TaskId) -> Result<Arc<Task>, Refusal> {
        if let Some(handle) = self.supervisor.live(id) {
            return Ok(handle.task());
        }
        let task = self.journal.task(id).await?;
        task.ok_or_else(|| Refusal::task_not_found(id.as_str()))
    }

    /// Checks a request with regular expressions, whose compilation takes time, in its client's turn.
    async fn check_patterns<T: Send + 'static>(
        &self,
        call: &Call,
        check: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let checked = self.supervisor.in_turn(call.search_key(), check).await;
        checked.map_err(|error| Refusal::storage("check the patterns", &error))?
    }

    /// Looks up the listeners of the port that a filter names, if it does.
    async fn with_listeners(&self, mut filter: Filter) -> Filter {
        if let Some(port) = &mut filter.port {
            port.listeners = self.supervisor.listening_on(port.port).await;
        }
        filter
    }

    /// Notes that a client is about to receive this task: if it is finished, its end is delivered.
    fn note_delivered(&self, task: &Task) {
        self.journal.note_delivered(task);
    }

    /// The newest revision.
    fn revision(&self) -> u64 {
        self.journal.head().0
    }

    fn info(&self) -> v1::ServerInfo {
        let containment = self.supervisor.containment();
        v1::ServerInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: self.journal.epoch().to_string(),
            containment: convert::containment(containment.containment()).into(),
            containment_detail: containment.detail().to_owned(),
            start_time: Some(convert::timestamp(self.started)),
            live_tasks: self.supervisor.running_count() as u32,
            max_live_tasks: self.supervisor.limits().tasks as u32,
        }
    }
}
