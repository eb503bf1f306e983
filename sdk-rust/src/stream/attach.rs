//! The stream of Attach. It reconnects, and resumes at the byte where it broke.

mod cursor;

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use heeler_proto::v1::{AttachEndReason, AttachRequest, BackgroundTask, attach_request::Start};
use tokio_stream::{Stream, StreamExt};

use super::{output::Chunk, resume::Resuming};
use crate::{client::Client, error::Error, request::CancelOptions, task::Task};

use cursor::Cursor;

/// The options of an attach.
///
/// ```
/// use std::time::Duration;
/// use heeler_client::AttachOptions;
///
/// let again = AttachOptions::from_offset(4096).give_up_after(Duration::from_secs(30));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AttachOptions {
    message: AttachRequest,
    time_limit: Option<Duration>,
}

impl AttachOptions {
    /// Output from this offset, such as [`Chunk::end`] of the last chunk received.
    pub fn from_offset(offset: u64) -> Self {
        let mut options = Self::default();
        options.message.start = Some(Start::Offset(offset));
        options
    }

    /// Ends the stream after the output so far if the task is already in the background. For a client that
    /// spawned the task in the foreground.
    pub fn foreground_only(mut self) -> Self {
        self.message.foreground_only = true;
        self
    }

    /// Ends with an error once the daemon has been unavailable for this long. By default there is no
    /// limit.
    pub fn give_up_after(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }
}

/// An item of the stream.
#[derive(Debug, Clone, PartialEq)]
pub enum AttachItem {
    /// The first item: the task when the client attached. Not repeated after a break.
    Attached(BackgroundTask),
    /// A piece of output that directly follows the one before it.
    Output(Chunk),
    /// The last item: every byte written before it has been returned.
    Ended(AttachEnded),
}

/// The most bytes of a reason.
const LONGEST_REASON: usize = 4096;

/// The end of an Attach.
#[derive(Debug, Clone, PartialEq)]
pub struct AttachEnded {
    /// The task at that moment.
    pub task: BackgroundTask,
    pub reason: AttachEndReason,
}

/// An attached client: a task's output, across restarts of the daemon.
///
/// The client stays attached as long as this value lives, whether it is polled or not. Dropping it before
/// the end is a disconnect: after the reattach window, `on_disconnect` of a foreground task applies.
/// [`Task::detach`] keeps the task running instead. A background task does not depend on its clients.
///
/// ```no_run
/// use std::io::Write;
/// use heeler_client::{AttachItem, Client, Error, StreamExt};
///
/// # async fn example(client: Client) -> Result<(), Error> {
/// let mut attach = client.task("shell-4k2mzq7xda").attach();
/// while let Some(item) = attach.next().await {
///     match item? {
///         AttachItem::Attached(task) => println!("{:?}", task.placement()),
///         AttachItem::Output(chunk) => drop(std::io::stdout().write_all(&chunk.data)),
///         AttachItem::Ended(ended) => println!("{:?}", ended.reason),
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Attach {
    task: Task,
    stream: Resuming<Cursor>,
}

impl Attach {
    pub(crate) fn new(client: Client, task: Task, options: AttachOptions) -> Self {
        let request = AttachRequest {
            task_id: task.id().to_owned(),
            ..options.message
        };
        Self {
            task,
            stream: Resuming::new(client, Cursor::new(request), options.time_limit),
        }
    }

    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Passes every piece of output to the sink, and returns the end.
    pub async fn ended(&mut self, mut sink: impl FnMut(Chunk)) -> Result<AttachEnded, Error> {
        while let Some(item) = self.next().await {
            match item? {
                AttachItem::Attached(_) => {}
                AttachItem::Output(chunk) => sink(chunk),
                AttachItem::Ended(ended) => return Ok(ended),
            }
        }
        Err(Error::Incomplete { field: "ended" })
    }

    /// As [`Attach::ended`], unless `abort` completes first: then the task is stopped, with this text as the
    /// reason that is kept with it, and the end is that of the stop.
    ///
    /// ```no_run
    /// use heeler_client::{Client, Error, Spawn};
    ///
    /// # async fn example(client: Client, mut keys: tokio::sync::mpsc::Receiver<String>) -> Result<(), Error> {
    /// let mut run = client.run(Spawn::shell("make test")).await?;
    /// let pressed = async {
    ///     keys.recv().await;
    ///     "the user pressed a key"
    /// };
    /// let ended = run.ended_unless(pressed, |_| ()).await?;
    /// println!("{:?}", ended.task.stop);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ended_unless<R: Into<String>>(
        &mut self,
        abort: impl Future<Output = R>,
        mut sink: impl FnMut(Chunk),
    ) -> Result<AttachEnded, Error> {
        tokio::select! {
            ended = self.ended(&mut sink) => return ended,
            reason = abort => {
                let options = CancelOptions::graceful().reason(shortened(reason.into()));
                self.task.cancel(options).await?;
            }
        }
        self.ended(sink).await
    }
}

/// The longest beginning of a reason that the daemon accepts.
fn shortened(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(LONGEST_REASON));
    reason
}

impl Stream for Attach {
    type Item = Result<AttachItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.poll_next(cx)
    }
}

impl fmt::Debug for Attach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attach")
            .field("cursor", &self.stream.cursor)
            .finish_non_exhaustive()
    }
}
