//! A connection to a daemon over its Unix socket, and the calls of the service.

use std::time::Duration;

use heeler_proto::v1::{background_tasks_client::BackgroundTasksClient, *};
use tonic::{
    Response, Status,
    transport::{Channel, Endpoint},
};

use crate::{
    DEADLINE,
    request::{self, live},
};

/// Longer than any call of a test may take, so that a hanging server fails the test.
const CALL_LIMIT: Duration = Duration::from_secs(90);

/// A connection to a daemon.
#[derive(Debug, Clone)]
pub struct Api {
    channel: Channel,
}

impl Api {
    /// Connects to `unix:PATH`.
    pub async fn connect(address: &str) -> Result<Self, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(address.to_owned())?.timeout(CALL_LIMIT);
        Ok(Self {
            channel: endpoint.connect().await?,
        })
    }

    /// The generated client, for calls that have no method here.
    pub fn raw(&self) -> BackgroundTasksClient<Channel> {
        BackgroundTasksClient::new(self.channel.clone()).max_decoding_message_size(64 << 20)
    }

    /// The connection, for other services.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub async fn spawn(&self, request: SpawnRequest) -> Result<SpawnResponse, Status> {
        self.raw().spawn(request).await.map(Response::into_inner)
    }

    /// Starts a task that must start.
    #[track_caller]
    pub fn start(&self, request: SpawnRequest) -> impl Future<Output = BackgroundTask> + use<> {
        let (mut raw, caller) = (self.raw(), std::panic::Location::caller());
        async move {
            match raw.spawn(request).await {
                Ok(answer) => answer.into_inner().task.expect("a task"),
                Err(status) => panic!("{caller}: not started: {status:?}"),
            }
        }
    }

    pub async fn cancel(&self, request: CancelRequest) -> Result<CancelResponse, Status> {
        self.raw().cancel(request).await.map(Response::into_inner)
    }

    /// Cancels one task, which must be accepted.
    pub async fn cancel_one(&self, request: CancelRequest) -> CancelResult {
        let mut answer = self.cancel(request).await.expect("an accepted cancel");
        assert_eq!(answer.results.len(), 1, "{answer:?}");
        answer.results.remove(0)
    }

    /// Cancels one task by its own stop policy, and waits for the proof.
    pub async fn stop(&self, id: &str) -> CancelResult {
        self.stop_by(id, None).await
    }

    /// Kills one task, and waits for the proof.
    pub async fn kill(&self, id: &str) -> CancelResult {
        self.stop_by(id, request::force()).await
    }

    /// Cancels one task with a grace of its own, and waits for the proof.
    pub async fn stop_within(&self, id: &str, grace: prost_types::Duration) -> CancelResult {
        self.stop_by(id, request::grace(grace)).await
    }

    /// Cancels one task in this way, and waits for the proof.
    pub async fn stop_by(&self, id: &str, how: Option<cancel_request::How>) -> CancelResult {
        self.cancel_one(CancelRequest {
            how,
            wait: true,
            ..request::cancel(id)
        })
        .await
    }

    /// Cancels the tasks of a session, and waits for the proofs.
    pub async fn stop_session(&self, id: &str) -> CancelResponse {
        let request = CancelRequest {
            wait: true,
            ..request::cancel_session(id)
        };
        self.cancel(request).await.expect("an accepted cancel")
    }

    /// Kills every live task, and waits for the proofs.
    pub async fn stop_everything(&self) -> Result<CancelResponse, Status> {
        self.cancel(CancelRequest {
            how: request::force(),
            wait: true,
            ..request::cancel_matching(live())
        })
        .await
    }

    pub async fn detach(&self, request: DetachRequest) -> Result<DetachResponse, Status> {
        self.raw().detach(request).await.map(Response::into_inner)
    }

    /// Detaches one task, which must exist.
    pub async fn detach_one(&self, id: &str) -> DetachResult {
        let answer = self.detach(request::detach(id)).await;
        let mut answer = answer.expect("a known task");
        assert_eq!(answer.results.len(), 1, "{answer:?}");
        answer.results.remove(0)
    }

    pub async fn list(&self, request: ListRequest) -> Result<ListResponse, Status> {
        self.raw().list(request).await.map(Response::into_inner)
    }

    /// Every task, finished ones included, in the order of List.
    pub async fn all(&self) -> Vec<BackgroundTask> {
        let request = ListRequest {
            include_finished: true,
            include_finished_foreground: true,
            page_size: 1000,
            ..Default::default()
        };
        let page = self.list(request).await.expect("a list");
        assert_eq!(page.next_page_token, "", "more tasks than fit on a page");
        page.tasks
    }

    /// The ids of every task, in the order of List.
    pub async fn ids(&self) -> Vec<String> {
        self.all().await.into_iter().map(|task| task.id).collect()
    }

    /// The journal's newest revision.
    pub async fn revision(&self) -> u64 {
        let page = self.list(ListRequest::default()).await.expect("a list");
        page.revision
    }

    pub async fn server(&self) -> ServerInfo {
        let page = self.list(ListRequest::default()).await.expect("a list");
        page.server.expect("a server")
    }

    pub async fn inspect(&self, id: &str) -> Result<InspectResponse, Status> {
        let request = InspectRequest {
            task_id: id.to_owned(),
            ..Default::default()
        };
        self.raw().inspect(request).await.map(Response::into_inner)
    }

    /// The current state of a task, which must exist.
    pub async fn task(&self, id: &str) -> BackgroundTask {
        let answer = self.inspect(id).await.expect("a known task");
        answer.task.expect("a task")
    }

    /// The states of these tasks.
    pub async fn states<'a>(&self, ids: impl IntoIterator<Item = &'a String>) -> Vec<TaskState> {
        let mut states = Vec::new();
        for id in ids {
            states.push(self.task(id).await.state());
        }
        states
    }

    pub async fn wait(&self, request: WaitRequest) -> Result<WaitResponse, Status> {
        self.raw().wait(request).await.map(Response::into_inner)
    }

    /// Waits for the end of a task.
    pub async fn ended(&self, id: &str) -> BackgroundTask {
        let request = WaitRequest {
            timeout: Some(DEADLINE.try_into().expect("a small number")),
            ..request::wait([id])
        };
        let mut answer = self.wait(request).await.expect("a wait");
        assert!(answer.satisfied, "live after {DEADLINE:?}: {answer:?}");
        answer.met.remove(0)
    }

    /// Removes tasks by id.
    pub async fn remove<T: Into<String>>(
        &self,
        ids: impl IntoIterator<Item = T>,
    ) -> Result<RemoveResponse, Status> {
        let request = request::remove(ids);
        self.raw().remove(request).await.map(Response::into_inner)
    }

    /// Removes the finished tasks that match, and returns their ids.
    pub async fn remove_finished(&self, filter: TaskFilter) -> Vec<String> {
        let answer = self.raw().remove(request::remove_finished(filter)).await;
        answer.expect("a removal").into_inner().removed_task_ids
    }

    /// Changes a queue.
    pub async fn set_queue(
        &self,
        name: &str,
        slots: Option<u32>,
        paused: Option<bool>,
    ) -> Result<Queue, Status> {
        let request = UpdateQueueRequest {
            name: name.to_owned(),
            slots,
            paused,
        };
        let answer = self.raw().update_queue(request).await?;
        Ok(answer.into_inner().queue.expect("a queue"))
    }

    pub async fn queues(&self) -> Vec<Queue> {
        let answer = self.raw().list_queues(ListQueuesRequest {}).await;
        answer.expect("a list").into_inner().queues
    }

    pub async fn list_sessions(
        &self,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Status> {
        let answer = self.raw().list_sessions(request).await;
        answer.map(Response::into_inner)
    }

    pub async fn shutdown(&self, request: ShutdownRequest) -> Result<ShutdownResponse, Status> {
        self.raw().shutdown(request).await.map(Response::into_inner)
    }
}
