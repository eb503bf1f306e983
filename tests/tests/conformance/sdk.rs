//! The Rust SDK as a client of the conformance cases.

use std::{fs, future::Future};

use heeler_client::{
    Attach, AttachOptions, Chunk, Client as Sdk, Error, FollowItem, Spawn, StreamExt, WatchItem,
    WatchOptions,
    v1::{self, attach_request::Start},
};
use heeler_tests::{Daemon, Refusal, eventually, within};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Status;

use crate::{
    case::{self, Fields, Followed, Worked},
    stage::{Client, During, Outcome},
};

/// A connected SDK.
pub(crate) struct Rust {
    client: Sdk,
    pool: DescriptorPool,
}

impl Client for Rust {
    async fn connect(daemon: &Daemon) -> Self {
        let address = daemon.address().parse().expect("an address");
        Self {
            client: Sdk::connect(address).await.expect("a daemon"),
            pool: DescriptorPool::decode(heeler_proto::FILE_DESCRIPTOR_SET).expect("the contract"),
        }
    }

    async fn step<'a>(&'a self, what: &'a str, with: Fields, during: During<'a, Self>) -> Outcome {
        match within(what, self.call(what, with, during)).await {
            Ok(result) => Outcome::Result(result),
            Err(Problem::Refused(error)) => Outcome::Error(refused(&error)),
            Err(Problem::Status(status)) => Outcome::Error(refused_status(&status)),
            Err(Problem::During(verdict)) => Outcome::Error(json!({"during": verdict})),
            Err(Problem::Cannot(why)) => Outcome::Cannot(why.to_owned()),
        }
    }
}

enum Problem {
    Refused(Error),
    Status(Status),
    During(String),
    Cannot(&'static str),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<Status> for Problem {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl Rust {
    async fn call<'a>(
        &'a self,
        what: &'a str,
        with: Fields,
        during: During<'a, Self>,
    ) -> Result<Value, Problem> {
        let client = &self.client;
        let unary = Unary { rust: self, what };
        match what {
            "spawn" => {
                let call = |request: v1::SpawnRequest| client.spawn_response(request);
                unary.call(with, call).await
            }
            "detach" => {
                unary
                    .call(with, |request| client.detach_response(request))
                    .await
            }
            "cancel" => {
                unary
                    .call(with, |request| client.cancel_response(request))
                    .await
            }
            "inspect" => unary.call(with, |request| client.inspect(request)).await,
            "wait" => {
                let call = |request: v1::WaitRequest| client.wait(request);
                unary.call(with, call).await
            }
            "remove" => unary.call(with, |request| client.remove(request)).await,
            "updateTask" => {
                unary
                    .call(with, |request| client.update_task(request))
                    .await
            }
            "writeInput" => {
                unary
                    .call(with, |request| client.write_input(request))
                    .await
            }
            "resizeTerminal" => {
                unary
                    .call(with, |request| client.resize_terminal(request))
                    .await
            }
            "followOutput" => self.follow(with).await,
            "updateQueue" => {
                let call = |request: v1::UpdateQueueRequest| client.update_queue(request);
                unary.call(with, call).await
            }
            "listQueues" => {
                let call = |_: v1::ListQueuesRequest| client.queues();
                unary.call(with, call).await
            }
            "listSessions" => {
                unary
                    .call(with, |request| client.list_sessions(request))
                    .await
            }
            "readOutput" => {
                let call = |request| client.read_output(request);
                Ok(case::with_text(unary.call(with, call).await?))
            }
            "reportProgress" => {
                unary
                    .call(with, |request| client.report_progress(request))
                    .await
            }
            "sendMessage" => {
                unary
                    .call(with, |request| client.send_message(request))
                    .await
            }
            "work" => self.work(with, during).await,
            "list" => self.list(self.message("ListRequest", with.rest())).await,
            "run" => self.run(self.message("SpawnRequest", with.rest())).await,
            "attach" => {
                self.attach(self.message("AttachRequest", with.rest()))
                    .await
            }
            "abortedRun" => self.aborted_run(with).await,
            "output" => self.output(with, during).await,
            "watchEvents" => self.watch(with, during).await,
            other => panic!("the SDK has no step {other}"),
        }
    }

    async fn list(&self, request: v1::ListRequest) -> Result<Value, Problem> {
        let mut tasks = self.client.list(request);
        let mut all = Vec::new();
        while let Some(task) = tasks.next().await {
            all.push(self.json("BackgroundTask", &task?));
        }
        Ok(json!({ "tasks": all }))
    }

    async fn run(&self, request: v1::SpawnRequest) -> Result<Value, Problem> {
        let mut spawn = Spawn::from(request.spec.unwrap_or_default());
        if !request.request_id.is_empty() {
            spawn = spawn.request_id(request.request_id);
        }
        self.until_ended(self.client.run(spawn).await?).await
    }

    async fn aborted_run(&self, mut with: Fields) -> Result<Value, Problem> {
        let (once, reason) = (with.text("once"), with.text("reason"));
        let request: v1::SpawnRequest = self.message("SpawnRequest", with.rest());
        let spawn = Spawn::from(request.spec.unwrap_or_default());
        let mut run = self.client.run(spawn).await?;
        let abort = async {
            let has_content = || fs::metadata(&once).is_ok_and(|found| found.len() > 0);
            eventually(&once, has_content).await;
            reason
        };
        let ended = run.ended_unless(abort, drop).await?;
        match ended.task.stop {
            Some(_) => Ok(Value::Null),
            None => Err(Problem::During("it ended before the abort".to_owned())),
        }
    }

    async fn attach(&self, request: v1::AttachRequest) -> Result<Value, Problem> {
        let mut options = match request.start {
            None => AttachOptions::default(),
            Some(Start::Offset(offset)) => AttachOptions::from_offset(offset),
            Some(Start::TailBytes(_)) => return Err(Problem::Cannot("attach has no tail")),
        };
        if request.view() != v1::OutputView::Unspecified {
            return Err(Problem::Cannot("attach has no view"));
        }
        if request.foreground_only {
            options = options.foreground_only();
        }
        let task = self.client.task(request.task_id);
        self.until_ended(task.attach_with(options)).await
    }

    async fn until_ended(&self, mut attach: Attach) -> Result<Value, Problem> {
        let mut output = Output::default();
        let ended = attach.ended(|chunk| output.take(&chunk)).await?;
        let ended = v1::AttachEnded {
            task: Some(ended.task),
            reason: ended.reason.into(),
        };
        let mut result = Value::from(output);
        result["ended"] = self.json("AttachEnded", &ended);
        Ok(result)
    }

    async fn output<'a>(
        &'a self,
        mut with: Fields,
        during: During<'a, Self>,
    ) -> Result<Value, Problem> {
        let mut chunks = self.client.task(with.text("taskId")).output();
        with.none_left();
        let (mut output, mut during) = (Output::default(), Some(during));
        while let Some(chunk) = chunks.next().await {
            output.take(&chunk?);
            self.run_once(&mut during).await?;
        }
        Ok(output.into())
    }

    /// Runs the steps that go on during another, the first time.
    async fn run_once<'a>(&'a self, during: &mut Option<During<'a, Self>>) -> Result<(), Problem> {
        match during.take() {
            Some(during) => {
                let done = during.run(self).await;
                done.map_err(|verdict| Problem::During(verdict.to_string()))
            }
            None => Ok(()),
        }
    }

    async fn follow(&self, with: Fields) -> Result<Value, Problem> {
        let request = self.message("FollowOutputRequest", with.rest());
        let mut follow = self.client.follow_output(request);
        let mut followed = Followed::default();
        while let Some(item) = follow.next().await {
            match item? {
                FollowItem::Task(task) => followed.begin(&task.id),
                FollowItem::Output { task_id, chunk } => {
                    followed.write(&task_id, &String::from_utf8_lossy(&chunk.data));
                }
                FollowItem::Ended(task) => {
                    followed.end(&task.id, self.json("BackgroundTask", &task));
                }
                FollowItem::Gone(id) => panic!("{id} is gone"),
            }
        }
        Ok(followed.into())
    }

    async fn watch<'a>(
        &'a self,
        mut with: Fields,
        during: During<'a, Self>,
    ) -> Result<Value, Problem> {
        let count = with.count();
        let request: v1::WatchEventsRequest = self.message("WatchEventsRequest", with.rest());
        let mut watch = self.client.watch(WatchOptions::from(request));
        let (mut during, mut events) = (Some(during), Vec::new());
        while events.len() < count {
            match watch.next().await.expect("a watch has no end")? {
                WatchItem::Bookmark(_) => self.run_once(&mut during).await?,
                WatchItem::Event(event) => events.push(self.json("TaskEvent", &event)),
                WatchItem::Initial(_) => {}
            }
        }
        Ok(json!({ "events": events }))
    }

    /// The stream as it is: `register` and `join` of the SDK send what they send by themselves.
    async fn work<'a>(
        &'a self,
        mut with: Fields,
        during: During<'a, Self>,
    ) -> Result<Value, Problem> {
        let (sender, sent) = mpsc::unbounded_channel();
        let send = |requests: Option<Value>| {
            for request in requests
                .as_ref()
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let request: v1::WorkRequest = self.message("WorkRequest", request.clone());
                sender.send(request).expect("the stream is open");
            }
        };
        send(with.take("requests"));
        let then = with.take("then");
        with.none_left();
        let stream = UnboundedReceiverStream::new(sent);
        let mut answers = self.client.raw().work(stream).await?.into_inner();
        let mut seen = Worked::default();
        seen.take(self.json(
            "WorkResponse",
            &answers.message().await?.unwrap_or_default(),
        ));
        let done = during.run(self).await;
        done.map_err(|verdict| Problem::During(verdict.to_string()))?;
        send(then);
        drop(sender);
        while let Some(answer) = answers.message().await? {
            seen.take(self.json("WorkResponse", &answer));
        }
        Ok(seen.into())
    }

    /// A message from JSON. A field that the contract does not have is an error.
    fn message<M: Message + Default>(&self, name: &str, value: Value) -> M {
        decode(self.descriptor(name), value)
    }

    fn json(&self, name: &str, message: &impl Message) -> Value {
        encode(self.descriptor(name), message)
    }

    fn descriptor(&self, name: &str) -> MessageDescriptor {
        let name = format!("heeler.v1.{name}");
        self.pool.get_message_by_name(&name).expect("a message")
    }
}

/// A call with one request and one response, whose messages the contract names.
struct Unary<'a> {
    rust: &'a Rust,
    what: &'a str,
}

impl Unary<'_> {
    async fn call<M: Message + Default, R: Message, F: Future<Output = Result<R, Error>>>(
        self,
        with: Fields,
        call: impl FnOnce(M) -> F,
    ) -> Result<Value, Problem> {
        let rpc = case::rpc(&self.rust.pool, self.what).expect("an RPC of the contract");
        let answer = call(decode(rpc.input(), with.rest())).await?;
        Ok(encode(rpc.output(), &answer))
    }
}

fn decode<M: Message + Default>(descriptor: MessageDescriptor, value: Value) -> M {
    let dynamic = DynamicMessage::deserialize(descriptor, value).expect("a message");
    M::decode(&*dynamic.encode_to_vec()).expect("the same message")
}

fn encode(descriptor: MessageDescriptor, message: &impl Message) -> Value {
    let mut dynamic = DynamicMessage::new(descriptor);
    let merged = dynamic.merge(&*message.encode_to_vec());
    merged.expect("the same message");
    serde_json::to_value(&dynamic).expect("JSON")
}

/// The output of a task, by stream.
#[derive(Default)]
struct Output {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Output {
    fn take(&mut self, chunk: &Chunk) {
        match chunk.stream {
            v1::OutputStream::Stderr => self.stderr.extend_from_slice(&chunk.data),
            v1::OutputStream::Stdout | v1::OutputStream::Unspecified => {
                self.stdout.extend_from_slice(&chunk.data);
            }
        }
    }
}

impl From<Output> for Value {
    fn from(output: Output) -> Self {
        json!({
            "stdout": String::from_utf8_lossy(&output.stdout),
            "stderr": String::from_utf8_lossy(&output.stderr),
        })
    }
}

fn refused_status(status: &Status) -> Value {
    let refusal = Refusal::of(status);
    json!({
        "code": code_name(refusal.code),
        "reason": refusal.reason,
        "field": refusal.fields.first(),
        "metadata": refusal.metadata,
    })
}

fn refused(error: &Error) -> Value {
    let Some(refusal) = error.refusal() else {
        return json!({ "code": error.to_string() });
    };
    let reason = refusal.reason.as_ref().map(ToString::to_string);
    json!({
        "code": code_name(refusal.code),
        "reason": reason,
        "field": refusal.fields.first().map(|violation| violation.field.clone()),
        "metadata": refusal.metadata,
    })
}

/// `NotFound` as `NOT_FOUND`.
pub(crate) fn code_name(code: heeler_client::Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}
