//! A worker by the contract alone: it sends what a test tells it to, and nothing by itself.

use heeler_proto::v1::{
    BackgroundTask, Block, BlockKind, ProgressUpdate, TaskMessage, TaskSpec, WorkCancel,
    WorkHeartbeat, WorkJoin, WorkJoined, WorkMessageReceipt, WorkRegister, WorkRequest,
    WorkResponse, WorkerResult, WorkerStatus, work_request::Item as Request,
    work_response::Item as Response,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use crate::{
    Api,
    waiting::{DEADLINE, STEP, within},
};

/// A worker that has joined a task.
#[derive(Debug)]
pub struct Worker {
    requests: mpsc::UnboundedSender<WorkRequest>,
    responses: Streaming<WorkResponse>,
    /// The first answer.
    pub joined: WorkJoined,
    sequence: u64,
}

/// A registration of a hosted task with every default.
pub fn hosted() -> WorkRegister {
    WorkRegister {
        spec: Some(TaskSpec::default()),
        ..Default::default()
    }
}

/// A registration of this task.
pub fn hosted_as(spec: TaskSpec) -> WorkRegister {
    WorkRegister {
        spec: Some(spec),
        ..Default::default()
    }
}

/// A join of a task by a new worker.
pub fn join(id: &str) -> WorkJoin {
    WorkJoin {
        task_id: id.to_owned(),
        ..Default::default()
    }
}

/// A result with this status and text.
pub fn result(status: WorkerStatus, text: &str) -> WorkerResult {
    WorkerResult {
        status: status.into(),
        text: text.to_owned(),
        ..Default::default()
    }
}

/// A block of this kind.
pub fn block(kind: BlockKind, text: &str) -> Block {
    Block {
        kind: kind.into(),
        text: text.to_owned(),
        ..Default::default()
    }
}

/// An update with these notes.
pub fn notes<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> ProgressUpdate {
    let note = |text: T| block(BlockKind::Note, text.as_ref());
    ProgressUpdate {
        blocks: texts.into_iter().map(note).collect(),
        ..Default::default()
    }
}

impl Worker {
    /// Registers a hosted task, which must be accepted.
    #[track_caller]
    pub fn register(api: &Api, register: WorkRegister) -> impl Future<Output = Self> + use<> {
        expected(Self::begin(api, Request::Register(register)))
    }

    /// Joins a task, which must be accepted.
    #[track_caller]
    pub fn join(api: &Api, join: WorkJoin) -> impl Future<Output = Self> + use<> {
        expected(Self::begin(api, Request::Join(join)))
    }

    /// Comes back to the task of another connection, as the same worker.
    #[track_caller]
    pub fn rejoin(&self, api: &Api) -> impl Future<Output = Self> + use<> {
        let again = WorkJoin {
            worker_id: self.joined.worker_id.clone(),
            ..join(&self.id())
        };
        expected(Self::begin(api, Request::Join(again)))
    }

    /// Opens a stream with this first message.
    pub fn begin(api: &Api, first: Request) -> impl Future<Output = Result<Self, Status>> + use<> {
        let mut raw = api.raw();
        async move {
            let (requests, sent) = mpsc::unbounded_channel();
            let first = WorkRequest {
                item: Some(first),
                ..Default::default()
            };
            requests.send(first).expect("the receiver is here");
            let stream = UnboundedReceiverStream::new(sent);
            let responses = raw.work(stream).await?.into_inner();
            let mut worker = Self {
                requests,
                responses,
                joined: WorkJoined::default(),
                sequence: 0,
            };
            let first = worker.try_next().await?;
            let Response::Joined(joined) = first else {
                panic!("not joined: {first:?}");
            };
            worker.sequence = joined.acknowledged_sequence;
            Ok(worker)
        }
    }

    /// The id of the task.
    pub fn id(&self) -> String {
        self.task().id.clone()
    }

    /// The task when the worker joined.
    pub fn task(&self) -> &BackgroundTask {
        self.joined.task.as_ref().expect("a task")
    }

    /// Sends a message. One that the server can no longer receive is dropped.
    pub fn send(&self, sequence: u64, item: Request) {
        let item = Some(item);
        let _ = self.requests.send(WorkRequest { sequence, item });
    }

    /// Sends a heartbeat that is activity.
    pub fn beat(&self) {
        self.send(0, Request::Heartbeat(WorkHeartbeat::default()));
    }

    /// Sends a heartbeat that only keeps the lease.
    pub fn keep_lease(&self) {
        let lease_only = true;
        self.send(0, Request::Heartbeat(WorkHeartbeat { lease_only }));
    }

    /// Sends progress, and waits until it is acknowledged.
    pub async fn report(&mut self, update: ProgressUpdate) {
        self.sequence += 1;
        self.send(self.sequence, Request::Progress(update));
        self.acknowledged(self.sequence).await;
    }

    /// Waits until this number is acknowledged as recorded, which must be the next message.
    pub async fn acknowledged(&mut self, sequence: u64) {
        loop {
            let next = self.next().await;
            let Response::Acknowledged(one) = next else {
                panic!("{sequence} is not acknowledged: {next:?}");
            };
            assert!(one.unrecorded.is_none(), "{one:?}");
            if one.sequence >= sequence {
                return;
            }
        }
    }

    /// Sends the receipt of messages.
    pub fn received(&self, number: u64) {
        self.send(0, Request::Receipt(WorkMessageReceipt { number }));
    }

    /// Sends a result.
    pub fn deliver(&mut self, result: WorkerResult) {
        self.sequence += 1;
        self.send(self.sequence, Request::Result(result));
    }

    /// Delivers a result that ends the task, and returns the task.
    pub async fn finish(&mut self, result: WorkerResult) -> BackgroundTask {
        self.deliver(result);
        self.ended().await
    }

    /// Waits for the end of the task, past any other message.
    pub async fn ended(&mut self) -> BackgroundTask {
        loop {
            if let Response::Ended(ended) = self.next().await {
                return ended.task.expect("a task");
            }
        }
    }

    /// The next message, which must be a cancel.
    pub async fn cancelled(&mut self) -> WorkCancel {
        let next = self.next().await;
        let Response::Cancel(cancel) = next else {
            panic!("not a cancel: {next:?}");
        };
        cancel
    }

    /// The next message, which must be one of the mailbox.
    pub async fn message(&mut self) -> TaskMessage {
        let next = self.next().await;
        let Response::Message(message) = next else {
            panic!("not a message: {next:?}");
        };
        message
    }

    /// The next message.
    pub async fn next(&mut self) -> Response {
        self.try_next().await.expect("an open stream")
    }

    /// The next message, or the status that ended the stream.
    pub async fn try_next(&mut self) -> Result<Response, Status> {
        let message = within("a message to the worker", self.responses.message()).await?;
        let end = || Status::unavailable("the stream has ended");
        let item = message.ok_or_else(end)?.item.expect("an item");
        if let Response::Joined(joined) = &item {
            self.joined = joined.clone();
        }
        Ok(item)
    }

    /// Disconnects, and waits until the server has noticed.
    pub async fn leave(self, api: &Api) {
        let id = self.id();
        drop(self);
        let end = tokio::time::Instant::now() + DEADLINE;
        while is_connected(api, &id).await {
            assert!(tokio::time::Instant::now() < end, "still connected to {id}");
            tokio::time::sleep(STEP).await;
        }
    }

    /// Asserts that no further message comes before the stream ends.
    pub async fn assert_closed(&mut self) {
        let message = within("the end of the stream", self.responses.message()).await;
        assert!(matches!(message, Ok(None)), "{message:?}");
    }
}

async fn is_connected(api: &Api, id: &str) -> bool {
    let inspected = api.inspect(id).await.expect("a known task");
    inspected.worker.is_some_and(|worker| worker.connected)
}

/// The worker, or a panic that names the caller.
#[track_caller]
fn expected(begun: impl Future<Output = Result<Worker, Status>>) -> impl Future<Output = Worker> {
    let caller = std::panic::Location::caller();
    async move {
        begun
            .await
            .unwrap_or_else(|status| panic!("{caller}: refused: {status:?}"))
    }
}
