//! The client: one connection, shared by its clones, and a method for every call of the service.
//!
//! It adds typed errors and repetition to the generated stub, and nothing else: the calls take and
//! give the contract's own messages, or a builder that becomes one.

use std::time::{Duration, Instant};

use heeler_proto::v1::{
    CancelRequest, CancelResponse, CancelResult, DetachRequest, DetachResponse, DetachResult,
    InspectRequest, InspectResponse, ListQueuesRequest, ListQueuesResponse, ListRequest,
    ListResponse, ReadOutputRequest, ReadOutputResponse, RemoveRequest, RemoveResponse,
    ShutdownRequest, ShutdownResponse, SpawnRequest, SpawnResponse, UpdateQueueRequest,
    UpdateQueueResponse, WaitRequest, WaitResponse, background_tasks_client::BackgroundTasksClient,
};
use tokio::time::sleep;
use tonic::{Response, Status, service::interceptor::InterceptedService, transport::Channel};

use crate::{
    address::Address,
    attach::{Attach, AttachOptions},
    backoff::Backoff,
    cancel::CancelOptions,
    connect,
    credentials::{Bearer, ConnectOptions},
    detach::DetachOptions,
    error::Error,
    filter::Filter,
    list::Tasks,
    spawn::Spawn,
    task::Task,
    time,
    wait::Wait,
    watch::{Watch, WatchOptions},
};

/// The generated stub.
pub type Stub = BackgroundTasksClient<InterceptedService<Channel, Bearer>>;

/// A restart takes a fraction of this.
const DEFAULT_RETRY_FOR: Duration = Duration::from_secs(5);

/// A connection to a daemon. Clones share it; it comes back by itself when it breaks.
#[derive(Debug, Clone)]
pub struct Client {
    stub: Stub,
    address: Address,
    retry_for: Duration,
}

/// What a failed attempt leaves open, and so whether there may be another.
#[derive(Clone, Copy)]
enum Repeat {
    /// The call means the same when it is heard twice.
    Always,
    /// Only if it cannot have been heard.
    IfUnheard,
}

impl Client {
    /// Connects to the daemon at this address; over TCP with what the environment says of its token
    /// and its authority.
    pub async fn connect(address: Address) -> Result<Self, Error> {
        Self::connect_with(address, ConnectOptions::new()).await
    }

    /// Connects to the daemon at this address. Whether the token is its own shows with the first call.
    pub async fn connect_with(address: Address, options: ConnectOptions) -> Result<Self, Error> {
        let bearer = options.bearer(&address)?;
        let channel = connect::channel(&address, &options).await?;
        // A page is as large as its tasks; the daemon, which is trusted, bounds it.
        let stub = Stub::new(InterceptedService::new(channel, bearer))
            .max_decoding_message_size(usize::MAX);
        Ok(Self {
            stub,
            address,
            retry_for: DEFAULT_RETRY_FOR,
        })
    }

    /// Connects to the daemon at `HEELER_ADDR`, else to the user's own. Starts none.
    pub async fn connect_default() -> Result<Self, Error> {
        Self::connect(Address::from_env_or_default()?).await
    }

    /// How long calls of this client are repeated while the daemon is away; zero: not at all.
    pub fn retry_for(mut self, patience: Duration) -> Self {
        self.retry_for = patience;
        self
    }

    /// Where the daemon is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The generated stub, on the same connection: no repetition, no typed errors.
    pub fn raw(&self) -> Stub {
        self.stub.clone()
    }

    /// Starts a task and returns when its leader runs; one that has to wait for its turn, in a queue or for
    /// its exclusive key, is given at once.
    pub async fn spawn(&self, spawn: impl Into<SpawnRequest>) -> Result<Task, Error> {
        let started = self.spawn_response(spawn).await?.task;
        Ok(self.task(started.ok_or(Error::Incomplete { field: "task" })?.id))
    }

    /// As [`Client::spawn`], with the task's first state and its revision.
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

    /// Starts a task in the foreground and holds it: its output, and then its release. The task is
    /// [`Attach::task`].
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

    /// The handle of a task. Nothing is asked: the id may be unknown.
    pub fn task(&self, id: impl Into<String>) -> Task {
        Task::new(self.clone(), id.into())
    }

    /// Puts what the request names into the background.
    pub async fn detach(&self, request: DetachRequest) -> Result<DetachResponse, Error> {
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.detach(request).await }
        })
        .await
    }

    /// Puts whatever a session holds in the foreground into the background; none there: none.
    pub async fn detach_session(
        &self,
        session: impl Into<String>,
        options: DetachOptions,
    ) -> Result<Vec<DetachResult>, Error> {
        let filter = Filter::all().session(session);
        Ok(self.detach(options.of(filter)).await?.results)
    }

    /// Stops what the request names.
    pub async fn cancel(&self, request: CancelRequest) -> Result<CancelResponse, Error> {
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.cancel(request).await }
        })
        .await
    }

    /// Stops every live task of a session.
    pub async fn cancel_session(
        &self,
        session: impl Into<String>,
        options: CancelOptions,
    ) -> Result<Vec<CancelResult>, Error> {
        let filter = Filter::all().session(session);
        self.cancel_matching(filter, options).await
    }

    /// Stops every live task that matches. A filter that matches all is refused.
    pub async fn cancel_matching(
        &self,
        filter: Filter,
        options: CancelOptions,
    ) -> Result<Vec<CancelResult>, Error> {
        Ok(self.cancel(options.of(filter)).await?.results)
    }

    /// Every task that is asked for, page after page.
    pub fn list(&self, options: impl Into<ListRequest>) -> Tasks {
        Tasks::new(self.clone(), options.into())
    }

    /// One page of tasks, and the revision at which it was true.
    pub async fn list_page(&self, options: impl Into<ListRequest>) -> Result<ListResponse, Error> {
        let request = options.into();
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.list(request).await }
        })
        .await
    }

    /// One task whole.
    pub async fn inspect(&self, request: InspectRequest) -> Result<InspectResponse, Error> {
        self.call(Repeat::Always, |mut stub| {
            let request = request.clone();
            async move { stub.inspect(request).await }
        })
        .await
    }

    /// Every event from a point on, for as long as it is polled.
    pub fn watch(&self, options: WatchOptions) -> Watch {
        Watch::new(self.clone(), options)
    }

    /// Waits for tasks to be over, or released. The timeout counts across restarts of the daemon.
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

    /// Waits, for as long as it takes, until one of these is over.
    pub async fn wait_any<S: Into<String>>(
        &self,
        ids: impl IntoIterator<Item = S>,
    ) -> Result<WaitResponse, Error> {
        self.wait(Wait::any(ids)).await
    }

    /// Waits, for as long as it takes, until all of these are over.
    pub async fn wait_all<S: Into<String>>(
        &self,
        ids: impl IntoIterator<Item = S>,
    ) -> Result<WaitResponse, Error> {
        self.wait(Wait::all(ids)).await
    }

    /// One piece of a task's output.
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

    /// Forgets what the request names.
    pub async fn remove(&self, request: RemoveRequest) -> Result<RemoveResponse, Error> {
        self.call(Repeat::IfUnheard, |mut stub| {
            let request = request.clone();
            async move { stub.remove(request).await }
        })
        .await
    }

    /// Forgets every finished task that matches, and gives their ids.
    pub async fn remove_finished(&self, filter: Filter) -> Result<Vec<String>, Error> {
        let filter = Some(filter.into());
        let removed = self.remove(RemoveRequest { filter }).await?;
        Ok(removed.removed_task_ids)
    }

    /// Changes a queue, and gives it as it is then.
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

    /// Every queue that has live tasks, or is not set as any other.
    pub async fn queues(&self) -> Result<ListQueuesResponse, Error> {
        self.call(Repeat::Always, |mut stub| async move {
            stub.list_queues(ListQueuesRequest {}).await
        })
        .await
    }

    /// Ends the daemon. The answer comes as it begins to close: it is gone a moment later.
    pub async fn shutdown(&self, request: ShutdownRequest) -> Result<ShutdownResponse, Error> {
        // Unlike others it is not repeated until somebody hears it, for that would be the next daemon.
        let response = self.raw().shutdown(request).await;
        response
            .map(Response::into_inner)
            .map_err(|status| Error::from_status(status, &self.address))
    }

    async fn call<T, F>(&self, repeat: Repeat, attempt: impl Fn(Stub) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut backoff = Backoff::new(Some(self.retry_for));
        loop {
            let begun = Instant::now();
            let error = match attempt(self.raw()).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => Error::from_status(status, &self.address),
            };
            let again = match repeat {
                Repeat::Always => error.is_transient(),
                Repeat::IfUnheard => error.is_unheard(),
            };
            if !again {
                return Err(error);
            }
            match backoff.after_failure(begun.elapsed()) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
        }
    }
}
