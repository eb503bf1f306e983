//! A handle on one task: its id and a client. It owns nothing: dropping it does nothing.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use heeler_proto::v1::{
    BackgroundTask, CancelResult, DetachResult, InspectRequest, InspectResponse, RemoveRequest,
    TaskEvent, TaskEventType,
};
use tokio_stream::Stream;

use crate::{
    attach::{Attach, AttachOptions},
    cancel::CancelOptions,
    client::Client,
    detach::DetachOptions,
    error::Error,
    filter::Filter,
    output::Output,
    wait::Wait,
    watch::{Watch, WatchItem, WatchOptions},
};

/// A task, by its id.
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

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its state now.
    pub async fn snapshot(&self) -> Result<BackgroundTask, Error> {
        let answer = self
            .client
            .wait(Wait::all([self.id()]).timeout(Duration::ZERO))
            .await?;
        let task = answer.met.into_iter().chain(answer.pending).next();
        task.ok_or(Error::Incomplete { field: "task" })
    }

    /// Waits until it is over, for as long as it takes, and gives its last state.
    pub async fn wait(&self) -> Result<BackgroundTask, Error> {
        self.wait_for(Wait::all([self.id()])).await
    }

    /// Waits until it holds nobody in the foreground, and gives its state then.
    pub async fn wait_out_of_foreground(&self) -> Result<BackgroundTask, Error> {
        self.wait_for(Wait::all([self.id()]).out_of_foreground())
            .await
    }

    async fn wait_for(&self, wait: Wait) -> Result<BackgroundTask, Error> {
        let answer = self.client.wait(wait).await?;
        answer
            .met
            .into_iter()
            .next()
            .ok_or(Error::Incomplete { field: "met" })
    }

    /// Waits until it is over, or this long; none: it is not over yet.
    pub async fn wait_timeout(&self, timeout: Duration) -> Result<Option<BackgroundTask>, Error> {
        let answer = self
            .client
            .wait(Wait::all([self.id()]).timeout(timeout))
            .await?;
        Ok(answer.met.into_iter().next())
    }

    /// Holds it, if it is in the foreground, and follows its output until the release. Nothing is
    /// asked before the first poll.
    pub fn attach(&self) -> Attach {
        self.attach_with(AttachOptions::default())
    }

    /// As [`Task::attach`], from elsewhere or otherwise.
    pub fn attach_with(&self, options: AttachOptions) -> Attach {
        Attach::new(self.client.clone(), self.clone(), options)
    }

    /// Puts it into the background: whoever is attached is released, and the task depends on nobody.
    /// One that is in the background or over already is no error: the result says so.
    pub async fn detach(&self, options: DetachOptions) -> Result<DetachResult, Error> {
        let answer = self.client.detach(options.of(self.filter())).await?;
        answer
            .results
            .into_iter()
            .next()
            .ok_or(Error::Incomplete { field: "results" })
    }

    /// Stops it. A task that is over already is no error: the result says so.
    pub async fn cancel(&self, options: CancelOptions) -> Result<CancelResult, Error> {
        let answer = self.client.cancel(options.of(self.filter())).await?;
        answer
            .results
            .into_iter()
            .next()
            .ok_or(Error::Incomplete { field: "results" })
    }

    /// Shows it whole, with its processes, its resource use and the end of its output.
    pub async fn inspect(&self) -> Result<InspectResponse, Error> {
        let task_id = self.id.to_string();
        self.client
            .inspect(InspectRequest {
                task_id,
                output_tail_bytes: None,
            })
            .await
    }

    /// Its events, from the first that there is record of to its end.
    pub async fn events(&self) -> Result<TaskEvents, Error> {
        // A watch of an unknown task would wait for ever for it to appear.
        self.snapshot().await?;
        let options = WatchOptions::after(0).matching(self.filter());
        Ok(TaskEvents {
            watch: Some(self.client.watch(options)),
        })
    }

    /// All its output, followed to its end.
    pub fn output(&self) -> Output {
        self.output_from(0)
    }

    /// Its output from an offset on, followed to its end.
    pub fn output_from(&self, offset: u64) -> Output {
        Output::new(self.client.clone(), Arc::clone(&self.id), offset)
    }

    /// Forgets it and its output. It must be over.
    pub async fn remove(&self) -> Result<(), Error> {
        let filter = Some(self.filter().into());
        self.client.remove(RemoveRequest { filter }).await?;
        Ok(())
    }

    fn filter(&self) -> Filter {
        Filter::all().task(self.id())
    }
}

/// The events of one task; over after its end.
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
