//! `heeler_send`: sends input to a task, or a message to its worker.

use std::time::Duration;

use heeler_client::{
    Bytes, key_bytes, time,
    v1::{BackgroundTask, SendMessageRequest, WriteInputRequest},
};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Answer, Effect, Tool};
use crate::{connection::Call, problem::Problem};

/// The time that a write waits for the task to read.
const WAIT: Duration = Duration::from_secs(10);

pub(crate) struct Send;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct SendArgs {
    /// The id of the task, or its name.
    id: String,
    /// Text for the stdin or the terminal of the task.
    #[serde(default)]
    input: Option<String>,
    /// Keys after the text, e.g. `C-c`, `Up`, `Tab`.
    #[serde(default)]
    keys: Vec<String>,
    /// End the input with Enter.
    #[serde(default)]
    enter: bool,
    /// Close the stdin after it.
    #[serde(default)]
    eof: bool,
    /// Take the input from another client that has it, such as an attached terminal.
    #[serde(default)]
    take_over: bool,
    /// Instead of input: text for the worker of the task, up to 64 KiB.
    #[serde(default)]
    message: Option<String>,
}

/// The input or the message that was sent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Sent {
    id: String,
    /// The number of the message in the task's mailbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_number: Option<u64>,
    /// The bytes of input that the task took.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_bytes: Option<u32>,
    /// The bytes of input that it did not take: it does not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_bytes: Option<u32>,
}

impl Tool for Send {
    const NAME: &'static str = "heeler_send";
    const TITLE: &'static str = "Send to a task";
    const DESCRIPTION: &'static str = "Types into a task that was started with stdin or terminal: input, keys \
such as C-c or Up, enter, eof. Use it to answer a prompt or to drive a REPL, then read the reaction with \
heeler_output. Or, with message, puts a text into the mailbox of a subagent that uses Heeler, to steer it: the \
worker receives it now or when it next looks; up to 100 messages wait. Do not use it to stop a task: use \
heeler_cancel.";
    const EFFECT: Effect = Effect::Runs;
    type Input = SendArgs;
    type Output = Sent;

    async fn call(input: SendArgs, call: &Call<'_>) -> Result<Sent, Problem> {
        let task = call.task(&input.id).await?;
        let has_input = input.input.is_some() || input.enter || input.eof || !input.keys.is_empty();
        match (input.message.clone(), has_input) {
            (Some(message), false) => send(message, task.id, call).await,
            (None, true) => write(&input, &task, call).await,
            (Some(_), true) => Err(Problem::argument(
                "message",
                "cannot be combined with input",
            )),
            (None, false) => Err(Problem::argument(
                "input",
                "is missing: give input, keys, enter or eof, or a message",
            )),
        }
    }
}

async fn send(message: String, id: String, call: &Call<'_>) -> Result<Sent, Problem> {
    let request = SendMessageRequest {
        task_id: id.clone(),
        text: message,
        // Safe to repeat while the daemon restarts.
        message_id: Uuid::now_v7().to_string(),
        actor: call.actor(),
    };
    let number = call.client.send_message(request).await?.number;
    Ok(Sent {
        id,
        message_number: Some(number),
        input_bytes: None,
        left_bytes: None,
    })
}

async fn write(input: &SendArgs, task: &BackgroundTask, call: &Call<'_>) -> Result<Sent, Problem> {
    let data = input.bytes(task)?;
    let size = data.len() as u32;
    let request = WriteInputRequest {
        task_id: task.id.clone(),
        data,
        close: input.eof,
        take_over: input.take_over,
        wait: Some(time::to_proto(WAIT)),
        ..WriteInputRequest::default()
    };
    let taken = call.client.write_input(request).await?.taken_bytes;
    Ok(Sent {
        id: task.id.clone(),
        message_number: None,
        input_bytes: Some(taken),
        left_bytes: size.checked_sub(taken).filter(|left| *left > 0),
    })
}

impl SendArgs {
    fn bytes(&self, task: &BackgroundTask) -> Result<Bytes, Problem> {
        let mut bytes = self.input.clone().unwrap_or_default().into_bytes();
        for (index, name) in self.keys.iter().enumerate() {
            let fault = "is no key: use C-c, M-x, Enter, Tab, Escape, Up, F1 or one character";
            let key = key_bytes(name);
            bytes.extend(key.ok_or_else(|| Problem::argument(&format!("keys[{index}]"), fault))?);
        }
        if self.enter {
            let terminal = task.spec.as_ref().and_then(|spec| spec.terminal.as_ref());
            bytes.push(match terminal {
                Some(_) => b'\r',
                None => b'\n',
            });
        }
        Ok(bytes.into())
    }
}

impl Answer for Sent {
    fn text(&self) -> String {
        let Self { id, .. } = self;
        match (self.message_number, self.left_bytes) {
            (Some(number), _) => format!("{id}: message {number} is in its mailbox"),
            (None, Some(left)) => format!(
                "{id}: {left} bytes of input are left: it does not read; send them again later"
            ),
            (None, None) => format!(
                "{id}: {} bytes of input are given; read the reaction with heeler_output",
                self.input_bytes.unwrap_or(0)
            ),
        }
    }
}
