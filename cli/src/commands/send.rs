//! `heeler send`: sends bytes to the stdin or terminal of a task, or a message to its worker.

use std::{
    io::Read as _,
    time::{Duration, Instant},
};

use clap::{Args, builder::NonEmptyStringValueParser};
use heeler_client::{
    Bytes, key_bytes, time,
    v1::{BackgroundTask, SendMessageRequest, WriteInputRequest},
};

use crate::{
    args::value::duration,
    completion,
    context::{ClientArgs, Context},
    exit::Exit,
    failure::Failure,
    out,
    render::spec,
    task_ref,
};

/// The time that a write waits for a task to read. It is repeated until all is taken.
const WAIT: Duration = Duration::from_secs(60);
/// The time without progress after which the person is told.
const QUIET: Duration = Duration::from_secs(2);
/// The most bytes of one call, and the most that is read from stdin: the daemon says if a message is too long.
const CALL: usize = 1 << 20;
const MOST_READ: u64 = 64 << 20;

const EXAMPLES: &str = "\
Examples:
  heeler send shell-4k2mzq7xda yes --enter
  heeler send --key C-c shell-4k2mzq7xda
  heeler send --eof shell-4k2mzq7xda
  heeler send agent-4k2mzq7xda 'look at the tests first'
  heeler send --message-id m1 hosted-7rw3hm2pqe 'once, however often this runs'

A task with a stdin or a terminal (`heeler spawn -i` or -t) gets the text as input: the text, then \
the keys in their order, then Enter, then the end. If another client has the input, the command fails unless \
--take-over is given. It waits until the task has taken all of it, and says so if that takes long; if --timeout \
passes first, it says how many bytes were taken and exits with 124.

For any other task the text is a message to its worker, which receives the messages in their order, \
now or when it connects. Up to 100 of them wait.";

/// Send input to a task, or a message to its worker
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Send {
    /// The task: an id, a unique prefix of one, or the name of a live task
    #[arg(value_name = "ID", add = completion::tasks(), value_parser = NonEmptyStringValueParser::new())]
    id: String,

    /// The input or the message; - reads it from stdin
    #[arg(value_name = "TEXT", allow_hyphen_values = true,
          required_unless_present_any = ["keys", "enter", "eof"])]
    text: Option<String>,

    /// A key, such as C-c, Enter or Up; may be repeated
    #[arg(long = "key", value_name = "KEY", value_parser = key)]
    keys: Vec<Key>,

    /// End the input with a line end
    #[arg(long)]
    enter: bool,

    /// Close the task's stdin; on a terminal, the end-of-file character
    #[arg(long)]
    eof: bool,

    /// Take the input from the client that has it
    #[arg(long)]
    take_over: bool,

    /// Longest time to wait for the task to take the input; 0 gives it what it has room for
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// Send a message, though the task has a stdin or a terminal
    #[arg(long, conflicts_with_all = ["keys", "enter", "eof", "take_over", "timeout"])]
    message: bool,

    /// A repeated message with the same id is sent once
    #[arg(long, value_name = "ID", conflicts_with_all = ["keys", "enter", "eof", "take_over", "timeout"])]
    message_id: Option<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The bytes of a key.
#[derive(Debug, Clone)]
struct Key(Vec<u8>);

fn key(name: &str) -> Result<Key, String> {
    let expected = "expected a key such as C-c, M-x, Enter, Tab, Escape, Up or F1";
    key_bytes(name).map(Key).ok_or(expected.to_owned())
}

impl Send {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let id = task_ref::resolve_one(&cx.client, &self.id).await?;
        let task = cx.client.task(id).get().await?;
        let has_input = spec::of(&task).input.is_some() || spec::of(&task).terminal.is_some();
        let wants_input = self.eof || self.enter || self.take_over || !self.keys.is_empty();
        let is_message = self.message || self.message_id.is_some();
        match wants_input || has_input && !is_message {
            true => self.write(&mut cx, &task).await?,
            false => self.send(&mut cx, task.id).await?,
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }

    async fn send(&self, cx: &mut Context, task_id: String) -> Result<(), Failure> {
        let text = String::from_utf8(self.text()?)
            .map_err(|_| Failure::Usage("the message is not valid UTF-8".to_owned()))?;
        let request = SendMessageRequest {
            task_id,
            text,
            message_id: self.message_id.clone().unwrap_or_default(),
            actor: "heeler send".to_owned(),
        };
        let response = cx.client.send_message(request).await?;
        cx.print_json(&response)?;
        Ok(())
    }

    /// Writes at the end of the input, in as many calls as the task takes.
    async fn write(&self, cx: &mut Context, task: &BackgroundTask) -> Result<(), Failure> {
        let mut input = Bytes::from(self.input(task)?);
        let size = input.len();
        let deadline = (self.timeout).and_then(|span| Instant::now().checked_add(span));
        let mut take_over = self.take_over;
        let (mut longest, mut is_noted) = (QUIET, false);
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let wait = left.map_or(longest, |left| left.min(longest));
            let data = input.slice(..input.len().min(CALL));
            let request = WriteInputRequest {
                task_id: task.id.clone(),
                close: self.eof && data.len() == input.len(),
                take_over,
                wait: Some(time::to_proto(wait)),
                data,
                ..WriteInputRequest::default()
            };
            let mut response = cx.client.write_input(request).await?;
            let taken = (response.taken_bytes as usize).min(input.len());
            input = input.split_off(taken);
            take_over = false;
            if input.is_empty() {
                // That of all calls.
                response.taken_bytes = u32::try_from(size).unwrap_or(u32::MAX);
                cx.print_json(&response)?;
                return Ok(());
            }
            let progress = format!("{} of {size} bytes are taken", size - input.len());
            if left == Some(wait) {
                return Err(Failure::TimedOut(format!("timeout passed; {progress}")));
            }
            if taken == 0 && !is_noted {
                out::note(&format!("the task does not read: {progress}"));
                is_noted = true;
            }
            longest = match taken {
                0 => WAIT,
                _ => QUIET,
            };
        }
    }

    fn input(&self, task: &BackgroundTask) -> Result<Vec<u8>, Failure> {
        let mut input = self.text()?;
        for Key(bytes) in &self.keys {
            input.extend_from_slice(bytes);
        }
        if self.enter {
            input.push(match spec::of(task).terminal {
                Some(_) => b'\r',
                None => b'\n',
            });
        }
        Ok(input)
    }

    fn text(&self) -> Result<Vec<u8>, Failure> {
        match self.text.as_deref() {
            Some("-") => {
                let mut bytes = Vec::new();
                let mut stdin = std::io::stdin().lock().take(MOST_READ);
                stdin.read_to_end(&mut bytes).map_err(Failure::setup)?;
                Ok(bytes)
            }
            text => Ok(text.unwrap_or_default().as_bytes().to_vec()),
        }
    }
}
