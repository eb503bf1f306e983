//! A client under a storm: it repeats every call until some server has answered it.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use heeler_proto::v1::{BackgroundTask, CancelRequest, Placement, SpawnResponse};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{Job, JobKit, chance::Chance, job::Ending};
use crate::{
    Api, Refusal, millis,
    request::{cancel, detach, force, grace, wait},
    waiting::STEP,
};

/// The time limit for repeating a call.
const CALL_LIMIT: Duration = Duration::from_secs(120);

/// The record of a client.
#[derive(Debug, Default)]
pub struct Record {
    pub done: Vec<Done>,
    /// Calls that the server did not answer.
    pub broken: u64,
    /// Answers that were requested again and compared.
    pub replays: u64,
    pub faults: Vec<String>,
}

/// A job, and its task.
#[derive(Debug)]
pub struct Done {
    pub job: Job,
    pub task_id: String,
    /// The last state of the task, if it was removed.
    pub removed: Option<Removed>,
}

/// The last state of a removed task.
#[derive(Debug)]
pub struct Removed {
    pub task: BackgroundTask,
    pub output: Vec<u8>,
}

/// A client that runs jobs.
#[derive(Debug)]
pub struct Client {
    address: String,
    api: Option<Api>,
    record: Record,
}

impl Client {
    /// Talks to the daemon at this address.
    pub fn new(address: String) -> Self {
        Self {
            address,
            api: None,
            record: Record::default(),
        }
    }

    /// Runs one job per number until `enough` is set.
    pub async fn work(
        mut self,
        kit: JobKit,
        mut chance: Chance,
        numbers: std::iter::StepBy<std::ops::RangeFrom<u64>>,
        enough: Arc<AtomicBool>,
    ) -> Record {
        for number in numbers {
            if enough.load(Ordering::Relaxed) {
                break;
            }
            let job = Job::any(&kit, number, &mut chance);
            self.one(job, &mut chance).await;
        }
        self.record
    }

    async fn one(&mut self, job: Job, chance: &mut Chance) {
        let broken = self.record.broken;
        let first = self.spawn(&job).await;
        // Drawn unconditionally, so that later jobs do not depend on timing.
        let curious = chance.once_in(5);
        if curious || self.record.broken > broken {
            self.record.replays += 1;
            let second = self.spawn(&job).await;
            if first != second {
                let fault = format!("{}: {first:?}, and then {second:?}", job.name);
                self.record.faults.push(fault);
            }
        }
        let task_id = match first {
            Ok(answer) => answer.task.expect("a task").id,
            Err(task_id) => task_id,
        };
        // A detach restarts the timeout, so a job that ends by its timeout is not detached.
        let in_foreground = job.placement == Placement::Foreground;
        let detaches = chance.once_in(2) && in_foreground && job.ending != Ending::TimesOut;
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
        self.record.done.push(Done {
            job,
            task_id,
            removed,
        });
    }

    /// The answer, or the id of a task whose start failed.
    async fn spawn(&mut self, job: &Job) -> Result<SpawnResponse, String> {
        let call = |api: Api| async move { api.spawn(job.request.clone()).await };
        let answer = self.until_answered(call);
        answer.await.map_err(|status| {
            let refusal = Refusal::of(&status);
            let reasons = ["SPAWN_FAILED", "STORAGE_FULL"];
            let failed = reasons.contains(&&*refusal.reason);
            assert!(failed, "{}: {refusal:?}", job.name);
            refusal.value("task_id").to_owned()
        })
    }

    async fn detach(&mut self, id: &str) {
        let call = |api: Api| async move { api.detach(detach(id)).await };
        let answer = self.until_answered(call);
        answer.await.expect("an accepted detach");
    }

    async fn cancel(&mut self, id: &str, chance: &mut Chance) {
        let (forced, within) = (chance.once_in(3), millis(chance.within(0..200)));
        let request = CancelRequest {
            how: match forced {
                true => force(),
                false => grace(within),
            },
            wait: chance.once_in(2),
            ..cancel(id)
        };
        let request = &request;
        let call = |api: Api| async move { api.cancel(request.clone()).await };
        let answer = self.until_answered(call);
        answer.await.expect("an accepted cancel");
    }

    /// Waits for the end of a task, records it, and removes it.
    async fn remove(&mut self, id: &str) -> Removed {
        let request = &wait([id]);
        let ended = self.until_answered(|api| async move { api.wait(request.clone()).await });
        let task = ended.await.expect("a wait").met.remove(0);
        let output = self.until_answered(|api| async move { api.try_output(id).await });
        let output = output.await.expect("readable output");
        let removal = self.until_answered(|api| async move { api.remove([id]).await });
        if let Err(status) = removal.await {
            // An earlier attempt succeeded, and its answer was lost.
            assert_eq!(status.code(), Code::NotFound, "{status:?}");
        }
        Removed { task, output }
    }

    /// Repeats a call until a server answers with a result or a refusal.
    async fn until_answered<T, F: Future<Output = Result<T, Status>>>(
        &mut self,
        call: impl Fn(Api) -> F,
    ) -> Result<T, Status> {
        let end = Instant::now() + CALL_LIMIT;
        loop {
            let connected = match self.api.take() {
                Some(api) => Some(api),
                None => Api::connect(&self.address).await.ok(),
            };
            if let Some(api) = connected {
                let answer = call(api.clone()).await;
                match answer {
                    Err(status) if is_broken(&status) => {
                        self.record.broken += 1;
                        assert!(Instant::now() < end, "no server answers: {status:?}");
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

/// True if no server answered, or one that does not serve yet, or that has no room for the moment.
fn is_broken(status: &Status) -> bool {
    let details = status.get_error_details();
    let Some(info) = details.error_info() else {
        return true;
    };
    // With a task, it is the recorded answer: the start failed for that reason.
    let passing = ["STORAGE_FULL", "TOO_MANY_CALLS"].contains(&&*info.reason);
    status.code() == Code::Unavailable || (passing && !info.metadata.contains_key("task_id"))
}
