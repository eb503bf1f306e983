//! A task's input as a writer.
//!
//! A future of its own makes the calls, so that what was written is on its way without further polls. Each call
//! has the offset of its data: one that is repeated after a break, also with a restarted daemon, changes nothing.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use heeler_proto::v1::{ErrorReason, WriteInputRequest};
use tokio::{
    io::AsyncWrite,
    sync::{
        mpsc::{self, Receiver},
        oneshot,
    },
};
use tokio_util::sync::PollSender;
use tonic::codegen::Bytes;
use uuid::Uuid;

use crate::{client::Client, error::Error, time};

/// The most bytes of one poll, and the number of such pieces that wait.
const PIECE: usize = 64 * 1024;
const PIECES: usize = 16;
/// The most bytes of one call.
const CALL: usize = 1 << 20;
/// The time that a call waits for room. It is repeated then.
const WAIT: Duration = Duration::from_secs(60);

/// The options of a writer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputOptions {
    writer_id: Option<String>,
    take_over: bool,
    give_up_after: Option<Duration>,
}

impl InputOptions {
    /// The writer's id, up to 48 bytes: a random one unless set. Empty: a writer without an id.
    pub fn writer_id(mut self, id: impl Into<String>) -> Self {
        self.writer_id = Some(id.into());
        self
    }

    /// Takes the input from the writer that has it.
    pub fn take_over(mut self) -> Self {
        self.take_over = true;
        self
    }

    /// Maximum time for which the daemon may be unavailable; without it there is no limit.
    pub fn give_up_after(mut self, limit: Duration) -> Self {
        self.give_up_after = Some(limit);
        self
    }
}

/// A writer to the stdin or the terminal of a task, from [`Task::input`](crate::Task::input).
///
/// A write returns when the bytes are on their way, a flush when the task has them, a shutdown when the input is
/// closed behind them. A daemon that is away is waited for. Dropping the writer sends what was written, and leaves the
/// input open. A task that does not read stops the writer; one whose input is closed, or that has ended, breaks it
/// ([`io::ErrorKind::BrokenPipe`]). The source of every error is an [`Error`].
#[derive(Debug)]
pub struct InputWriter {
    jobs: PollSender<Job>,
    awaited: Option<oneshot::Receiver<()>>,
    failure: Failure,
    writer_id: String,
}

#[derive(Debug)]
enum Job {
    Write(Bytes),
    Flush(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

/// The error that has ended the calls.
type Failure = Arc<Mutex<Option<Arc<Error>>>>;

impl InputWriter {
    pub(crate) fn new(client: Client, task_id: &str, options: InputOptions) -> Self {
        let (jobs, jobs_end) = mpsc::channel(PIECES);
        let failure = Failure::default();
        let writer_id = options.writer_id;
        let writer_id = writer_id.unwrap_or_else(|| Uuid::now_v7().to_string());
        let mut driver = Driver {
            // What was written is not given up while the task can still take it.
            client: client.retry_for(options.give_up_after.unwrap_or(Duration::MAX)),
            behind: None,
            closing: None,
            next: WriteInputRequest {
                task_id: task_id.to_owned(),
                writer_id: writer_id.clone(),
                take_over: options.take_over,
                wait: Some(time::to_proto(WAIT)),
                ..WriteInputRequest::default()
            },
        };
        let failed = Arc::clone(&failure);
        tokio::spawn(async move {
            let mut jobs = jobs_end;
            // The driver and its jobs are dropped after the error is there: their drop tells the writer to look for it.
            if let Err(error) = driver.run(&mut jobs).await {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(error));
            }
        });
        Self {
            jobs: PollSender::new(jobs),
            awaited: None,
            failure,
            writer_id,
        }
    }

    /// The id by which the daemon knows this writer.
    pub fn writer_id(&self) -> &str {
        &self.writer_id
    }

    fn broken(&self) -> io::Error {
        let failure = self.failure.lock();
        let failure = failure.unwrap_or_else(PoisonError::into_inner).clone();
        match failure {
            Some(error) => io::Error::new(kind(&error), error),
            None => io::ErrorKind::BrokenPipe.into(),
        }
    }

    /// Sends a job and waits until it is done.
    fn poll_job(
        &mut self,
        cx: &mut Context<'_>,
        job: fn(oneshot::Sender<()>) -> Job,
    ) -> Poll<io::Result<()>> {
        if self.awaited.is_none() {
            if ready!(self.jobs.poll_reserve(cx)).is_err() {
                return Poll::Ready(Err(self.broken()));
            }
            let (done, awaited) = oneshot::channel();
            if self.jobs.send_item(job(done)).is_err() {
                return Poll::Ready(Err(self.broken()));
            }
            self.awaited = Some(awaited);
        }
        self.poll_awaited(cx)
    }

    /// Waits for the latest flush or shutdown, if one was begun.
    fn poll_awaited(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(awaited) = &mut self.awaited else {
            return Poll::Ready(Ok(()));
        };
        let done = ready!(Pin::new(awaited).poll(cx));
        self.awaited = None;
        Poll::Ready(done.map_err(|_| self.broken()))
    }
}

impl AsyncWrite for InputWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if ready!(self.jobs.poll_reserve(cx)).is_err() {
            return Poll::Ready(Err(self.broken()));
        }
        let bytes = &bytes[..bytes.len().min(PIECE)];
        let job = Job::Write(Bytes::copy_from_slice(bytes));
        Poll::Ready(match self.jobs.send_item(job) {
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(self.broken()),
        })
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_job(cx, Job::Flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_job(cx, Job::Close)
    }
}

/// Makes the calls.
struct Driver {
    client: Client,
    /// The next call: its offset is known once the first one was answered.
    next: WriteInputRequest,
    /// The job behind the data of the next call.
    behind: Option<Job>,
    /// The writer that waits for the close.
    closing: Option<oneshot::Sender<()>>,
}

impl Driver {
    async fn run(&mut self, jobs: &mut Receiver<Job>) -> Result<(), Error> {
        if self.next.take_over {
            self.call().await?;
        }
        while let Some(job) = self.job(jobs).await {
            match job {
                Job::Write(bytes) => {
                    (self.next.data, self.behind) = gather(bytes, jobs);
                    self.write_all().await?;
                }
                Job::Flush(done) => drop(done.send(())),
                Job::Close(done) => {
                    self.closing = Some(done);
                    self.next.close = true;
                    self.write_all().await?;
                    if let Some(done) = self.closing.take() {
                        let _ = done.send(());
                    }
                }
            }
        }
        Ok(())
    }

    async fn job(&mut self, jobs: &mut Receiver<Job>) -> Option<Job> {
        match self.behind.take() {
            Some(job) => Some(job),
            None => jobs.recv().await,
        }
    }

    /// Writes the data of the next call, in as many calls as it takes.
    async fn write_all(&mut self) -> Result<(), Error> {
        if self.next.offset.is_none() {
            self.find_offset().await?;
        }
        loop {
            let closed = self.call().await?;
            if self.next.data.is_empty() && (closed || !self.next.close) {
                return Ok(());
            }
        }
    }

    /// Asks where the input ends, so that every write has an offset. A free input is claimed first: what another
    /// writer puts there meanwhile would be taken for this one's.
    async fn find_offset(&mut self) -> Result<(), Error> {
        let mut question = WriteInputRequest {
            task_id: self.next.task_id.clone(),
            ..WriteInputRequest::default()
        };
        let mut answer = self.client.write_input(question.clone()).await?;
        if answer.writer_id.is_empty() && !self.next.writer_id.is_empty() {
            question.writer_id.clone_from(&self.next.writer_id);
            question.take_over = true;
            answer = self.client.write_input(question).await?;
        }
        self.next.offset = Some(answer.offset);
        Ok(())
    }

    /// Makes one call; returns whether the input is closed.
    async fn call(&mut self) -> Result<bool, Error> {
        let answer = self.client.write_input(self.next.clone()).await?;
        let taken = (answer.taken_bytes as usize).min(self.next.data.len());
        let _ = self.next.data.split_to(taken);
        let offset = self.next.offset.map(|offset| offset + taken as u64);
        self.next.offset = Some(offset.unwrap_or(answer.offset));
        self.next.take_over = false;
        Ok(answer.closed)
    }
}

/// Joins the pieces that wait, up to the size of a call; returns the job behind them, too.
fn gather(first: Bytes, jobs: &mut Receiver<Job>) -> (Bytes, Option<Job>) {
    let mut data: Vec<u8> = Vec::new();
    loop {
        let len = data.len().max(first.len());
        match jobs.try_recv() {
            Ok(Job::Write(bytes)) if len + bytes.len() <= CALL => {
                if data.is_empty() {
                    data.extend_from_slice(&first);
                }
                data.extend_from_slice(&bytes);
            }
            other => {
                let data = if data.is_empty() { first } else { data.into() };
                return (data, other.ok());
            }
        }
    }
}

fn kind(error: &Error) -> io::ErrorKind {
    let is = |reasons: [ErrorReason; 2]| reasons.into_iter().any(|reason| error.is(reason));
    if is([ErrorReason::InputClosed, ErrorReason::TaskFinished]) {
        io::ErrorKind::BrokenPipe
    } else if is([ErrorReason::InputHeld, ErrorReason::InputTakenOver]) {
        io::ErrorKind::PermissionDenied
    } else {
        io::ErrorKind::Other
    }
}
