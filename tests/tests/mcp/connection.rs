//! A client that sends single messages, and sees every answer and notification as it is on the wire.

use std::{process::Stdio, time::Duration};

use heeler_tests::{DEADLINE, Daemon, within};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

/// The newest version of the protocol with `initialize`, and the first without.
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
/// The time after which clients give up a request.
const CLIENTS_WAIT: Duration = Duration::from_secs(60);

/// A running `heeler mcp`.
pub(crate) struct Mcp {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    next_id: u64,
    /// Messages that were read while another one was waited for.
    unclaimed: Vec<Value>,
    /// The metadata of every request, in the lifecycle without `initialize`.
    meta: Option<Value>,
}

impl Mcp {
    /// Starts it, with `initialize`, as the client `tests`.
    pub(crate) async fn start(daemon: &Daemon, args: &[&str]) -> Self {
        Self::start_as(daemon, args, "tests").await
    }

    pub(crate) async fn start_as(daemon: &Daemon, args: &[&str], client: &str) -> Self {
        let mut mcp = Self::launch(daemon, args);
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": {},
            "clientInfo": { "name": client, "version": "1" },
        });
        let info = mcp.request("initialize", params).await.unwrap();
        assert_eq!(info["protocolVersion"], LEGACY);
        assert!(
            info["instructions"]
                .as_str()
                .unwrap()
                .contains("heeler_run")
        );
        mcp.notify("notifications/initialized", json!({})).await;
        mcp
    }

    /// Starts it without `initialize`: each request carries the client and its capabilities.
    pub(crate) fn modern(daemon: &Daemon, args: &[&str], capabilities: Value) -> Self {
        let mut mcp = Self::launch(daemon, args);
        mcp.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": { "name": "tests", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        mcp
    }

    pub(crate) fn launch(daemon: &Daemon, args: &[&str]) -> Self {
        let mut command = daemon.cli(["mcp"].iter().chain(args));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            stdin: child.stdin.take(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            next_id: 1,
            unclaimed: Vec::new(),
            meta: None,
        }
    }

    /// Sends bytes as they are.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("it is open");
        stdin.write_all(bytes).await.unwrap();
        stdin.flush().await.unwrap();
    }

    async fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send(&message).await;
    }

    /// Sends a request and returns its id.
    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if let (Some(Value::Object(meta)), Some(params)) = (&self.meta, params.as_object_mut()) {
            let own = params.entry("_meta").or_insert_with(|| json!({}));
            own.as_object_mut().unwrap().extend(meta.clone());
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&message).await;
        id
    }

    /// The answer to a request: its result, or its error.
    pub(crate) async fn answer(&mut self, id: u64) -> Result<Value, Value> {
        self.answer_within(DEADLINE, id).await
    }

    /// The answer to a request that takes as long as clients wait.
    pub(crate) async fn late_answer(&mut self, id: u64) -> Result<Value, Value> {
        self.answer_within(CLIENTS_WAIT, id).await
    }

    async fn answer_within(&mut self, limit: Duration, id: u64) -> Result<Value, Value> {
        let what = format!("the answer to request {id}");
        let is_it = |message: &Value| message["id"] == id;
        let message = self.message(limit, &what, is_it).await;
        match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }

    /// The next notification of a method.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        let message = self
            .message(DEADLINE, method, |message| message["method"] == method)
            .await;
        message["params"].clone()
    }

    /// True if a notification of a method was read while an answer was waited for.
    pub(crate) fn has_seen(&self, method: &str) -> bool {
        self.unclaimed
            .iter()
            .any(|message| message["method"] == method)
    }

    async fn message(
        &mut self,
        limit: Duration,
        what: &str,
        is_it: impl Fn(&Value) -> bool,
    ) -> Value {
        if let Some(index) = self.unclaimed.iter().position(&is_it) {
            return self.unclaimed.remove(index);
        }
        loop {
            let line = timeout(limit, self.lines.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("not within {limit:?}: {what}"));
            let line = line.unwrap();
            let line = line.unwrap_or_else(|| panic!("{what}: the server has closed its output"));
            let message: Value = serde_json::from_str(&line).expect("only JSON is on stdout");
            if is_it(&message) {
                return message;
            }
            self.unclaimed.push(message);
        }
    }

    pub(crate) async fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.begin(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
        .await
    }

    /// Calls a tool, which must succeed.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let answer = self.call_any(tool, arguments).await;
        assert!(!answer.is_error, "{answer:?}");
        answer
    }

    /// Calls a tool, which must answer with a tool error, and returns the text.
    pub(crate) async fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call_any(tool, arguments).await;
        assert!(answer.is_error, "{answer:?}");
        answer.text
    }

    pub(crate) async fn call_any(&mut self, tool: &str, arguments: Value) -> Answer {
        let id = self.begin_call(tool, arguments).await;
        Answer::of(&self.answer(id).await.unwrap())
    }

    /// Starts a command in the background and returns its id.
    pub(crate) async fn spawn(&mut self, command: &str) -> String {
        let started = self
            .call("heeler_spawn", json!({ "command": command }))
            .await;
        started.data["id"].as_str().unwrap().to_owned()
    }

    /// Closes its input and waits for its end.
    pub(crate) async fn close(mut self) -> std::process::ExitStatus {
        self.stdin = None;
        within("the end of the server", self.child.wait())
            .await
            .unwrap()
    }
}

/// The result of a tool call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) is_error: bool,
    pub(crate) text: String,
    /// The structured content.
    pub(crate) data: Value,
}

impl Answer {
    pub(crate) fn of(result: &Value) -> Self {
        Self {
            is_error: result["isError"] == true,
            text: result["content"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            data: result["structuredContent"].clone(),
        }
    }

    #[track_caller]
    pub(crate) fn has(&self, part: &str) -> &Self {
        assert!(self.text.contains(part), "{part}: {}", self.text);
        self
    }
}
