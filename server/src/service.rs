//! The gRPC edge: the only part of the server that names generated types or `Status`.
//!
//! Each call has a file of its own: it checks the request, asks the supervisor or reads the journal,
//! and puts the answer into the contract's words. What is wrong with a request is said here, before
//! anything further in has heard of it.

mod attach;
mod cancel;
mod check;
mod connection;
mod convert;
mod deadline;
mod detach;
mod encodings;
mod inspect;
mod layer;
mod list;
mod listen;
mod lobby;
mod output;
mod page_token;
mod queue;
mod refusal;
mod remove;
mod rules;
mod shutdown;
mod spawn;
mod stream;
mod tcp;
mod text;
mod tls;
mod token;
mod wait;
mod watch;

use std::sync::Arc;

use heeler_proto::{Encoded, server::BackgroundTasks, v1};
use tokio::sync::{Notify, watch as channel};
use tonic::{Request, Response, Status};

pub use layer::{Edge, Gate};
pub use listen::{ListenError, Listener};
pub use tcp::Tcp;

use crate::{
    journal::Journal,
    supervisor::Supervisor,
    task::{Actor, Task, TaskId, Timestamp},
};
use connection::Peer;
use encodings::Encodings;
use refusal::Refusal;

/// The service's name, as health checks know it.
pub const NAME: &str = "heeler.v1.BackgroundTasks";

/// The service.
#[derive(Debug, Clone)]
pub struct Service {
    supervisor: Supervisor,
    /// For reading only.
    journal: Journal,
    started: Timestamp,
    closing: Closing,
    end: End,
    encodings: Arc<Encodings>,
}

/// Tells what waits that the server is going down.
#[derive(Debug, Clone)]
pub struct Closing(channel::Receiver<bool>);

impl Closing {
    /// Once the sender says true, or is gone.
    pub fn new(closing: channel::Receiver<bool>) -> Self {
        Self(closing)
    }

    fn has_begun(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits for it.
    pub async fn begun(&self) {
        let mut closing = self.0.clone();
        let _ = closing.wait_for(|closing| *closing).await;
    }
}

/// How a call asks whoever runs the server to end it.
#[derive(Debug, Clone, Default)]
pub struct End(Arc<Notify>);

impl End {
    fn ask(&self) {
        self.0.notify_one();
    }

    /// Waits until a call has asked.
    pub async fn asked(&self) {
        self.0.notified().await;
    }
}

impl Service {
    /// Over a supervisor that has taken its tasks back.
    pub fn new(supervisor: Supervisor, journal: Journal, closing: Closing, end: End) -> Self {
        Self {
            supervisor,
            journal,
            started: Timestamp::now(),
            closing,
            end,
            encodings: Arc::default(),
        }
    }

    /// A task that is named, live or not.
    async fn find(&self, id: &TaskId) -> Result<Arc<Task>, Refusal> {
        if let Some(handle) = self.supervisor.live(id) {
            return Ok(handle.task());
        }
        let task = self.journal.task(id).await?;
        task.ok_or_else(|| Refusal::task_not_found(id.as_str()))
    }

    /// A client is about to have this task before its eyes: if it is over, its end has been seen.
    fn tell(&self, task: &Task) {
        self.journal.note_delivered(task);
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

/// Who calls, as the kernel tells it; of a caller over TCP it tells nothing.
fn caller<T>(request: &Request<T>, name: Option<String>) -> Actor {
    let cred = match request.extensions().get::<Peer>() {
        Some(Peer::Local(info)) => info.peer_cred,
        Some(Peer::Remote(_)) | None => None,
    };
    Actor {
        name,
        uid: cred.map(|cred| cred.uid()),
        pid: cred.and_then(|cred| cred.pid()),
    }
}

#[tonic::async_trait]
impl BackgroundTasks for Service {
    type AttachStream = stream::Messages<attach::Attachment>;
    type WatchEventsStream = stream::Messages<watch::Watcher>;

    async fn spawn(
        &self,
        request: Request<v1::SpawnRequest>,
    ) -> Result<Response<v1::SpawnResponse>, Status> {
        Ok(Response::new(
            spawn::spawn(self, request.into_inner()).await?,
        ))
    }

    async fn attach(
        &self,
        request: Request<v1::AttachRequest>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        Ok(Response::new(attach::attach(self, request).await?))
    }

    async fn detach(
        &self,
        request: Request<v1::DetachRequest>,
    ) -> Result<Response<v1::DetachResponse>, Status> {
        Ok(Response::new(detach::detach(self, request).await?))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelResponse>, Status> {
        Ok(Response::new(cancel::cancel(self, request).await?))
    }

    async fn list(
        &self,
        request: Request<v1::ListRequest>,
    ) -> Result<Response<Encoded<v1::ListResponse>>, Status> {
        Ok(Response::new(list::list(self, request.into_inner()).await?))
    }

    async fn inspect(
        &self,
        request: Request<v1::InspectRequest>,
    ) -> Result<Response<Encoded<v1::InspectResponse>>, Status> {
        Ok(Response::new(
            inspect::inspect(self, request.into_inner()).await?,
        ))
    }

    async fn watch_events(
        &self,
        request: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        Ok(Response::new(watch::watch_events(self, request).await?))
    }

    async fn wait(
        &self,
        request: Request<v1::WaitRequest>,
    ) -> Result<Response<v1::WaitResponse>, Status> {
        Ok(Response::new(wait::wait(self, request.into_inner()).await?))
    }

    async fn read_output(
        &self,
        request: Request<v1::ReadOutputRequest>,
    ) -> Result<Response<v1::ReadOutputResponse>, Status> {
        Ok(Response::new(
            output::read_output(self, request.into_inner()).await?,
        ))
    }

    async fn remove(
        &self,
        request: Request<v1::RemoveRequest>,
    ) -> Result<Response<v1::RemoveResponse>, Status> {
        Ok(Response::new(
            remove::remove(self, request.into_inner()).await?,
        ))
    }

    async fn update_queue(
        &self,
        request: Request<v1::UpdateQueueRequest>,
    ) -> Result<Response<v1::UpdateQueueResponse>, Status> {
        Ok(Response::new(
            queue::update(self, request.into_inner()).await?,
        ))
    }

    async fn list_queues(
        &self,
        _request: Request<v1::ListQueuesRequest>,
    ) -> Result<Response<v1::ListQueuesResponse>, Status> {
        Ok(Response::new(queue::list(self)))
    }

    async fn shutdown(
        &self,
        request: Request<v1::ShutdownRequest>,
    ) -> Result<Response<v1::ShutdownResponse>, Status> {
        Ok(Response::new(shutdown::shutdown(self, request).await?))
    }
}
