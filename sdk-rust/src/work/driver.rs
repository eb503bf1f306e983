//! The task that keeps the stream of a worker: it reconnects, keeps the lease, and sends again what the
//! daemon has not acknowledged.

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use heeler_proto::v1::{
    ErrorReason, ProgressUpdate, TaskMessage, TaskState, WorkCancelMode, WorkHeartbeat, WorkJoin,
    WorkJoined, WorkMessageReceipt, WorkRequest, WorkResponse, WorkerResult, WorkerStatus,
    work_request::Item as Request, work_response::Item as Response,
};
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::{Over, State, outbox::Outbox};
use crate::{backoff::Backoff, client::Client, error::Error, time};

/// Signs of presence in the time of one lease.
const SIGNS_PER_LEASE: u32 = 3;

/// A command of a handle.
#[derive(Debug)]
pub(super) enum Command {
    Report(ProgressUpdate),
    Beat,
    Result(WorkerResult),
    /// All messages up to this number are received.
    Received(u64),
}

pub(super) struct Driver {
    client: Client,
    commands: mpsc::Receiver<Command>,
    state: watch::Sender<State>,
    messages: mpsc::Sender<TaskMessage>,
    stopping: CancellationToken,
    cancelled: CancellationToken,
    outbox: Outbox,
    /// The way back to the task.
    join: WorkJoin,
    lease: Option<Duration>,
    /// The latest message that was handed out.
    received: u64,
    /// False once the last handle is dropped.
    has_handles: bool,
}

/// An open stream.
struct Connection {
    requests: mpsc::UnboundedSender<WorkRequest>,
    responses: Streaming<WorkResponse>,
}

/// The reason why a stream is left.
enum Left {
    Broken(Status),
    /// The task is finished, or the worker has left it.
    Over,
}

impl Driver {
    pub(super) fn new(
        client: Client,
        commands: mpsc::Receiver<Command>,
        state: watch::Sender<State>,
        messages: mpsc::Sender<TaskMessage>,
        [stopping, cancelled]: [CancellationToken; 2],
    ) -> Self {
        Self {
            client,
            commands,
            state,
            messages,
            stopping,
            cancelled,
            outbox: Outbox::default(),
            join: WorkJoin::default(),
            lease: None,
            received: 0,
            has_handles: true,
        }
    }

    /// Opens the first stream, and runs in the background from then on. Returns the task's id.
    pub(super) async fn start(mut self, first: Request) -> Result<String, Error> {
        let open = || Connection::open(&self.client, first.clone());
        let (connection, joined) = self.client.repeat(Error::is_transient, open).await?;
        self.joined(joined)?;
        let id = self.join.task_id.clone();
        tokio::spawn(self.run(connection));
        Ok(id)
    }

    async fn run(mut self, mut connection: Connection) {
        let mut backoff = Backoff::new(None);
        loop {
            let status = match self.serve(connection).await {
                Left::Over => return,
                Left::Broken(status) => status,
            };
            let mut begun = Instant::now();
            let mut error = Error::from_status(status, self.client.address());
            connection = loop {
                if is_final(&error) || !self.is_needed() {
                    return self.over(Over::Failed(Arc::new(error)));
                }
                let pause = backoff.after_failure(error.attempt(begun.elapsed()));
                sleep(pause.unwrap_or_default()).await;
                if self.commands.is_closed() && self.commands.is_empty() {
                    self.last_handle_dropped();
                }
                begun = Instant::now();
                match self.reconnect().await {
                    Ok(connection) => break connection,
                    Err(failed) => error = failed,
                }
            };
            backoff.reset();
        }
    }

    async fn reconnect(&mut self) -> Result<Connection, Error> {
        let first = Request::Join(self.join.clone());
        let (connection, joined) = Connection::open(&self.client, first).await?;
        self.joined(joined)?;
        for request in self.outbox.unacknowledged() {
            connection.send(request);
        }
        Ok(connection)
    }

    fn joined(&mut self, joined: WorkJoined) -> Result<(), Error> {
        let task = joined.task.ok_or(Error::Incomplete { field: "task" })?;
        self.lease = joined.lease.map(time::from_proto);
        self.acknowledged(joined.acknowledged_sequence);
        // One that has ended in its queue was never admitted.
        let is_admitted = matches!(
            task.state(),
            TaskState::Starting | TaskState::Running | TaskState::Stopping
        );
        self.join = WorkJoin {
            task_id: task.id,
            worker_id: joined.worker_id,
            take_over: false,
        };
        self.state
            .send_modify(|state| state.is_admitted |= is_admitted);
        Ok(())
    }

    /// Serves one stream to its end.
    async fn serve(&mut self, mut connection: Connection) -> Left {
        loop {
            let sign = self.lease.map(|lease| lease / SIGNS_PER_LEASE);
            let sign = async {
                match sign {
                    Some(span) => sleep(span).await,
                    None => pending().await,
                }
            };
            let takes_commands = self.has_handles && self.outbox.has_room();
            tokio::select! {
                biased;
                response = connection.responses.message() => match response {
                    Ok(Some(WorkResponse { item })) => {
                        if let Some(over) = item.and_then(|item| self.take(item)) {
                            self.over(over);
                            return Left::Over;
                        }
                    }
                    Ok(None) => return Left::Broken(Status::unavailable("the stream ended")),
                    Err(status) => return Left::Broken(status),
                },
                command = self.commands.recv(), if takes_commands => match command {
                    Some(command) => self.carry_out(command, &connection),
                    None => {
                        let result = self.last_handle_dropped();
                        result.into_iter().for_each(|result| connection.send(result));
                    }
                },
                () = sign => connection.send(heartbeat(true)),
            }
            if !self.is_needed() {
                return Left::Over;
            }
        }
    }

    /// True while there is a handle, or a hosted task whose result is not delivered.
    fn is_needed(&self) -> bool {
        self.has_handles || (self.lease.is_some() && self.outbox.has_result())
    }

    /// A hosted task without a worker would be LOST after its lease: it gets a result instead.
    fn last_handle_dropped(&mut self) -> Option<WorkRequest> {
        self.has_handles = false;
        let has_result = self.state.borrow().is_delivered || self.outbox.has_result();
        if self.lease.is_none() || has_result {
            return None;
        }
        let dropped = WorkerResult {
            status: WorkerStatus::Cancelled.into(),
            text: "the worker was dropped before it delivered a result".to_owned(),
            ..WorkerResult::default()
        };
        Some(self.outbox.push(Request::Result(dropped)))
    }

    fn carry_out(&mut self, command: Command, connection: &Connection) {
        connection.send(match command {
            Command::Report(update) => self.outbox.push(Request::Progress(update)),
            Command::Result(result) => self.outbox.push(Request::Result(result)),
            Command::Beat => heartbeat(false),
            Command::Received(number) => {
                let receipt = WorkMessageReceipt { number };
                unnumbered(Request::Receipt(receipt))
            }
        });
    }

    /// Takes a message of the daemon; returns the end, if it is the last one.
    fn take(&mut self, item: Response) -> Option<Over> {
        match item {
            Response::Joined(_) => {}
            Response::Admitted(_) => self.state.send_modify(|state| state.is_admitted = true),
            Response::Cancel(cancel) => {
                let mode = cancel.mode();
                self.state.send_modify(|state| state.cancel = Some(cancel));
                self.stopping.cancel();
                if mode != WorkCancelMode::Soft {
                    self.cancelled.cancel();
                }
            }
            Response::Message(message) => {
                // After a reconnect the daemon sends those again that have no receipt.
                if message.number > self.received {
                    self.received = message.number;
                    let _ = self.messages.try_send(message);
                }
            }
            Response::Acknowledged(one) => self.acknowledged(one.sequence),
            Response::Ended(ended) => {
                let task = ended.task.unwrap_or_default();
                return Some(Over::Ended(Box::new(task)));
            }
        }
        None
    }

    fn acknowledged(&mut self, sequence: u64) {
        if self.outbox.acknowledge(sequence) {
            self.state.send_modify(|state| state.is_delivered = true);
        }
    }

    fn over(&self, over: Over) {
        self.stopping.cancel();
        self.cancelled.cancel();
        self.state.send_modify(|state| state.over = Some(over));
    }
}

impl Connection {
    async fn open(client: &Client, first: Request) -> Result<(Self, WorkJoined), Error> {
        let (requests, sent) = mpsc::unbounded_channel();
        let connection = async {
            // The receiver is here.
            let _ = requests.send(unnumbered(first));
            let stream = UnboundedReceiverStream::new(sent);
            let mut responses = client.raw().work(stream).await?.into_inner();
            let joined = responses.message().await?;
            Ok((responses, joined))
        };
        let opened: Result<_, Status> = connection.await;
        let (responses, joined) =
            opened.map_err(|status| Error::from_status(status, client.address()))?;
        let connection = Self {
            requests,
            responses,
        };
        match joined.and_then(|joined| joined.item) {
            Some(Response::Joined(joined)) => Ok((connection, joined)),
            Some(
                Response::Admitted(_)
                | Response::Cancel(_)
                | Response::Message(_)
                | Response::Acknowledged(_)
                | Response::Ended(_),
            )
            | None => Err(Error::Incomplete { field: "joined" }),
        }
    }

    /// Sends a message. On a broken stream it is dropped: a numbered one is sent again.
    fn send(&self, request: WorkRequest) {
        let _ = self.requests.send(request);
    }
}

fn unnumbered(item: Request) -> WorkRequest {
    WorkRequest {
        sequence: 0,
        item: Some(item),
    }
}

fn heartbeat(lease_only: bool) -> WorkRequest {
    unnumbered(Request::Heartbeat(WorkHeartbeat { lease_only }))
}

/// True if joining again would fail again.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Refused(refusal) => refusal.is_final() || refusal.is(ErrorReason::WorkerReplaced),
        Error::NotRunning { .. } | Error::Unreachable { .. } | Error::Disconnected { .. } => false,
        Error::Address(_)
        | Error::Credentials(_)
        | Error::NotInstalled { .. }
        | Error::DaemonStart { .. }
        | Error::Incomplete { .. }
        | Error::Worker(_) => true,
    }
}
