//! A client under a storm: it repeats every call until some server has answered it.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use heeler_proto::v1::{
    BackgroundTask, CancelMode, CancelRequest, Placement, SpawnResponse, WaitRequest,
};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{Job, Workshop, chance::Chance, job::Ending};
use crate::{
    Api, Refusal,
    api::{cancel, detach},
    millis,
    waiting::STEP,
};

/// How long a call may be repeated in vain.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a client has done.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Its jobs, and what became of them.
    pub done: Vec<Done>,
    /// How many calls were cut short.
    pub broken: u64,
    /// How many answers were asked for again and compared.
    pub replays: u64,
    /// What was wrong.
    pub faults: Vec<String>,
}

/// A job that was asked for.
#[derive(Debug)]
pub struct Done {
    /// What was asked for.
    pub job: Job,
    /// The task that it became.
    pub task_id: String,
    /// Whether it was removed, and so can be looked at no more.
    pub removed: Option<Removed>,
}

/// The last look at a task that was removed.
#[derive(Debug)]
pub struct Removed {
    /// How it ended.
    pub task: BackgroundTask,
    /// What it had written.
    pub output: Vec<u8>,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    address: String,
    api: Option<Api>,
    ledger: Ledger,
}

impl Client {
    /// Of whoever serves at this address.
    pub fn new(address: String) -> Self {
        Self {
            address,
            api: None,
            ledger: Ledger::default(),
        }
    }

    /// Does jobs, numbered from `first` on in steps of `step`, until there have been enough.
    pub async fn work(
        mut self,
        workshop: Workshop,
        mut chance: Chance,
        numbers: std::iter::StepBy<std::ops::RangeFrom<u64>>,
        enough: Arc<AtomicBool>,
    ) -> Ledger {
        for number in numbers {
            if enough.load(Ordering::Relaxed) {
                break;
            }
            let job = Job::any(&workshop, number, &mut chance);
            self.one(job, &mut chance).await;
        }
        self.ledger
    }

    async fn one(&mut self, job: Job, chance: &mut Chance) {
        let broken = self.ledger.broken;
        let first = self.spawn(&job).await;
        // Drawn in any case, so that the jobs to come do not depend on what happens.
        let curious = chance.once_in(5);
        if curious || self.ledger.broken > broken {
            self.ledger.replays += 1;
            let second = self.spawn(&job).await;
            if first != second {
                let fault = format!("{}: {first:?}, and then {second:?}", job.name);
                self.ledger.faults.push(fault);
            }
        }
        let task_id = match first {
            Ok(answer) => answer.task.expect("a task").id,
            Err(task_id) => task_id,
        };
        // What was detached runs as long as its timeout says from then on: one that is to be over by
        // it is left where it is.
        let is_held = job.placement == Placement::Foreground;
        let detaches = chance.once_in(2) && is_held && job.ending != Ending::TimesOut;
        if detaches {
            self.detach(&task_id).await;
        }
        if job.ending == Ending::Cancelled {
            tokio::time::sleep(Duration::from_millis(chance.within(0..60))).await;
            self.cancel(&task_id, chance).await;
        }
        let removed = match chance.once_in(4) {
            true => Some(self.remove(&task_id).await),
            false => None,
        };
        self.ledger.done.push(Done {
            job,
            task_id,
            removed,
        });
    }

    /// The answer, or the id of the task that could not be started.
    async fn spawn(&mut self, job: &Job) -> Result<SpawnResponse, String> {
        let call = |api: Api| async move { api.spawn(job.request.clone()).await };
        let answer = self.persist(call);
        answer.await.map_err(|status| {
            let refusal = Refusal::of(&status);
            assert_eq!(refusal.reason, "SPAWN_FAILED", "{}: {refusal:?}", job.name);
            refusal.value("task_id").to_owned()
        })
    }

    async fn detach(&mut self, id: &str) {
        let call = |api: Api| async move { api.detach(detach(id)).await };
        let answer = self.persist(call);
        answer.await.expect("a detach is taken");
    }

    async fn cancel(&mut self, id: &str, chance: &mut Chance) {
        let request = CancelRequest {
            mode: chance
                .pick(&[
                    CancelMode::Graceful,
                    CancelMode::Graceful,
                    CancelMode::Force,
                ])
                .to_owned()
                .into(),
            grace: Some(millis(chance.within(0..200))),
            wait: chance.once_in(2),
            ..cancel(id)
        };
        let request = match request.mode() {
            CancelMode::Force => CancelRequest {
                grace: None,
                ..request
            },
            CancelMode::Unspecified | CancelMode::Graceful => request,
        };
        let request = &request;
        let call = |api: Api| async move { api.cancel(request.clone()).await };
        let answer = self.persist(call);
        answer.await.expect("a cancel is taken");
    }

    /// Waits for its end, looks at it, and has it forgotten.
    async fn remove(&mut self, id: &str) -> Removed {
        let request = &WaitRequest {
            task_ids: vec![id.to_owned()],
            ..Default::default()
        };
        let ended = self.persist(|api| async move { api.wait(request.clone()).await });
        let task = ended.await.expect("a wait").met.remove(0);
        let output = self.persist(|api| async move { api.try_output(id).await });
        let output = output.await.expect("readable");
        let removal = self.persist(|api| async move { api.remove([id]).await });
        if let Err(status) = removal.await {
            // The first attempt was the one that counted.
            assert_eq!(status.code(), Code::NotFound, "{status:?}");
        }
        Removed { task, output }
    }

    /// Calls until a server has answered: with a result, or with a refusal of its own.
    async fn persist<T, F: Future<Output = Result<T, Status>>>(
        &mut self,
        call: impl Fn(Api) -> F,
    ) -> Result<T, Status> {
        let end = Instant::now() + PATIENCE;
        loop {
            let connected = match self.api.take() {
                Some(api) => Some(api),
                None => Api::connect(&self.address).await.ok(),
            };
            if let Some(api) = connected {
                let answer = call(api.clone()).await;
                match answer {
                    Err(status) if is_broken(&status) => {
                        self.ledger.broken += 1;
                        assert!(Instant::now() < end, "nobody answers: {status:?}");
                    }
                    Ok(_) | Err(_) => {
                        self.api = Some(api);
                        return answer;
                    }
                }
            }
            tokio::time::sleep(STEP).await;
        }
    }
}

/// Whether nobody has answered, or somebody who does not serve yet.
fn is_broken(status: &Status) -> bool {
    status.code() == Code::Unavailable || status.get_error_details().error_info().is_none()
}
