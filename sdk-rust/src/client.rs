//! The client: one connection, shared by its clones, and a method for every call of the service.
//!
//! It adds typed errors and retries to the generated stub. The calls take and return the contract's own
//! messages, or take a builder that becomes one.

use std::time::{Duration, Instant};

use heeler_proto::v1::{
    CancelRequest, CancelResponse, CancelResult, DetachRequest, DetachResponse, DetachResult,
    FollowOutputRequest, InspectRequest, InspectResponse, ListQueuesRequest, ListQueuesResponse,
    ListRequest, ListResponse, ListSessionsRequest, ListSessionsResponse, ReadOutputRequest,
    ReadOutputResponse, RemoveRequest, RemoveResponse, ReportProgressRequest,
    ReportProgressResponse, ResizeTerminalRequest, ResizeTerminalResponse, SendMessageRequest,
    SendMessageResponse, SessionInfo, ShutdownRequest, ShutdownResponse, SpawnRequest,
    SpawnResponse, UpdateQueueRequest, UpdateQueueResponse, UpdateTaskRequest, UpdateTaskResponse,
    WaitRequest, WaitResponse, WriteInputRequest, WriteInputResponse,
    background_tasks_client::BackgroundTasksClient,
};
use tokio::time::sleep;
use tonic::{Response, Status, service::interceptor::InterceptedService, transport::Channel};

use crate::{
    backoff::Backoff,
    connect::{Address, ConnectOptions, Headers, channel, start},
    error::Error,
    request::{CancelOptions, DetachOptions, Filter, Spawn, Wait},
    session::Session,
    stream::{Attach, AttachOptions, Follow, Tasks, Watch, WatchOptions},
    task::Task,
    time,
};

/// The generated stub.
pub type Stub = BackgroundTasksClient<Connection>;

/// A gRPC service that takes calls of any method, with the token.
pub type Connection = InterceptedService<Channel, Headers>;

/// Long enough for a restart of the daemon.
const DEFAULT_RETRY_FOR: Duration = Duration::from_secs(5);

/// A connection to a daemon. Clones share it, and it reconnects by itself.
#[derive(Debug, Clone)]
pub struct Client {
    stub: Stub,
    connection: Connection,
    address: Address,
    retry_for: Duration,
}

/// The condition under which a failed call is repeated.
#[derive(Clone, Copy)]
enum Repeat {
    /// The call has the same effect if it is received twice.
    Always,
    /// Only if the daemon cannot have received it.
    IfUnheard,
}

impl Client {
    /// Connects to the daemon at this address; over TCP with the token and the authority that the
    /// environment names.
    pub async fn connect(address: Address) -> Result<Self, Error> {
        Self::connect_with(address, ConnectOptions::new()).await
    }

    /// Connects to the daemon at this address. A wrong token is refused with the first call.
    pub async fn connect_with(address: Address, options: ConnectOptions) -> Result<Self, Error> {
        let headers = options.headers(&address)?;
        let channel = channel::channel(&address, &options).await?;
        // The daemon is trusted, and bounds the size of its answers.
        let connection = InterceptedService::new(channel, headers);
        let stub = Stub::new(connection.clone()).max_decoding_message_size(usize::MAX);
        Ok(Self {
            stub,
            connection,
            address,
            retry_for: DEFAULT_RETRY_FOR,
        })
    }

    /// Connects to the daemon at `HEELER_ADDR`, else to the user's own. It does not start one.
    pub async fn connect_default() -> Result<Self, Error> {
        Self::connect(Address::from_env_or_default()?).await
    }

    /// As [`Client::connect_default`], and starts the user's own daemon if it is not running, by the command
    /// `heeler`: the one that `HEELER_BINARY` names, else the one on the PATH.
    pub async fn connect_or_start() -> Result<Self, Error> {
        Self::connect_or_start_with(ConnectOptions::new()).await
    }

    /// As [`Client::connect_or_start`], with options: [`ConnectOptions::program`] names the command.
    pub async fn connect_or_start_with(options: ConnectOptions) -> Result<Self, Error> {
        start::connect_or_start(options).await
    }

    /// Maximum time for which calls are repeated while the daemon is unavailable. Zero: no retries.
    pub fn retry_for(mut self, limit: Duration) -> Self {
        self.retry_for = limit;
        self
    }

    /// The address of the daemon.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The generated stub on the same connection, without retries and typed errors.
    pub fn raw(&self) -> Stub {
        self.stub.clone()
    }

    /// The same connection for generic calls, such as those of a proxy.
    pub fn connection(&self) -> Connection {
        self.connection.clone()
    }

    /// Starts a task and returns when its leader runs. A task that must wait in a queue or for its
    /// exclusive key is returned at once.
    pub async fn spawn(&self, spawn: impl Into<SpawnRequest>) -> Result<Task, Error> {
        let started = self.spawn_response(spawn).await?.task;
        Ok(self.task(started.ok_or(Error::Incomplete { field: "task" })?.id))
    }

    /// As [`Client::spawn`], with the task's first state and the notices.
    pub async fn spawn_response(
        &self,
        spawn: impl Into<SpawnRequest>,
    ) -> Result<SpawnResponse, Error> {
        let request = spawn.into();
        let repeat = match request.request_id.as_str() {
            "" => Repeat::IfUnheard,
            _ => Repeat::Always,
        };
        self.call(repeat, |mut stub| {
            let request = request.clone();
            async move { stub.spawn(request).await }
        })
        .await
    }

    /// Starts a task in the foreground and attaches to it. The task is [`Attach::task`].
    ///
    /// ```no_run
    /// use heeler_client::{Client, Error, Spawn, v1::AttachEndReason};
    ///
    /// # async fn example(client: Client) -> Result<(), Error> {
    /// let mut run = client.run(Spawn::shell("make test").session("s1")).await?;
    /// let ended = run.ended(|chunk| print!("{}", String::from_utf8_lossy(&chunk.data))).await?;
    /// match ended.reason {
    ///     AttachEndReason::Detached => println!("{} continues", ended.task.id),
    ///     _ => println!("{:?}", ended.task.outcome),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run(&self, spawn: Spawn) -> Result<Attach, Error> {
        let task = self.spawn(spawn.foreground()).await?;
        Ok(task.attach_with(AttachOptions::default().foreground_only()))
    }

    /// The handle of a task. It makes no call, so the id may be unknown.
    pub fn task(&self, id: impl Into<String>) -> Task {
        Task::new(self.clone(), id.into())
    }

    /// The handle of a session. It makes no call. An empty id is refused: it would select every session.
    pub fn session(&self, id: impl Into<String>) -> Result<Session, Error> {
        match id.into() {
            id if id.is_empty() => Err(Error::bad_field("session_id", "is empty")),
            id => Ok(Session::new(self.clone(), id)),
        }
    }

    /// Moves the tasks that a filter names by id, else the foreground ones that match, to the background.
    /// An empty filter is refused.
    pub async fn detach(
        &self,
        filter: Filter,
        options: DetachOptions,
    ) -> Result<Vec<DetachResult>, Error> {
        Ok(self.detach_response(options.of(filter)).await?.results)
    }

    /// As [`Client::detach`], by the message of the contract.
    pub async fn detach_response(&self, request: DetachRequest) -> Result<DetachResponse, Error> {
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.detach(request).await }
        })
        .await
    }

    /// Moves every foreground task of a session to the background.
    pub async fn detach_session(
        &self,
        session: impl Into<String>,
        options: DetachOptions,
    ) -> Result<Vec<DetachResult>, Error> {
        let filter = Filter::all().session(session);
        self.detach(filter, options).await
    }

    /// Stops the tasks that a filter names by id, else the live ones that match. An empty filter is
    /// refused.
    pub async fn cancel(
        &self,
        filter: Filter,
        options: CancelOptions,
    ) -> Result<Vec<CancelResult>, Error> {
        Ok(self.cancel_response(options.of(filter)).await?.results)
    }

    /// As [`Client::cancel`], by the message of the contract.
    pub async fn cancel_response(&self, request: CancelRequest) -> Result<CancelResponse, Error> {
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.cancel(request).await }
        })
        .await
    }

    /// Stops one task and returns when every process of it is proven gone. It is not an error if it is
    /// finished already; the result says so.
    pub async fn cancel_background_task(
        &self,
        id: impl Into<String>,
    ) -> Result<CancelResult, Error> {
        let options = CancelOptions::graceful();
        self.task(id).cancel(options).await
    }

    /// Stops every live task of a session.
    pub async fn cancel_session(
        &self,
        session: impl Into<String>,
        options: CancelOptions,
    ) -> Result<Vec<CancelResult>, Error> {
        let filter = Filter::all().session(session);
        self.cancel(filter, options).await
    }

    /// Lists tasks, as one stream over all pages.
    pub fn list(&self, options: impl Into<ListRequest>) -> Tasks {
        Tasks::new(self.clone(), options.into())
    }

    /// Returns one page of tasks, and the revision at which it was true.
    pub async fn list_page(&self, options: impl Into<ListRequest>) -> Result<ListResponse, Error> {
        let request = options.into();
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.list(request).await }
        })
        .await
    }

    /// Returns one task with its processes, its resource use and the end of its output.
    pub async fn inspect(&self, request: InspectRequest) -> Result<InspectResponse, Error> {
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.inspect(request).await }
        })
        .await
    }

    /// Streams events.
    pub fn watch(&self, options: WatchOptions) -> Watch {
        Watch::new(self.clone(), options)
    }

    /// Waits until tasks are finished, out of the foreground, or have written a line. The timeout counts across restarts of the
    /// daemon.
    pub async fn wait(&self, wait: impl Into<WaitRequest>) -> Result<WaitResponse, Error> {
        let request = wait.into();
        let begun = Instant::now();
        self.call(Repeat::Always, |mut stub| {
            let mut request = request.clone();
            if let Some(timeout) = request.timeout {
                let left = time::from_proto(timeout).saturating_sub(begun.elapsed());
                request.timeout = Some(time::to_proto(left));
            }
            async move { stub.wait(request).await }
        })
        .await
    }

    /// Waits without a limit until one of these tasks is finished.
    pub async fn wait_any<S: Into<String>>(
        &self,
        ids: impl IntoIterator<Item = S>,
    ) -> Result<WaitResponse, Error> {
        self.wait(Wait::any(ids)).await
    }

    /// Waits without a limit until all of these tasks are finished.
    pub async fn wait_all<S: Into<String>>(
        &self,
        ids: impl IntoIterator<Item = S>,
    ) -> Result<WaitResponse, Error> {
        self.wait(Wait::all(ids)).await
    }

    /// Reads a piece of a task's output.
    pub async fn read_output(
        &self,
        request: ReadOutputRequest,
    ) -> Result<ReadOutputResponse, Error> {
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.read_output(request).await }
        })
        .await
    }

    /// Streams the output of many tasks, also of tasks that start later.
    pub fn follow_output(&self, request: FollowOutputRequest) -> Follow {
        Follow::new(self.clone(), request)
    }

    /// Writes to the input of a task. With an offset, or without data, the call is safe to repeat.
    /// [`Task::input`] is the same as a writer.
    pub async fn write_input(
        &self,
        request: WriteInputRequest,
    ) -> Result<WriteInputResponse, Error> {
        let repeat = match request.offset.is_some() || request.data.is_empty() {
            true => Repeat::Always,
            false => Repeat::IfUnheard,
        };
        self.call(repeat, |mut stub| {
            let request = request.clone();
            async move { stub.write_input(request).await }
        })
        .await
    }

    /// Changes the size of a task's terminal.
    pub async fn resize_terminal(
        &self,
        request: ResizeTerminalRequest,
    ) -> Result<ResizeTerminalResponse, Error> {
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.resize_terminal(request).await }
        })
        .await
    }

    /// Changes the patterns that are looked for in the output of a live task.
    pub async fn update_task(
        &self,
        request: UpdateTaskRequest,
    ) -> Result<UpdateTaskResponse, Error> {
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.update_task(request).await }
        })
        .await
    }

    /// Reports progress of a task, and returns whether it is being stopped. It is repeated only if the
    /// daemon cannot have received it.
    pub async fn report_progress(
        &self,
        request: ReportProgressRequest,
    ) -> Result<ReportProgressResponse, Error> {
        self.call(Repeat::IfUnheard, |mut stub| {
            let request = request.clone();
            async move { stub.report_progress(request).await }
        })
        .await
    }

    /// Puts a message into the mailbox of a task. One with a `message_id` is safe to repeat.
    pub async fn send_message(
        &self,
        request: SendMessageRequest,
    ) -> Result<SendMessageResponse, Error> {
        let repeat = match request.message_id.as_str() {
            "" => Repeat::IfUnheard,
            _ => Repeat::Always,
        };
        self.call(repeat, |mut stub| {
            let request = request.clone();
            async move { stub.send_message(request).await }
        })
        .await
    }

    /// Removes the selected tasks and their output.
    pub async fn remove(&self, request: RemoveRequest) -> Result<RemoveResponse, Error> {
        self.call(Repeat::IfUnheard, |mut stub| {
            let request = request.clone();
            async move { stub.remove(request).await }
        })
        .await
    }

    /// Removes every finished task that matches, and returns their ids.
    pub async fn remove_finished(&self, filter: Filter) -> Result<Vec<String>, Error> {
        let filter = Some(filter.into());
        let removed = self.remove(RemoveRequest { filter }).await?;
        Ok(removed.removed_task_ids)
    }

    /// Changes the settings of a queue, and returns it.
    pub async fn update_queue(
        &self,
        update: impl Into<UpdateQueueRequest>,
    ) -> Result<UpdateQueueResponse, Error> {
        let request = update.into();
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.update_queue(request).await }
        })
        .await
    }

    /// Lists the queues that have live tasks or settings other than the defaults.
    pub async fn queues(&self) -> Result<ListQueuesResponse, Error> {
        self.call(Repeat::Always, |mut stub| async move {
            stub.list_queues(ListQueuesRequest {}).await
        })
        .await
    }

    /// Lists the sessions that have live tasks, one page.
    pub async fn list_sessions(
        &self,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.list_sessions(request).await }
        })
        .await
    }

    /// Lists all sessions that have live tasks, by id.
    pub async fn sessions(&self) -> Result<Vec<SessionInfo>, Error> {
        let mut sessions = Vec::new();
        let mut request = ListSessionsRequest::default();
        loop {
            let page = self.list_sessions(request.clone()).await?;
            sessions.extend(page.sessions);
            if page.next_page_token.is_empty() {
                return Ok(sessions);
            }
            request.page_token = page.next_page_token;
        }
    }

    /// Ends the daemon. The answer comes when it begins to close.
    pub async fn shutdown(&self, request: ShutdownRequest) -> Result<ShutdownResponse, Error> {
        // Never repeated: the next daemon would receive it.
        let response = self.raw().shutdown(request).await;
        response
            .map(Response::into_inner)
            .map_err(|status| Error::from_status(status, &self.address))
    }

    async fn call<T, F>(&self, repeat: Repeat, attempt: impl Fn(Stub) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let again = match repeat {
            Repeat::Always => Error::is_transient,
            Repeat::IfUnheard => Error::is_unheard,
        };
        let attempt = || async {
            let answer = attempt(self.raw()).await;
            answer
                .map(Response::into_inner)
                .map_err(|status| Error::from_status(status, &self.address))
        };
        self.repeat(again, attempt).await
    }

    /// Repeats attempts that fail with an error of this kind, within the time for retries.
    pub(crate) async fn repeat<T, F>(
        &self,
        again: impl Fn(&Error) -> bool,
        attempt: impl Fn() -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut backoff = Backoff::new(Some(self.retry_for));
        loop {
            let begun = Instant::now();
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if !again(&error) {
                return Err(error);
            }
            match backoff.after_failure(error.attempt(begun.elapsed())) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
        }
    }
}
