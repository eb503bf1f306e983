//! `heeler send`: sends a message to the worker of a task.

use std::io::Read as _;

use clap::{Args, builder::NonEmptyStringValueParser};
use heeler_client::v1::SendMessageRequest;

use crate::{
    completion,
    context::{ClientArgs, Context},
    exit::Exit,
    failure::Failure,
    task_ref,
};

/// More than the daemon accepts: it says what is too much.
const MOST_READ: u64 = 128 * 1024;

const EXAMPLES: &str = "\
Examples:
  heeler send agent-4k2mzq7xda 'look at the tests first'
  echo 'see the notes' | heeler send hosted-7rw3hm2pqe -
  heeler send --message-id m1 hosted-7rw3hm2pqe 'once, however often this runs'

The worker of the task receives the messages in their order, now or when it connects. Up to 100 of them wait.";

/// Send a message to the worker of a task
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Send {
    /// The task: an id, a unique prefix of one, or the name of a live task
    #[arg(value_name = "ID", add = completion::tasks(), value_parser = NonEmptyStringValueParser::new())]
    id: String,

    /// The message, up to 64 KiB; - reads it from stdin
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,

    /// A repeated message with the same id is sent once
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Send {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let request = SendMessageRequest {
            task_id: task_ref::resolve_one(&cx.client, &self.id).await?,
            text: message(&self.text)?,
            message_id: self.message_id.clone().unwrap_or_default(),
            actor: "heeler send".to_owned(),
        };
        let response = cx.client.send_message(request).await?;
        cx.print_json(&response)?;
        cx.out.flush()?;
        Ok(Exit::Success)
    }
}

fn message(text: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(MOST_READ);
    stdin.read_to_end(&mut bytes).map_err(Failure::setup)?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::Usage("the message is not valid UTF-8".to_owned()))
}
