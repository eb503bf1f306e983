//! The calls of the service over its Unix socket, by the contract alone.

use std::time::Duration;

use heeler_proto::v1::{background_tasks_client::BackgroundTasksClient, cancel_request::Target, *};
use tokio::task::JoinHandle;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

use crate::{DEADLINE, Watch, request, secs};

/// Longer than any call of a test may take, so that a server that hangs fails the test.
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

    /// The generated client, for whatever is not below.
    pub fn raw(&self) -> BackgroundTasksClient<Channel> {
        BackgroundTasksClient::new(self.channel.clone()).max_decoding_message_size(64 << 20)
    }

    /// The connection, for other services.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Starts a task.
    pub async fn spawn(&self, request: SpawnRequest) -> Result<SpawnResponse, Status> {
        self.raw()
            .spawn(request)
            .await
            .map(tonic::Response::into_inner)
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

    /// Asks for stops.
    pub async fn cancel(&self, request: CancelRequest) -> Result<CancelResponse, Status> {
        self.raw()
            .cancel(request)
            .await
            .map(tonic::Response::into_inner)
    }

    /// Stops one task, waits for the proof, and gives the one result.
    pub async fn stop(&self, id: &str, mode: CancelMode) -> CancelResult {
        self.cancel_one(CancelRequest {
            mode: mode.into(),
            wait: true,
            ..cancel(id)
        })
        .await
    }

    /// A cancel of one task that must be taken.
    pub async fn cancel_one(&self, request: CancelRequest) -> CancelResult {
        let mut answer = self.cancel(request).await.expect("a cancel that is taken");
        assert_eq!(answer.results.len(), 1, "{answer:?}");
        answer.results.remove(0)
    }

    /// Turns tasks into background ones.
    pub async fn detach(&self, request: DetachRequest) -> Result<DetachResponse, Status> {
        self.raw()
            .detach(request)
            .await
            .map(tonic::Response::into_inner)
    }

    /// Detaches one task, which must be known.
    pub async fn detach_one(&self, id: &str) -> DetachResult {
        let mut answer = self.detach(detach(id)).await.expect("a known task");
        assert_eq!(answer.results.len(), 1, "{answer:?}");
        answer.results.remove(0)
    }

    /// Lists tasks.
    pub async fn list(&self, request: ListRequest) -> Result<ListResponse, Status> {
        self.raw()
            .list(request)
            .await
            .map(tonic::Response::into_inner)
    }

    /// Every task there is, finished ones too.
    pub async fn all(&self) -> Vec<BackgroundTask> {
        let request = ListRequest {
            include_finished: true,
            page_size: 1000,
            ..Default::default()
        };
        let page = self.list(request).await.expect("a list");
        assert_eq!(page.next_page_token, "", "more tasks than a test makes");
        page.tasks
    }

    /// The journal's newest revision.
    pub async fn revision(&self) -> u64 {
        self.list(ListRequest::default())
            .await
            .expect("a list")
            .revision
    }

    /// What the server says of itself.
    pub async fn server(&self) -> ServerInfo {
        let page = self.list(ListRequest::default()).await.expect("a list");
        page.server.expect("a server")
    }

    /// Shows one task.
    pub async fn inspect(&self, id: &str) -> Result<InspectResponse, Status> {
        let request = InspectRequest {
            task_id: id.to_owned(),
            output_tail_bytes: None,
        };
        self.raw()
            .inspect(request)
            .await
            .map(tonic::Response::into_inner)
    }

    /// One task as it is now.
    pub async fn task(&self, id: &str) -> BackgroundTask {
        self.inspect(id)
            .await
            .expect("a known task")
            .task
            .expect("a task")
    }

    /// Waits.
    pub async fn wait(&self, request: WaitRequest) -> Result<WaitResponse, Status> {
        self.raw()
            .wait(request)
            .await
            .map(tonic::Response::into_inner)
    }

    /// The task once it is over.
    pub async fn ended(&self, id: &str) -> BackgroundTask {
        let timeout = Some(DEADLINE.try_into().expect("a small number"));
        let request = WaitRequest {
            task_ids: vec![id.to_owned()],
            timeout,
            ..Default::default()
        };
        let mut answer = self.wait(request).await.expect("a wait");
        assert!(answer.satisfied, "not over within {DEADLINE:?}: {answer:?}");
        answer.met.remove(0)
    }

    /// Reads output.
    pub async fn read(&self, request: ReadOutputRequest) -> Result<ReadOutputResponse, Status> {
        self.raw()
            .read_output(request)
            .await
            .map(tonic::Response::into_inner)
    }

    /// A long poll in the background.
    pub fn poll(&self, id: &str, offset: u64) -> JoinHandle<ReadOutputResponse> {
        let request = ReadOutputRequest {
            wait: Some(secs(60)),
            ..read(id, offset)
        };
        let api = self.clone();
        tokio::spawn(async move { api.read(request).await.expect("readable") })
    }

    /// All that a task has written so far, from the first byte on.
    pub async fn output(&self, id: &str) -> Vec<u8> {
        self.try_output(id).await.expect("readable")
    }

    /// The same where the server may be dying.
    pub async fn try_output(&self, id: &str) -> Result<Vec<u8>, Status> {
        let mut all = Vec::new();
        loop {
            let answer = self.read(read(id, all.len() as u64)).await?;
            if answer.chunks.is_empty() {
                // What a task that is over has written and nobody has any more is passed over.
                let lost = answer.complete && answer.next_offset == answer.end_offset;
                assert!(
                    lost || answer.next_offset == all.len() as u64,
                    "the end of what was read: {answer:?}"
                );
                return Ok(all);
            }
            for chunk in &answer.chunks {
                assert_eq!(chunk.offset, all.len() as u64, "no gap and no overlap");
                all.extend_from_slice(raw(chunk));
            }
        }
    }

    /// How much it has written so far.
    pub async fn output_end(&self, id: &str) -> u64 {
        self.read(read(id, 0)).await.unwrap().end_offset
    }

    /// All that a task has written so far, as lines.
    pub async fn lines(&self, id: &str) -> Vec<String> {
        let all = self.output(id).await;
        String::from_utf8(all)
            .expect("text")
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Forgets tasks by id.
    pub async fn remove<T: Into<String>>(
        &self,
        ids: impl IntoIterator<Item = T>,
    ) -> Result<RemoveResponse, Status> {
        let task_ids = ids.into_iter().map(Into::into).collect();
        let target = Some(remove_request::Target::Tasks(TaskIds { task_ids }));
        self.raw()
            .remove(RemoveRequest { target })
            .await
            .map(tonic::Response::into_inner)
    }

    /// Streams events.
    pub async fn watch(&self, request: WatchEventsRequest) -> Result<Watch, Status> {
        let stream = self.raw().watch_events(request).await?.into_inner();
        Ok(Watch::new(stream))
    }

    /// Every event after a revision, then live.
    pub async fn watch_after(&self, revision: u64) -> Watch {
        let request = WatchEventsRequest {
            after_revision: Some(revision),
            ..Default::default()
        };
        self.watch(request).await.expect("a stream")
    }

    /// Every event there has been, which is a gap-free sequence from 1.
    pub async fn history(&self) -> Vec<TaskEvent> {
        let newest = self.revision().await;
        let events = self.watch_after(0).await.up_to(newest).await;
        let revisions: Vec<u64> = events.iter().map(|event| event.revision).collect();
        assert_eq!(
            revisions,
            (1..=newest).collect::<Vec<_>>(),
            "a gap in the journal"
        );
        events
    }

    /// The events that one task has had.
    pub async fn history_of(&self, id: &str) -> Vec<TaskEvent> {
        let of = |event: &TaskEvent| event.task.as_ref().is_some_and(|task| task.id == id);
        self.history().await.into_iter().filter(of).collect()
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

    /// Every queue.
    pub async fn queues(&self) -> Vec<Queue> {
        let answer = self.raw().list_queues(ListQueuesRequest {}).await;
        answer.expect("a list").into_inner().queues
    }

    /// The states of these tasks.
    pub async fn states<'a>(&self, ids: impl IntoIterator<Item = &'a String>) -> Vec<TaskState> {
        let mut states = Vec::new();
        for id in ids {
            states.push(self.task(id).await.state());
        }
        states
    }

    /// That each of these began only when the one before it was over.
    pub async fn assert_one_after_the_other(&self, ids: &[String]) {
        let history = self.history().await;
        let revision = |id: &str, wanted: TaskEventType| {
            let of = |event: &&TaskEvent| event.task.as_ref().is_some_and(|task| task.id == id);
            let mut fitting = history.iter().filter(of);
            let found = fitting.find(|event| event.r#type() == wanted);
            found
                .unwrap_or_else(|| panic!("no {wanted:?} of {id}"))
                .revision
        };
        for pair in ids.windows(2) {
            let ended = revision(&pair[0], TaskEventType::Ended);
            let admitted = revision(&pair[1], TaskEventType::Admitted);
            assert!(ended < admitted, "{} did not wait for {}", pair[1], pair[0]);
        }
    }

    /// Until this task is in this state.
    pub async fn until(&self, id: &str, state: TaskState) -> BackgroundTask {
        let mut watch = self.watch_after(0).await;
        let is_there = |event: &TaskEvent| {
            let task = event.task.as_ref();
            task.is_some_and(|task| task.id == id && task.state() == state)
        };
        let mut seen = watch.until(is_there).await;
        let last = seen.pop().and_then(|event| event.task);
        last.expect("an event carries its task")
    }

    /// Ends the server.
    pub async fn shutdown(&self, request: ShutdownRequest) -> Result<ShutdownResponse, Status> {
        self.raw()
            .shutdown(request)
            .await
            .map(tonic::Response::into_inner)
    }

    /// Kills whatever still lives, and waits for the proof.
    pub async fn stop_everything(&self) -> Result<CancelResponse, Status> {
        let target = Some(Target::Filter(request::live()));
        let mode = CancelMode::Force.into();
        self.cancel(CancelRequest {
            target,
            mode,
            wait: true,
            ..Default::default()
        })
        .await
    }
}

/// A cancel of one task, to be filled in.
pub fn cancel(id: &str) -> CancelRequest {
    CancelRequest {
        target: Some(Target::TaskId(id.to_owned())),
        ..Default::default()
    }
}

/// A detach of one task, to be filled in.
pub fn detach(id: &str) -> DetachRequest {
    DetachRequest {
        target: Some(detach_request::Target::TaskId(id.to_owned())),
        ..Default::default()
    }
}

/// A snapshot of a task's output from an offset.
pub fn read(id: &str, offset: u64) -> ReadOutputRequest {
    let start = Some(read_output_request::Start::Offset(offset));
    ReadOutputRequest {
        task_id: id.to_owned(),
        start,
        ..Default::default()
    }
}

/// The bytes of a chunk that must be raw.
#[track_caller]
pub fn raw(chunk: &OutputChunk) -> &[u8] {
    match &chunk.content {
        Some(output_chunk::Content::Data(data)) => data,
        other => panic!("not raw: {other:?}"),
    }
}

/// The text of a chunk that must be text.
#[track_caller]
pub fn text(chunk: &OutputChunk) -> &str {
    match &chunk.content {
        Some(output_chunk::Content::Text(text)) => text,
        other => panic!("not text: {other:?}"),
    }
}
