//! Work: the stream of a worker, in both directions.
//!
//! ```text
//! New ──register, join──> Working ──the task is finished──> Done
//! ```
//!
//! The stream is driven by the connection's wish for the next message. A worker that does not read is
//! therefore not read from, and a worker that floods is slowed down to the speed of the journal. What it
//! has to be told follows from the state of the task: nothing is queued.

mod input;
mod told;
mod working;

use heeler_proto::v1::{self, work_request::Item as In, work_response::Item as Out};
use prost::Message as _;
use tokio::time::timeout;
use tonic::Streaming;
use uuid::Uuid;

use self::working::Working;
use crate::{
    service::{
        Service,
        transport::{self, Call},
        wire::{
            check, convert,
            refusal::Refusal,
            spec,
            stream::{Messages, Source},
            task, work,
        },
    },
    supervisor::{Notice, TakeOver, WorkError, WorkerSession},
    task::{Authority, Rights, Task, TaskId},
};

/// The messages of a worker.
type Incoming = Streaming<v1::WorkRequest>;

/// The stream of one worker.
pub(crate) struct Worker {
    service: Service,
    incoming: Incoming,
    stage: Stage,
    call: Call,
}

enum Stage {
    /// Nothing was received.
    New,
    Working(Box<Working>),
    /// The last message is sent.
    Done,
}

pub(super) fn work(service: &Service, incoming: Incoming, call: Call) -> Messages<Worker> {
    Messages::of(Worker {
        service: service.clone(),
        incoming,
        stage: Stage::New,
        call,
    })
}

impl Source for Worker {
    type Message = v1::WorkResponse;

    async fn next(&mut self) -> Result<Vec<v1::WorkResponse>, Refusal> {
        let items = match &mut self.stage {
            // On the heap, as long as it takes: a stream waits most of its life for the next message.
            Stage::New => Box::pin(self.begin()).await?,
            Stage::Working(working) => {
                let step = working.step(&self.service, &mut self.incoming, &self.call);
                step.await?
            }
            Stage::Done => Vec::new(),
        };
        if items.iter().any(|item| matches!(item, Out::Ended(_))) {
            self.stage = Stage::Done;
        }
        let messages: Vec<_> = items
            .into_iter()
            .map(|item| v1::WorkResponse { item: Some(item) })
            .collect();
        let bytes = messages.iter().map(v1::WorkResponse::encoded_len).sum();
        self.call.hold(bytes);
        Ok(messages)
    }
}

impl Worker {
    /// Takes the first message.
    async fn begin(&mut self) -> Result<Vec<Out>, Refusal> {
        let first = tokio::select! {
            first = timeout(transport::TIME_LIMIT, self.incoming.message()) => first,
            () = self.service.closing.begun() => return Err(Refusal::shutting_down()),
        };
        let first = first.map_err(|_| transport::late())?;
        let first = first.map_err(|status| Refusal::unreadable(&status))?;
        match first.map(|first| first.item) {
            Some(Some(In::Register(register))) => self.register(register).await,
            Some(Some(In::Join(join))) => {
                let joined = self.join(join).await;
                joined.map_err(|refusal| refusal.within("join"))
            }
            Some(
                Some(In::Progress(_) | In::Heartbeat(_) | In::Result(_) | In::Receipt(_)) | None,
            ) => Err(Refusal::field(
                "item",
                "of the first message must be register or join",
            )),
            // The client has closed its side.
            None => Ok(Vec::new()),
        }
    }

    /// Creates the task, or finds the one that the same request has created, and joins it.
    async fn register(&mut self, register: v1::WorkRegister) -> Result<Vec<Out>, Refusal> {
        let request = spec::register(register).map_err(|refusal| refusal.within("register"))?;
        let authority = &self.service.authority;
        match authority {
            Authority::Task { id, rights } if *rights < Rights::Children => {
                return Err(Refusal::rights_insufficient(id, *rights, Rights::Children));
            }
            Authority::Task { .. } | Authority::User => {}
        }
        let spawned = self
            .service
            .supervisor
            .spawn(request, self.service.requester())
            .await?;
        let take_over = match spawned.notices.contains(&Notice::AlreadyRunning) {
            // An equal task of perhaps another client, whose worker stays.
            true => TakeOver::No,
            // The same request is that of the same client: its earlier stream is broken.
            false => TakeOver::Yes,
        };
        self.enter(&spawned.task.id, None, take_over).await
    }

    async fn join(&mut self, join: v1::WorkJoin) -> Result<Vec<Out>, Refusal> {
        let id = check::task_id("task_id", &join.task_id)?;
        let worker = work::worker_id(&join.worker_id)?;
        let take_over = match join.take_over {
            true => TakeOver::Yes,
            false => TakeOver::No,
        };
        self.service.check_reports(&id).await?;
        self.enter(&id, worker, take_over).await
    }

    /// Joins a task. A finished one is answered with its end.
    async fn enter(
        &mut self,
        id: &TaskId,
        worker: Option<Uuid>,
        take_over: TakeOver,
    ) -> Result<Vec<Out>, Refusal> {
        let finished = match self.service.supervisor.live(id) {
            None => self.service.find(id).await?,
            Some(handle) => match handle.join(worker, take_over).await {
                Ok((session, sequence)) => return Ok(self.begin_work(session, sequence)),
                Err(WorkError::Finished(_)) => {
                    let finished = handle.finished().await;
                    finished.ok_or_else(Refusal::shutting_down)?
                }
                Err(error) => return Err(error.into()),
            },
        };
        let joined = joined(&finished, String::new(), 0);
        Ok(vec![joined, told::ended(&finished)])
    }

    fn begin_work(&mut self, session: WorkerSession, sequence: u64) -> Vec<Out> {
        let task = session.handle().task();
        let joined = joined(&task, session.id().to_string(), sequence);
        let working = Working::new(session, &task, sequence);
        self.stage = Stage::Working(Box::new(working));
        vec![joined]
    }
}

fn joined(task: &Task, worker_id: String, sequence: u64) -> Out {
    Out::Joined(v1::WorkJoined {
        task: Some(task::show(task)),
        worker_id,
        lease: task.lease().map(convert::duration),
        acknowledged_sequence: sequence,
    })
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
