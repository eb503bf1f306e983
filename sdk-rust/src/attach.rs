//! A hold on a task: its output as it comes, and then the release. It reconnects, and goes on at the
//! byte where it broke.

mod cursor;

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use heeler_proto::v1::{AttachEndReason, AttachRequest, BackgroundTask, attach_request::Start};
use tokio_stream::{Stream, StreamExt};

use crate::{client::Client, error::Error, output::Chunk, resume::Resuming, task::Task};

use cursor::Cursor;

/// From where to read, and what to do about a task that is in the background.
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
    patience: Option<Duration>,
}

impl AttachOptions {
    /// Output from this offset on, e.g. [`Chunk::end`] of the last one there was; 0: all of it.
    pub fn from_offset(offset: u64) -> Self {
        let mut options = Self::default();
        options.message.start = Some(Start::Offset(offset));
        options
    }

    /// A task that is in the background already releases at once, behind the output there is, rather
    /// than be followed: for whoever spawned it in the foreground.
    pub fn foreground_only(mut self) -> Self {
        self.message.foreground_only = true;
        self
    }

    /// Ends with an error once the daemon has been away for this long. By default it is waited for
    /// without end.
    pub fn give_up_after(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }
}

/// What an attachment gives.
#[derive(Debug, Clone, PartialEq)]
pub enum AttachItem {
    /// The first: the task as it was when the hold began. Not repeated after a break.
    Attached(BackgroundTask),
    /// A piece of output, right behind the one before it.
    Output(Chunk),
    /// The last: the hold is over, and everything written before that has been given.
    Ended(AttachEnded),
}

/// The end of a hold.
#[derive(Debug, Clone, PartialEq)]
pub struct AttachEnded {
    /// The task, as it was then.
    pub task: BackgroundTask,
    /// Why.
    pub reason: AttachEndReason,
}

/// A hold on a task, and its output, across every restart of the daemon.
///
/// A foreground task is held for as long as this lives and is polled or not. Dropping it before the
/// release lets go: what becomes of the task then, after its holder window, is for its
/// `on_disconnect` to say ([`Task::detach`] lets go and keeps it). A task in the background is
/// followed until its leader exits, and held by nobody.
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
            stream: Resuming::new(client, Cursor::new(request), options.patience),
        }
    }

    /// What is attached to.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Gives every piece of output to the sink, and then the release.
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
