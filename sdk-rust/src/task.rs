//! The handle of one task: its id and a client. Dropping it has no effect on the task.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use heeler_proto::v1::{
    BackgroundTask, CancelResult, DetachResult, InspectRequest, InspectResponse, RemoveRequest,
    ResizeTerminalRequest, Screen, TaskEvent, TaskEventType,
};
use tokio_stream::Stream;

use crate::{
    client::Client,
    error::Error,
    input::{InputOptions, InputWriter},
    request::{CancelOptions, DetachOptions, Filter, Wait},
    stream::{Attach, AttachOptions, Output, Watch, WatchItem, WatchOptions},
};

/// The handle of a task.
#[derive(Debug, Clone)]
pub struct Task {
    client: Client,
    id: Arc<str>,
}

impl Task {
    pub(crate) fn new(client: Client, id: String) -> Self {
        Self {
            client,
            id: id.into(),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the task as it is now.
    pub async fn get(&self) -> Result<BackgroundTask, Error> {
        let answer = self
            .client
            .wait(Wait::all([self.id()]).timeout(Duration::ZERO))
            .await?;
        let task = answer.met.into_iter().chain(answer.pending).next();
        task.ok_or(Error::Incomplete { field: "task" })
    }

    /// Waits without a limit until the task is finished, and returns it.
    pub async fn wait(&self) -> Result<BackgroundTask, Error> {
        self.wait_for(Wait::all([self.id()])).await
    }

    /// Waits until the task is in the background or finished, and returns it.
    pub async fn wait_out_of_foreground(&self) -> Result<BackgroundTask, Error> {
        self.wait_for(Wait::all([self.id()]).out_of_foreground())
            .await
    }

    /// Waits until it is known whether the task is ready: it is, or was not in time, or has ended.
    pub async fn ready(&self) -> Result<BackgroundTask, Error> {
        self.wait_for(Wait::all([self.id()]).ready()).await
    }

    async fn wait_for(&self, wait: Wait) -> Result<BackgroundTask, Error> {
        let answer = self.client.wait(wait).await?;
        answer
            .met
            .into_iter()
            .next()
            .ok_or(Error::Incomplete { field: "met" })
    }

    /// Waits until the task is finished, for at most this long; `None`: it is not.
    pub async fn wait_timeout(&self, timeout: Duration) -> Result<Option<BackgroundTask>, Error> {
        let answer = self
            .client
            .wait(Wait::all([self.id()]).timeout(timeout))
            .await?;
        Ok(answer.met.into_iter().next())
    }

    /// Attaches to the task and streams its output. The call is made at the first poll.
    pub fn attach(&self) -> Attach {
        self.attach_with(AttachOptions::default())
    }

    /// As [`Task::attach`], with options.
    pub fn attach_with(&self, options: AttachOptions) -> Attach {
        Attach::new(self.client.clone(), self.clone(), options)
    }

    /// Moves the task to the background: every Attach on it ends, and it depends on no client. It is not
    /// an error if the task is in the background or finished already; the result says so.
    pub async fn detach(&self, options: DetachOptions) -> Result<DetachResult, Error> {
        let results = self.client.detach(self.filter(), options).await?;
        let first = results.into_iter().next();
        first.ok_or(Error::Incomplete { field: "results" })
    }

    /// Stops the task. It is not an error if it is finished already; the result says so.
    pub async fn cancel(&self, options: CancelOptions) -> Result<CancelResult, Error> {
        let results = self.client.cancel(self.filter(), options).await?;
        let first = results.into_iter().next();
        first.ok_or(Error::Incomplete { field: "results" })
    }

    /// Returns the task with its processes, its resource use and the end of its output.
    pub async fn inspect(&self) -> Result<InspectResponse, Error> {
        let task_id = self.id.to_string();
        self.client
            .inspect(InspectRequest {
                task_id,
                ..InspectRequest::default()
            })
            .await
    }

    /// A writer to the task's stdin or terminal. It has the input from its first write on, as a writer with a
    /// random id: another writer is refused.
    pub fn input(&self) -> InputWriter {
        self.input_with(InputOptions::default())
    }

    /// As [`Task::input`], with options.
    pub fn input_with(&self, options: InputOptions) -> InputWriter {
        InputWriter::new(self.client.clone(), &self.id, options)
    }

    /// Changes the size of the task's terminal, from 1 to 1000 columns and rows.
    pub async fn resize_terminal(&self, columns: u32, rows: u32) -> Result<(), Error> {
        let task_id = self.id.to_string();
        let request = ResizeTerminalRequest {
            task_id,
            columns,
            rows,
        };
        self.client.resize_terminal(request).await.map(drop)
    }

    /// Returns the text on the screen of the task's terminal; `None` without a terminal.
    pub async fn screen(&self) -> Result<Option<Screen>, Error> {
        let request = InspectRequest {
            task_id: self.id.to_string(),
            output_tail_bytes: Some(0),
            block_count: Some(0),
            include_screen: true,
        };
        Ok(self.client.inspect(request).await?.screen)
    }

    /// Streams the events of the task, from the oldest that is kept to its end.
    pub async fn events(&self) -> Result<TaskEvents, Error> {
        // A watch of an unknown task would never end.
        self.get().await?;
        let options = WatchOptions::after(0).matching(self.filter());
        Ok(TaskEvents {
            watch: Some(self.client.watch(options)),
        })
    }

    /// Streams the output from the start to the end of the task.
    pub fn output(&self) -> Output {
        self.output_from(0)
    }

    /// Streams the output from an offset to the end of the task.
    pub fn output_from(&self, offset: u64) -> Output {
        Output::new(self.client.clone(), Arc::clone(&self.id), offset)
    }

    /// Removes the task and its output. It must be finished.
    pub async fn remove(&self) -> Result<(), Error> {
        let filter = Some(self.filter().into());
        self.client.remove(RemoveRequest { filter }).await?;
        Ok(())
    }

    fn filter(&self) -> Filter {
        Filter::all().task(self.id())
    }
}

/// The events of one task. The stream ends after ENDED.
#[derive(Debug)]
pub struct TaskEvents {
    watch: Option<Watch>,
}

impl Stream for TaskEvents {
    type Item = Result<TaskEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(watch) = &mut self.watch else {
                return Poll::Ready(None);
            };
            let item = match Pin::new(watch).poll_next(cx) {
                Poll::Ready(item) => item,
                Poll::Pending => return Poll::Pending,
            };
            match item {
                Some(Ok(WatchItem::Event(event))) => {
                    if event.r#type() == TaskEventType::Ended {
                        self.watch = None;
                    }
                    return Poll::Ready(Some(Ok(event)));
                }
                Some(Ok(WatchItem::Initial(_) | WatchItem::Bookmark(_))) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.watch = None,
            }
        }
    }
}
