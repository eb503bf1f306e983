//! The handle of one session: the tasks of a host conversation. Dropping it has no effect on them.

use heeler_proto::v1::{BackgroundTask, CancelResult, ErrorReason, TaskEventType, TaskKind};
use tokio_stream::StreamExt;

use crate::{
    client::Client,
    error::Error,
    request::{CancelOptions, Filter, ListOptions, Spawn},
    stream::{Attach, Tasks, Watch, WatchItem, WatchOptions},
    task::Task,
};

/// The handle of a session.
#[derive(Debug, Clone)]
pub struct Session {
    client: Client,
    id: String,
}

/// The live tasks of a session, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionCounts {
    pub agents: usize,
    pub shells: usize,
    pub hosted: usize,
}

impl SessionCounts {
    /// Returns whether no task is live.
    pub fn is_idle(self) -> bool {
        self == Self::default()
    }
}

impl Session {
    pub(crate) fn new(client: Client, id: String) -> Self {
        Self { client, id }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// As [`Client::spawn`], in this session.
    pub async fn spawn(&self, spawn: Spawn) -> Result<Task, Error> {
        self.client.spawn(spawn.session(&self.id)).await
    }

    /// As [`Client::run`], in this session.
    pub async fn run(&self, spawn: Spawn) -> Result<Attach, Error> {
        self.client.run(spawn.session(&self.id)).await
    }

    /// Lists the live tasks of the session.
    pub fn list(&self) -> Tasks {
        self.client
            .list(ListOptions::live().matching(self.filter()))
    }

    /// Stops every live task of the session.
    pub async fn cancel(&self, options: CancelOptions) -> Result<Vec<CancelResult>, Error> {
        self.client.cancel(self.filter(), options).await
    }

    /// Streams the events of the session. The first item is a bookmark: the stream is established.
    pub fn watch(&self) -> Watch {
        self.client
            .watch(WatchOptions::from_now().matching(self.filter()))
    }

    /// Counts the live tasks.
    pub async fn counts(&self) -> Result<SessionCounts, Error> {
        let mut counts = SessionCounts::default();
        let mut tasks = self.list();
        while let Some(task) = tasks.next().await {
            match kind(&task?) {
                TaskKind::Agent => counts.agents += 1,
                TaskKind::Hosted => counts.hosted += 1,
                TaskKind::Shell | TaskKind::Unspecified => counts.shells += 1,
            }
        }
        Ok(counts)
    }

    /// Waits until no task of the session is live; returns at once if none is.
    pub async fn wait_until_idle(&self) -> Result<(), Error> {
        loop {
            match self.idle().await {
                // The events since the last look are gone: look again.
                Err(error)
                    if error.is(ErrorReason::EpochMismatch)
                        || error.is(ErrorReason::RevisionOutOfRange) => {}
                idle => return idle,
            }
        }
    }

    async fn idle(&self) -> Result<(), Error> {
        let options = WatchOptions::with_initial_state()
            .matching(self.filter())
            .event_type(TaskEventType::SessionIdle);
        let mut watch = self.client.watch(options);
        let mut is_live = false;
        while let Some(item) = watch.next().await {
            match item? {
                WatchItem::Initial(_) => is_live = true,
                WatchItem::Bookmark(_) if is_live => {}
                // The bookmark after an empty initial state, or the event itself.
                WatchItem::Bookmark(_) | WatchItem::Event(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn filter(&self) -> Filter {
        Filter::all().session(&self.id)
    }
}

fn kind(task: &BackgroundTask) -> TaskKind {
    let spec = task.spec.as_ref();
    spec.map_or(TaskKind::Unspecified, |spec| spec.kind())
}
