//! The tasks that a stream follows: those with output to read take turns, the others are waited for.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use heeler_proto::v1::{self, ErrorReason};
use tokio::task::JoinSet;

use super::Options;
use crate::{
    service::{
        Service,
        rpc::reader::{Reader, Shown},
        transport::Call,
        wire::refusal::Refusal,
    },
    supervisor::{Extent, OutputStart, PieceLimits},
    task::{Task, TaskId},
};

#[derive(Debug, Default)]
pub(super) struct FollowedTasks {
    tasks: HashMap<TaskId, Followed>,
    /// The tasks that may have output to read, in the order of their turns.
    ready: VecDeque<TaskId>,
    /// The waits for output of the others. Each is a future of its own: a client that stops reading stops
    /// no wait half-way.
    waits: JoinSet<TaskId>,
}

#[derive(Debug)]
struct Followed {
    reader: Reader,
    /// Set once the task is finished.
    ended: Option<Arc<Task>>,
    is_ready: bool,
    /// False until the client knows the offset to resume from.
    is_offset_known: bool,
}

/// The result of a turn.
#[derive(Debug)]
pub(super) enum Turn {
    Output(v1::FollowedOutput),
    /// All output of the task was sent.
    Ended(Arc<Task>),
    Gone(TaskId),
}

impl Options {
    /// A reader of a task.
    pub(super) fn reader(&self, id: TaskId, start: OutputStart) -> Reader {
        Reader::new(id, start, self.selection.clone(), self.view)
    }
}

impl FollowedTasks {
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(super) fn has(&self, id: &TaskId) -> bool {
        self.tasks.contains_key(id)
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Follows a task; `ended` is its state, if it is finished.
    pub(super) fn add(&mut self, reader: Reader, ended: Option<Arc<Task>>) {
        let id = reader.id().clone();
        let followed = Followed {
            is_offset_known: reader.offset().is_some(),
            reader,
            ended,
            is_ready: false,
        };
        self.tasks.insert(id.clone(), followed);
        self.set_ready(&id);
    }

    /// Notes that a task is finished.
    pub(super) fn end(&mut self, task: &Arc<Task>) {
        if let Some(followed) = self.tasks.get_mut(&task.id) {
            followed.ended = Some(Arc::clone(task));
        }
        self.set_ready(&task.id);
    }

    /// Waits until a task may have more output; for ever where none is waited for.
    pub(super) async fn grown(&mut self) {
        match self.waits.join_next().await {
            Some(Ok(id)) => self.set_ready(&id),
            // A wait that failed is one that a shutdown has aborted.
            Some(Err(_)) => {}
            None => std::future::pending().await,
        }
    }

    fn set_ready(&mut self, id: &TaskId) {
        if let Some(followed) = self.tasks.get_mut(id)
            && !followed.is_ready
        {
            followed.is_ready = true;
            self.ready.push_back(id.clone());
        }
    }

    /// Gives a turn to the next task; returns nothing if it has nothing to send.
    pub(super) async fn turn(
        &mut self,
        service: &Service,
        call: &Call,
        bytes: usize,
    ) -> Result<Option<Turn>, Refusal> {
        while let Some(Ok(id)) = self.waits.try_join_next() {
            self.set_ready(&id);
        }
        let Some(id) = self.ready.pop_front() else {
            return Ok(None);
        };
        let Some(followed) = self.tasks.get_mut(&id) else {
            return Ok(None);
        };
        followed.is_ready = false;
        match followed.read(service, call, bytes).await {
            Ok(Some(shown)) => Ok(self.sort(service, id, shown)),
            Ok(None) => {
                self.set_ready(&id);
                Ok(None)
            }
            Err(refusal) if refusal.reason() == ErrorReason::TaskNotFound => {
                self.tasks.remove(&id);
                Ok(Some(Turn::Gone(id)))
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Decides what follows from a piece: more turns, a wait, or the end of the task.
    fn sort(&mut self, service: &Service, id: TaskId, shown: Shown) -> Option<Turn> {
        let followed = self.tasks.get_mut(&id)?;
        let was_known = std::mem::replace(&mut followed.is_offset_known, true);
        let is_told = !shown.chunks.is_empty() || !was_known;
        let ended = followed.ended.clone();
        match (shown.is_caught_up && !is_told, ended) {
            (true, Some(task)) => {
                self.tasks.remove(&id);
                return Some(Turn::Ended(task));
            }
            (true, None) => self.wait_for_output(service, &id, shown.end_offset),
            (false, _) => self.set_ready(&id),
        }
        is_told.then(|| {
            Turn::Output(v1::FollowedOutput {
                task_id: id.to_string(),
                chunks: shown.chunks,
                next_offset: shown.next_offset,
            })
        })
    }

    /// Makes the task ready once it has output beyond the offset. Its end makes it ready, too.
    fn wait_for_output(&mut self, service: &Service, id: &TaskId, offset: u64) {
        if let Some(handle) = service.supervisor.live(id) {
            let id = id.clone();
            self.waits.spawn(async move {
                handle.output_beyond(offset).await;
                id
            });
        }
    }
}

impl Followed {
    async fn read(
        &mut self,
        service: &Service,
        call: &Call,
        bytes: usize,
    ) -> Result<Option<Shown>, Refusal> {
        let extent = match &self.ended {
            Some(task) => {
                // A task that was removed meanwhile must not look like one without output.
                service.find(&task.id).await?;
                Extent::of(task)
            }
            None => Extent::Growing,
        };
        let limits = PieceLimits { bytes, lines: None };
        let shown = self.reader.next(service, extent, limits, call).await;
        self.reader.shrink();
        shown
    }
}
