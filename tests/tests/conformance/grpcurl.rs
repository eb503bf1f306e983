//! grpcurl as a client of the set: it knows nothing but what reflection tells it.

use std::{path::PathBuf, process::Stdio};

use heeler_tests::{Daemon, within};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    case::Fields,
    stage::{Client, During, Outcome},
};

const SERVICE: &str = "heeler.v1.BackgroundTasks";

/// How to call a daemon.
pub(crate) struct Grpcurl {
    program: PathBuf,
    socket: PathBuf,
}

impl Client for Grpcurl {
    async fn connect(daemon: &Daemon) -> Self {
        Self {
            program: heeler_tests::grpcurl::program().expect("it was there"),
            socket: daemon.socket(),
        }
    }

    async fn step<'a>(
        &'a self,
        what: &'a str,
        mut with: Fields,
        during: During<'a, Self>,
    ) -> Outcome {
        let called = match what {
            "spawn" => self.unary("Spawn", with.rest(), "/task/id").await,
            "detach" => self.unary("Detach", with.rest(), "").await,
            "cancel" => self.unary("Cancel", with.rest(), "").await,
            "inspect" => self.unary("Inspect", with.rest(), "").await,
            "wait" => self.unary("Wait", with.rest(), "").await,
            "remove" => self.unary("Remove", with.rest(), "").await,
            "updateQueue" => self.unary("UpdateQueue", with.rest(), "").await,
            "listQueues" => self.unary("ListQueues", with.rest(), "").await,
            "list" => self.list(with.rest()).await,
            "read" => self.read(with.rest()).await,
            "run" => self.run(with.rest()).await,
            "attach" => self.attach(with.rest()).await,
            "output" => {
                let id = with.text("taskId");
                with.none_left();
                self.attach(json!({ "taskId": id })).await
            }
            "watch" => return self.watch(with, during).await,
            other => panic!("no step {other}"),
        };
        match called {
            Ok((result, kept)) => Outcome::Result(result, kept),
            Err(error) => Outcome::Error(error),
        }
    }
}

/// A result and what `as` keeps of it, or a refusal.
type Called = Result<(Value, Option<String>), Value>;

impl Grpcurl {
    fn start(&self, method: &str, request: &Value) -> Child {
        let mut command = Command::new(&self.program);
        command.args([
            "-plaintext",
            "-unix",
            "-format-error",
            "-max-msg-sz",
            "67108864",
        ]);
        command.args(["-d", &request.to_string()]);
        command.arg(&self.socket).arg(format!("{SERVICE}/{method}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().expect("grpcurl can be run")
    }

    /// Every message of an answer, or the refusal.
    async fn call(&self, method: &str, request: &Value) -> Result<Vec<Value>, Value> {
        let output = within(method, self.start(method, request).wait_with_output())
            .await
            .expect("grpcurl can be waited for");
        match output.status.success() {
            true => Ok(messages(&output.stdout)),
            false => Err(refused(&output.stderr)),
        }
    }

    async fn unary(&self, method: &str, request: Value, kept: &str) -> Called {
        let mut answer = self.call(method, &request).await?;
        let answer = answer.pop().unwrap_or_default();
        let kept = answer.pointer(kept).and_then(Value::as_str);
        let kept = kept.map(str::to_owned);
        Ok((answer, kept))
    }

    async fn list(&self, mut request: Value) -> Called {
        let mut tasks = Vec::new();
        loop {
            let (page, _) = self.unary("List", request.clone(), "").await?;
            tasks.extend(page["tasks"].as_array().cloned().unwrap_or_default());
            let Some(token) = page["nextPageToken"].as_str() else {
                return Ok((json!({ "tasks": tasks }), None));
            };
            request["pageToken"] = token.into();
        }
    }

    async fn read(&self, request: Value) -> Called {
        let (mut answer, _) = self.unary("ReadOutput", request, "").await?;
        let (stdout, stderr) = said(&answer["chunks"]);
        answer["text"] = (stdout + &stderr).into();
        let next = answer["nextOffset"].as_str().unwrap_or("0").to_owned();
        Ok((answer, Some(next)))
    }

    async fn run(&self, mut request: Value) -> Called {
        request["placement"] = "PLACEMENT_FOREGROUND".into();
        let (_, id) = self.unary("Spawn", request, "/task/id").await?;
        let (held, _) = self.attach(json!({ "taskId": id })).await?;
        Ok((held, id))
    }

    async fn attach(&self, request: Value) -> Called {
        let (mut out, mut err, mut ended) = (String::new(), String::new(), Value::Null);
        for message in self.call("Attach", &request).await? {
            let (stdout, stderr) = said(&message["output"]["chunks"]);
            out += &stdout;
            err += &stderr;
            if !message["ended"].is_null() {
                ended = message["ended"].clone();
            }
        }
        let held = json!({ "stdout": out, "stderr": err, "ended": ended });
        Ok((held, None))
    }

    async fn watch(&self, mut with: Fields, during: During<'_, Self>) -> Outcome {
        if !during.is_empty() {
            let why = "a stream that breaks is not taken up again";
            return Outcome::Cannot(why.to_owned());
        }
        let count = with
            .take("count")
            .map_or(1, |count| count.as_u64().expect("a number"));
        let mut child = self.start("WatchEvents", &with.rest());
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (mut text, mut events) = (Vec::new(), Vec::new());
        while (events.len() as u64) < count {
            let read = within("an event", stdout.read_buf(&mut text)).await;
            if read.expect("a pipe") == 0 {
                let output = child.wait_with_output().await.expect("an end");
                return Outcome::Error(refused(&output.stderr));
            }
            let told = messages(&text).into_iter();
            events = told
                .filter_map(|mut message| message.get_mut("event").map(Value::take))
                .collect();
        }
        events.truncate(count as usize);
        let revision = events.last().and_then(|event| event["revision"].as_str());
        let revision = revision.map(str::to_owned);
        Outcome::Result(json!({ "events": events }), revision)
    }
}

/// The whole messages that stand one behind the other.
fn messages(text: &[u8]) -> Vec<Value> {
    let stream = serde_json::Deserializer::from_slice(text).into_iter();
    stream.map_while(Result::ok).collect()
}

/// What chunks say, each stream by itself.
fn said(chunks: &Value) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    for chunk in chunks.as_array().into_iter().flatten() {
        let data = base64(chunk["data"].as_str().unwrap_or_default());
        match chunk["stream"].as_str() {
            Some("OUTPUT_STREAM_STDERR") => err.extend(data),
            _ => out.extend(data),
        }
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(out), text(err))
}

/// Bytes as protobuf's JSON has them.
fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = LETTERS.iter().position(|known| *known == letter);
        bits = bits << 6 | value.expect("base64") as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
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
        "told": String::from_utf8_lossy(stderr),
    })
}
