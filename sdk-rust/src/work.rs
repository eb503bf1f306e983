//! The worker's side of a task: its stop requests, its progress, its messages and its result.
//!
//! ```text
//!  Work handles ── commands ──> driver ── stream of Work ──> daemon
//!       ^────────── state ─────────┘  reconnects, sends again what was not acknowledged
//! ```

mod driver;
mod outbox;
mod progress;
mod result;

use std::sync::Arc;

use heeler_proto::v1::{
    BackgroundTask, ProgressUpdate, TaskMessage, WorkCancel, WorkJoin, WorkRegister, WorkerResult,
    work_request::Item as Request,
};
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::CancellationToken;

pub use progress::Progress;
pub use result::WorkResult;

use self::driver::{Command, Driver};
use crate::{client::Client, error::Error, request::Hosted, task::Task};

/// The variable that names the task of a process.
const OWN_TASK: &str = "HEELER_TASK_ID";
/// Commands that wait for the driver. Further ones wait for room.
const COMMANDS: usize = 64;
/// More messages than can be without a receipt.
const MESSAGES: usize = 128;

/// The worker of one task. Clones are the same worker; it leaves the task when the last one is dropped.
///
/// The connection is kept by itself, across restarts of the daemon, and so is the lease of a hosted task.
/// That is no sign of activity: a worker that hangs becomes stale. [`Work::report`] and
/// [`Work::heartbeat`] are.
#[derive(Debug, Clone)]
pub struct Work {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    task: Task,
    commands: mpsc::Sender<Command>,
    state: watch::Receiver<State>,
    stopping: CancellationToken,
    cancelled: CancellationToken,
    messages: Mutex<mpsc::Receiver<TaskMessage>>,
}

/// The driver's knowledge of the task.
#[derive(Debug, Clone, Default)]
struct State {
    is_admitted: bool,
    cancel: Option<WorkCancel>,
    is_delivered: bool,
    over: Option<Over>,
}

/// The end of the stream.
#[derive(Debug, Clone)]
enum Over {
    Ended(Box<BackgroundTask>),
    Failed(Arc<Error>),
}

impl Over {
    fn into_result(self) -> Result<BackgroundTask, Error> {
        match self {
            Self::Ended(task) => Ok(*task),
            Self::Failed(error) => Err(Error::Worker(error)),
        }
    }
}

impl Client {
    /// Registers a hosted task, runs the body as its worker, and delivers what the body returns. Returns the
    /// finished task.
    ///
    /// The body runs once the task is admitted. It learns by [`Work::stopping`] that it should begin nothing
    /// new, and by [`Work::cancelled`] that it should return now. The task may end before the body does;
    /// then its return value is dropped.
    ///
    /// ```no_run
    /// use heeler_client::{Client, Error, Hosted, Progress, WorkResult};
    ///
    /// # async fn review(step: u32) -> String { step.to_string() }
    /// # async fn example(client: Client) -> Result<(), Error> {
    /// let task = client
    ///     .host(Hosted::new().session("s1").name("review"), |work| async move {
    ///         let mut findings = String::new();
    ///         for step in 1..=10 {
    ///             if work.stopping().is_cancelled() {
    ///                 return WorkResult::cancelled(findings);
    ///             }
    ///             findings += &review(step).await;
    ///             work.report(Progress::new().percent(step * 10)).await;
    ///         }
    ///         WorkResult::ok(findings)
    ///     })
    ///     .await?;
    /// println!("{:?}", task.state());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn host<B, F>(&self, hosted: Hosted, body: B) -> Result<BackgroundTask, Error>
    where
        B: FnOnce(Work) -> F,
        F: Future<Output: Into<WorkResult>>,
    {
        let work = self.register(hosted).await?;
        if let Some(ended) = work.admitted().await? {
            return Ok(ended);
        }
        let result = body(work.clone()).await;
        work.finish(result).await
    }

    /// Registers a hosted task. Returns when the task exists, QUEUED or RUNNING.
    pub async fn register(&self, hosted: impl Into<WorkRegister>) -> Result<Work, Error> {
        self.work(Request::Register(hosted.into())).await
    }

    /// Joins a task that exists as its worker.
    pub async fn join(&self, task_id: impl Into<String>) -> Result<Work, Error> {
        let join = WorkJoin {
            task_id: task_id.into(),
            ..WorkJoin::default()
        };
        self.work(Request::Join(join)).await
    }

    /// Joins the task that this process runs in; `None` if it runs in none.
    pub async fn current(&self) -> Result<Option<Work>, Error> {
        match std::env::var(OWN_TASK) {
            Ok(id) => self.join(id).await.map(Some),
            Err(_) => Ok(None),
        }
    }

    async fn work(&self, first: Request) -> Result<Work, Error> {
        let (commands, received) = mpsc::channel(COMMANDS);
        let (messages_in, messages) = mpsc::channel(MESSAGES);
        let (state_in, state) = watch::channel(State::default());
        let tokens = [CancellationToken::new(), CancellationToken::new()];
        let [stopping, cancelled] = tokens.clone();
        let driver = Driver::new(self.clone(), received, state_in, messages_in, tokens);
        let id = driver.start(first).await?;
        Ok(Work {
            shared: Arc::new(Shared {
                task: self.task(id),
                commands,
                state,
                stopping,
                cancelled,
                messages: Mutex::new(messages),
            }),
        })
    }
}

impl Work {
    /// The handle of the task.
    pub fn task(&self) -> &Task {
        &self.shared.task
    }

    /// Cancelled when the task is asked to stop: finish the present tool call and begin no new one.
    pub fn stopping(&self) -> &CancellationToken {
        &self.shared.stopping
    }

    /// Cancelled when the work must stop now: the soft phase of a stop is over, or the task has ended.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.shared.cancelled
    }

    /// The latest request to stop, with its reason and its deadline.
    pub fn cancel_request(&self) -> Option<WorkCancel> {
        self.shared.state.borrow().cancel.clone()
    }

    /// Waits until a queued task may begin. Returns the task if it has ended instead.
    pub async fn admitted(&self) -> Result<Option<BackgroundTask>, Error> {
        let state = self.until(|state| state.is_admitted).await?;
        match state.over {
            Some(over) if !state.is_admitted => over.into_result().map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// Reports progress, which counts as activity. It waits only if the daemon is slow or away; what was
    /// taken is sent again until the daemon has acknowledged it. After the end of the task it does nothing.
    pub async fn report(&self, progress: impl Into<ProgressUpdate>) {
        self.command(Command::Report(progress.into())).await;
    }

    /// Says that the work goes on. Counts as activity.
    pub async fn heartbeat(&self) {
        self.command(Command::Beat).await;
    }

    /// The next message to the task; `None` after its end. A message is received once this returns it, and is
    /// returned once.
    pub async fn message(&self) -> Option<TaskMessage> {
        let message = self.shared.messages.lock().await.recv().await?;
        self.command(Command::Received(message.number)).await;
        Some(message)
    }

    /// Delivers the result, and returns when it is durable. It ends a hosted task; the processes of any other
    /// task go on until they exit.
    pub async fn deliver(&self, result: impl Into<WorkResult>) -> Result<(), Error> {
        let result = WorkerResult::from(result.into());
        self.command(Command::Result(result)).await;
        let state = self.until(|state| state.is_delivered).await?;
        match state.over {
            Some(Over::Failed(error)) if !state.is_delivered => Err(Error::Worker(error)),
            Some(_) | None => Ok(()),
        }
    }

    /// Delivers the result of a hosted task, and returns the finished task.
    pub async fn finish(&self, result: impl Into<WorkResult>) -> Result<BackgroundTask, Error> {
        self.deliver(result).await?;
        self.ended().await
    }

    /// Waits for the end of the task.
    pub async fn ended(&self) -> Result<BackgroundTask, Error> {
        let over = self.until(|_| false).await?.over;
        over.map_or(Err(Error::Incomplete { field: "ended" }), Over::into_result)
    }

    /// Waits until a condition holds, or the stream is over.
    async fn until(&self, condition: impl Fn(&State) -> bool) -> Result<State, Error> {
        let mut state = self.shared.state.clone();
        let found = state.wait_for(|state| condition(state) || state.over.is_some());
        let found = found.await.map(|state| state.clone());
        found.map_err(|_| Error::Incomplete { field: "ended" })
    }

    async fn command(&self, command: Command) {
        // After the end there is no driver.
        let _ = self.shared.commands.send(command).await;
    }
}
