//! The gRPC edge: the only part of the server that names generated types or `Status`.
//!
//! ```text
//! http ──> transport ──> rpc ──> supervisor, journal
//!   JSON     who calls,    │ ^
//!            how many      v │
//!                        wire: checks, conversions, refusals
//! ```
//!
//! A bad request is refused here, before any other part of the server hears of it.

mod http;
mod metrics;
mod private_file;
mod rpc;
mod traces;
mod transport;
mod webhooks;
mod wire;

#[cfg(feature = "fuzz")]
pub(crate) use rpc::fuzz;

use std::sync::Arc;

use ::http::Extensions;
use heeler_proto::v1;
use tokio::sync::{Notify, watch};
use tonic::Status;

pub use self::http::{Dashboard, DashboardError};
pub(crate) use self::http::{Front, Guard, InProcess, serve as serve_http};
pub(crate) use metrics::Metrics;
pub use traces::TraceError;
pub(crate) use traces::Traces;
use transport::Call;
pub(crate) use transport::{Edge, Gate, ListenError, Listener, Tcp};
pub use webhooks::WebhookError;
pub(crate) use webhooks::{WebhookMeters, Webhooks};

use crate::{
    journal::Journal,
    supervisor::{Requester, Supervisor},
    task::{Authority, CallSpan, Filter, Rights, Scope, Task, TaskId, Timestamp},
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
    /// The party whose calls it serves: see [`Service::for_caller`].
    authority: Authority,
    /// The span of the call that it serves, if the server exports traces.
    span: Option<CallSpan>,
    reader: Reader,
}

/// The party that reads tasks and events. In the extensions of a call it is the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Reader {
    /// A client: an end that it gets is delivered.
    #[default]
    Client,
    /// The server itself, or a client of a read-only address: what it reads changes nothing.
    Observer,
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
        let key = journal.id_key();
        Self {
            supervisor,
            journal,
            started: Timestamp::now(),
            closing,
            end,
            encodings: Arc::new(Encodings::new(key)),
            authority: Authority::User,
            span: None,
            reader: Reader::Client,
        }
    }

    /// The service as the caller of a request may use it. A call without a known caller is not served.
    fn for_caller(&self, extensions: &Extensions) -> Result<Self, Status> {
        let authority = extensions.get::<Authority>().cloned();
        let authority =
            authority.ok_or_else(|| Status::internal("the call came without its caller"))?;
        Ok(Self {
            authority,
            span: extensions.get().copied(),
            reader: extensions.get().copied().unwrap_or_default(),
            ..self.clone()
        })
    }

    /// The party that asks for a task by this call.
    fn requester(&self) -> Requester {
        Requester {
            authority: self.authority.clone(),
            span: self.span,
        }
    }

    /// Returns a task by id, live or finished. A caller inside of a task finds that task and its descendants;
    /// another task is refused, whatever the call would do with it.
    async fn find(&self, id: &TaskId) -> Result<Arc<Task>, Refusal> {
        let task = match self.supervisor.live(id) {
            Some(handle) => handle.task(),
            None => {
                let task = self.journal.task(id).await?;
                task.ok_or_else(|| Refusal::task_not_found(id.as_str()))?
            }
        };
        match (self.authority.bound(), self.authority.sees(&task)) {
            (Some(own), false) => Err(Refusal::not_your_task(id, own)),
            (Some(_), true) | (None, _) => Ok(task),
        }
    }

    /// Returns a task on which the caller may act: for one inside of a task, a descendant of it.
    async fn find_to_act(&self, id: &TaskId) -> Result<Arc<Task>, Refusal> {
        let task = self.find(id).await?;
        match (self.authority.bound(), self.authority.acts_on(&task)) {
            (Some(own), false) => Err(Refusal::not_your_task(id, own)),
            (Some(_), true) | (None, _) => Ok(task),
        }
    }

    /// Checks that a caller inside of a task may report on a task: itself, or a descendant. What does not exist
    /// is refused later. The caller may have rights to nothing else.
    async fn check_reports(&self, id: &TaskId) -> Result<(), Refusal> {
        match self.authority.bound() {
            None => Ok(()),
            Some(own) if own == id => Ok(()),
            Some(own) if self.authority.rights() < Rights::Children => {
                Err(Refusal::not_your_task(id, own))
            }
            Some(_) => self.find(id).await.map(drop),
        }
    }

    /// Checks that the caller may act on a task.
    async fn check_acts(&self, id: &TaskId) -> Result<(), Refusal> {
        match self.authority.bound() {
            None => Ok(()),
            Some(_) => self.find_to_act(id).await.map(drop),
        }
    }

    /// Limits a filter to the tasks that the caller may see.
    fn seen(&self, filter: Filter) -> Filter {
        let scope = self.authority.bound().cloned().map(Scope::From);
        Filter { scope, ..filter }
    }

    /// Limits a filter to the tasks on which the caller may act.
    fn acted_on(&self, filter: Filter) -> Filter {
        let scope = self.authority.bound().cloned().map(Scope::Below);
        Filter { scope, ..filter }
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

    /// Notes that the reader is about to receive this task: if it is finished, its end is delivered to a client.
    fn note_delivered(&self, task: &Task) {
        match self.reader {
            Reader::Client => self.journal.note_delivered(task),
            Reader::Observer => {}
        }
    }

    /// The service for reading by the server itself.
    fn observing(&self) -> Self {
        Self {
            reader: Reader::Observer,
            ..self.clone()
        }
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
