//! grpcurl as a client of the conformance cases. It learns the contract by reflection; this runner
//! names no message, and no call that it does not treat specially.

use std::{path::PathBuf, process::Stdio};

use heeler_tests::{Daemon, daemon::SERVICE, within};
use prost_reflect::DescriptorPool;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    case::{self, Fields, Followed, Worked},
    stage::{Client, During, Outcome},
};

pub(crate) struct Grpcurl {
    program: PathBuf,
    socket: PathBuf,
    contract: DescriptorPool,
}

impl Client for Grpcurl {
    async fn connect(daemon: &Daemon) -> Self {
        Self {
            program: heeler_tests::grpcurl::program().expect("grpcurl"),
            socket: daemon.socket(),
            contract: DescriptorPool::decode(heeler_proto::FILE_DESCRIPTOR_SET)
                .expect("the contract"),
        }
    }

    async fn step<'a>(
        &'a self,
        what: &'a str,
        mut with: Fields,
        during: During<'a, Self>,
    ) -> Outcome {
        let called = match what {
            "list" => self.list(with.rest()).await,
            "readOutput" => self.read(with.rest()).await,
            "followOutput" => self.follow(with.rest()).await,
            "run" => self.run(with.rest()).await,
            "attach" => self.attach(with.rest()).await,
            "abortedRun" => {
                return Outcome::Cannot("grpcurl has no reason to end a call with".to_owned());
            }
            "output" if !during.is_empty() => {
                return Outcome::Cannot("grpcurl does not resume".to_owned());
            }
            "output" => {
                let id = with.text("taskId");
                with.none_left();
                self.attach(json!({ "taskId": id })).await
            }
            "watchEvents" => return self.watch(with, during).await,
            "work" if !during.is_empty() => {
                let why = "grpcurl sends all messages of a stream at once";
                return Outcome::Cannot(why.to_owned());
            }
            "work" => self.work(with).await,
            unary => self.unary(unary, with.rest()).await,
        };
        match called {
            Ok(result) => Outcome::Result(result),
            Err(error) => Outcome::Error(error),
        }
    }
}

/// A result, or a refusal.
type Called = Result<Value, Value>;

impl Grpcurl {
    /// Starts a call with this request, or with several in a row.
    fn start(&self, step: &str, request: &str) -> Child {
        let rpc = case::rpc(&self.contract, step);
        let rpc = rpc.unwrap_or_else(|| panic!("no step {step}"));
        let mut command = Command::new(&self.program);
        command.args([
            "-plaintext",
            "-unix",
            "-format-error",
            "-max-msg-sz",
            "67108864",
        ]);
        command.args(["-d", request]);
        command
            .arg(&self.socket)
            .arg(format!("{SERVICE}/{}", rpc.name()));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().expect("grpcurl starts")
    }

    /// Every message of an answer, or the refusal.
    async fn call(&self, step: &str, request: &str) -> Result<Vec<Value>, Value> {
        let output = within(step, self.start(step, request).wait_with_output())
            .await
            .expect("grpcurl ends");
        match output.status.success() {
            true => Ok(messages(&output.stdout)),
            false => Err(refused(&output.stderr)),
        }
    }

    async fn unary(&self, step: &str, request: Value) -> Called {
        let mut answer = self.call(step, &request.to_string()).await?;
        Ok(answer.pop().unwrap_or_default())
    }

    async fn list(&self, mut request: Value) -> Called {
        let mut tasks = Vec::new();
        loop {
            let page = self.unary("list", request.clone()).await?;
            tasks.extend(page["tasks"].as_array().cloned().unwrap_or_default());
            let Some(token) = page["nextPageToken"].as_str() else {
                return Ok(json!({ "tasks": tasks }));
            };
            request["pageToken"] = token.into();
        }
    }

    async fn read(&self, request: Value) -> Called {
        let answer = self.unary("readOutput", request).await?;
        Ok(case::with_text(answer))
    }

    async fn follow(&self, request: Value) -> Called {
        let mut followed = Followed::default();
        for message in self.call("followOutput", &request.to_string()).await? {
            let id = |task: &Value| task["id"].as_str().expect("an id").to_owned();
            if let Some(task) = message.get("task") {
                followed.begin(&id(task));
            } else if let Some(output) = message.get("output") {
                let task = output["taskId"].as_str().expect("an id");
                let text = case::with_text(output.clone());
                followed.write(task, text["text"].as_str().unwrap_or_default());
            } else if let Some(task) = message.get("ended") {
                followed.end(&id(task), task.clone());
            }
        }
        Ok(followed.into())
    }

    async fn run(&self, mut request: Value) -> Called {
        if request["spec"]["foreground"].is_null() {
            request["spec"]["foreground"] = json!({});
        }
        let started = self.unary("spawn", request).await?;
        self.attach(json!({ "taskId": started["task"]["id"] }))
            .await
    }

    async fn attach(&self, request: Value) -> Called {
        let (mut stdout, mut stderr, mut ended) = (String::new(), String::new(), Value::Null);
        for mut message in self.call("attach", &request.to_string()).await? {
            let chunks = &message["output"]["chunks"];
            stdout += &case::text_if(chunks, |chunk| !is_stderr(chunk));
            stderr += &case::text_if(chunks, is_stderr);
            if let Some(end) = message.get_mut("ended") {
                ended = end.take();
            }
        }
        Ok(json!({ "stdout": stdout, "stderr": stderr, "ended": ended }))
    }

    async fn work(&self, mut with: Fields) -> Called {
        let mut requests = String::new();
        for list in ["requests", "then"]
            .map(|name| with.take(name))
            .iter()
            .flatten()
        {
            for request in list.as_array().into_iter().flatten() {
                requests += &request.to_string();
            }
        }
        with.none_left();
        let mut seen = Worked::default();
        for response in self.call("work", &requests).await? {
            seen.take(response);
        }
        Ok(seen.into())
    }

    async fn watch(&self, mut with: Fields, during: During<'_, Self>) -> Outcome {
        if !during.is_empty() {
            let why = "grpcurl does not resume a stream that breaks";
            return Outcome::Cannot(why.to_owned());
        }
        let count = with.count();
        let mut child = self.start("watchEvents", &with.rest().to_string());
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (mut text, mut events) = (Vec::new(), Vec::new());
        while events.len() < count {
            let read = within("an event", stdout.read_buf(&mut text)).await;
            if read.expect("a pipe") == 0 {
                let output = child.wait_with_output().await.expect("an end");
                return Outcome::Error(refused(&output.stderr));
            }
            events = messages(&text)
                .into_iter()
                .filter_map(|mut message| message.get_mut("event").map(Value::take))
                .collect();
        }
        events.truncate(count);
        Outcome::Result(json!({ "events": events }))
    }
}

/// The complete messages at the start of a text.
fn messages(text: &[u8]) -> Vec<Value> {
    let stream = serde_json::Deserializer::from_slice(text).into_iter();
    stream.map_while(Result::ok).collect()
}

fn is_stderr(chunk: &Value) -> bool {
    chunk["stream"] == "OUTPUT_STREAM_STDERR"
}

/// A status as `-format-error` prints it.
fn refused(stderr: &[u8]) -> Value {
    let status = messages(stderr).pop().unwrap_or_default();
    let code = status["code"]
        .as_i64()
        .and_then(|code| i32::try_from(code).ok());
    let code = code.map(|code| crate::sdk::code_name(tonic::Code::from(code)));
    let detail = |kind: &str| {
        let details = status["details"].as_array().into_iter().flatten();
        let of_kind = |detail: &&Value| {
            detail["@type"]
                .as_str()
                .is_some_and(|name| name.ends_with(kind))
        };
        details.clone().find(of_kind).cloned().unwrap_or_default()
    };
    let info = detail("google.rpc.ErrorInfo");
    let bad = detail("google.rpc.BadRequest");
    json!({
        "code": code,
        "reason": info["reason"],
        "metadata": info["metadata"],
        "field": bad["fieldViolations"][0]["field"],
        "stderr": String::from_utf8_lossy(stderr),
    })
}
