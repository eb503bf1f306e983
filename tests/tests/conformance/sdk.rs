//! The Rust SDK as a client of the set.

use heeler_client::{
    Attach, AttachOptions, Chunk, Client as Sdk, Error, Spawn, StreamExt, WatchItem, WatchOptions,
    v1,
};
use heeler_tests::{Daemon, within};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};

use crate::{
    case::Fields,
    stage::{Client, During, Outcome},
};

/// The SDK, connected.
pub(crate) struct Rust {
    client: Sdk,
    pool: DescriptorPool,
}

/// A result, and what `as` keeps of it.
type Kept = (Value, Option<String>);

impl Client for Rust {
    async fn connect(daemon: &Daemon) -> Self {
        let address = daemon.address().parse().expect("an address");
        Self {
            client: Sdk::connect(address).await.expect("a daemon"),
            pool: DescriptorPool::decode(heeler_proto::FILE_DESCRIPTOR_SET).expect("the contract"),
        }
    }

    async fn step<'a>(&'a self, what: &'a str, with: Fields, during: During<'a, Self>) -> Outcome {
        let done = within(what, self.call(what, with, during)).await;
        match done {
            Ok((result, kept)) => Outcome::Result(result, kept),
            Err(Problem::Refused(error)) => Outcome::Error(refused(&error)),
            Err(Problem::During(played)) => Outcome::Error(json!({"during": played})),
        }
    }
}

enum Problem {
    Refused(Error),
    During(String),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl Rust {
    async fn call<'a>(
        &'a self,
        what: &'a str,
        mut with: Fields,
        during: During<'a, Self>,
    ) -> Result<Kept, Problem> {
        let client = &self.client;
        let plain = |result: Value| Ok((result, None));
        match what {
            "spawn" => {
                let request: v1::SpawnRequest = self.message("SpawnRequest", with.rest());
                let answer = client.spawn_response(request).await?;
                let id = answer.task.as_ref().map(|task| task.id.clone());
                Ok((self.json("SpawnResponse", &answer), id))
            }
            "run" => {
                let request: v1::SpawnRequest = self.message("SpawnRequest", with.rest());
                let run = client.run(Spawn::from(request)).await?;
                let id = run.task().id().to_owned();
                Ok((self.held(run).await?, Some(id)))
            }
            "attach" => {
                let task = client.task(with.text("taskId"));
                let offset = with.take("offset").map_or(0, |offset| number(&offset));
                with.none_left();
                plain(
                    self.held(task.attach_with(AttachOptions::from_offset(offset)))
                        .await?,
                )
            }
            "detach" => {
                let request = self.message("DetachRequest", with.rest());
                plain(self.json("DetachResponse", &client.detach(request).await?))
            }
            "cancel" => {
                let request = self.message("CancelRequest", with.rest());
                plain(self.json("CancelResponse", &client.cancel(request).await?))
            }
            "list" => {
                let request: v1::ListRequest = self.message("ListRequest", with.rest());
                let mut tasks = client.list(request);
                let mut all = Vec::new();
                while let Some(task) = tasks.next().await {
                    all.push(self.json("BackgroundTask", &task?));
                }
                plain(json!({ "tasks": all }))
            }
            "inspect" => {
                let task = client.task(with.text("taskId"));
                with.none_left();
                plain(self.json("InspectResponse", &task.inspect().await?))
            }
            "wait" => {
                let request: v1::WaitRequest = self.message("WaitRequest", with.rest());
                plain(self.json("WaitResponse", &client.wait(request).await?))
            }
            "read" => {
                let request = self.message("ReadOutputRequest", with.rest());
                let answer = client.read_output(request).await?;
                let next = answer.next_offset.to_string();
                let mut text = String::new();
                for chunk in &answer.chunks {
                    let chunk = Chunk::from(chunk.clone());
                    text += &String::from_utf8_lossy(&chunk.data);
                }
                let mut result = self.json("ReadOutputResponse", &answer);
                result["text"] = text.into();
                Ok((result, Some(next)))
            }
            "output" => {
                let mut output = client.task(with.text("taskId")).output();
                with.none_left();
                let mut said = Said::default();
                while let Some(chunk) = output.next().await {
                    said.take(&chunk?);
                }
                plain(said.into())
            }
            "watch" => self.watch(with, during).await,
            "remove" => {
                let request = self.message("RemoveRequest", with.rest());
                plain(self.json("RemoveResponse", &client.remove(request).await?))
            }
            "updateQueue" => {
                let request: v1::UpdateQueueRequest =
                    self.message("UpdateQueueRequest", with.rest());
                plain(self.json("UpdateQueueResponse", &client.update_queue(request).await?))
            }
            "listQueues" => {
                with.none_left();
                plain(self.json("ListQueuesResponse", &client.queues().await?))
            }
            other => panic!("no step {other}"),
        }
    }

    async fn held(&self, mut attach: Attach) -> Result<Value, Error> {
        let mut said = Said::default();
        let ended = attach.ended(|chunk| said.take(&chunk)).await?;
        let ended = v1::AttachEnded {
            task: Some(ended.task),
            reason: ended.reason.into(),
        };
        let mut result = Value::from(said);
        result["ended"] = self.json("AttachEnded", &ended);
        Ok(result)
    }

    async fn watch<'a>(
        &'a self,
        mut with: Fields,
        during: During<'a, Self>,
    ) -> Result<Kept, Problem> {
        let count = with.take("count").map_or(1, |count| number(&count)) as usize;
        let request: v1::WatchEventsRequest = self.message("WatchEventsRequest", with.rest());
        let mut watch = self.client.watch(WatchOptions::from(request));
        let (mut during, mut events, mut revision) = (Some(during), Vec::new(), None);
        while events.len() < count {
            match watch.next().await.expect("a watch has no end")? {
                WatchItem::Bookmark(_) => {
                    if let Some(during) = during.take() {
                        let played = during.play(self).await;
                        played.map_err(|played| Problem::During(played.to_string()))?;
                    }
                }
                WatchItem::Event(event) => {
                    revision = Some(event.revision.to_string());
                    events.push(self.json("TaskEvent", &event));
                }
                WatchItem::Initial(_) => {}
            }
        }
        Ok((json!({ "events": events }), revision))
    }

    /// A message from JSON. A field that the contract does not have is an error.
    fn message<M: Message + Default>(&self, name: &str, value: Value) -> M {
        let descriptor = self.descriptor(name);
        let dynamic = DynamicMessage::deserialize(descriptor, value).expect("a message");
        M::decode(&*dynamic.encode_to_vec()).expect("the same message")
    }

    fn json(&self, name: &str, message: &impl Message) -> Value {
        let mut dynamic = DynamicMessage::new(self.descriptor(name));
        dynamic
            .merge(&*message.encode_to_vec())
            .expect("the same message");
        serde_json::to_value(&dynamic).expect("JSON")
    }

    fn descriptor(&self, name: &str) -> prost_reflect::MessageDescriptor {
        let name = format!("heeler.v1.{name}");
        self.pool.get_message_by_name(&name).expect("a message")
    }
}

/// What a task has said.
#[derive(Default)]
struct Said {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Said {
    fn take(&mut self, chunk: &Chunk) {
        match chunk.stream {
            v1::OutputStream::Stderr => self.stderr.extend_from_slice(&chunk.data),
            v1::OutputStream::Stdout | v1::OutputStream::Unspecified => {
                self.stdout.extend_from_slice(&chunk.data);
            }
        }
    }
}

impl From<Said> for Value {
    fn from(said: Said) -> Self {
        json!({
            "stdout": String::from_utf8_lossy(&said.stdout),
            "stderr": String::from_utf8_lossy(&said.stderr),
        })
    }
}

fn number(value: &Value) -> u64 {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    text.parse().expect("a number")
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
