//! `heeler attach`: prints a task's output as it comes, as an attached client of a foreground task.

use clap::Args;
use heeler_client::AttachOptions;

use crate::{
    args::{
        detach_key::{self, DetachKey},
        selection,
    },
    completion,
    context::{ClientArgs, Context, RECONNECT_LIMIT},
    exit::Exit,
    failure::Failure,
    foreground::{
        keyboard::Keyboard,
        output::ForegroundOutput,
        session::{ForegroundSession, Mode},
        signals::Signals,
    },
    output_reader, task_ref,
};

const EXAMPLES: &str = "\
Examples:
  heeler attach shell-4k2mzq7xda
  heeler attach --tail 20 shell-4k2mzq7xda

The task's output is printed from its beginning, its stdout to stdout and its stderr to stderr. \
The command ends when the task's leader exits, with the leader's exit code, or 128+n if signal n \
killed it.

Ctrl-C or another signal ends the command with 128+n, but not the task. If this was the last \
client attached to a foreground task, the task's --on-disconnect applies: by default it is \
stopped after 10s.

Ctrl-B, if stdin is a terminal, moves a foreground task to the background, prints its id and \
exits with 0, for all attached clients. On a background task it ends the command alone.";

/// Attach to a task and print its output
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Attach {
    /// The task: an id, a unique prefix of one, or the name of a live task
    #[arg(value_name = "ID", add = completion::tasks(), value_parser = selection::not_empty())]
    id: String,

    /// Begin with the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    tail: Option<u64>,

    /// The key that detaches the task: ctrl- and a letter, or none
    #[arg(long, value_name = "KEY", default_value = "ctrl-b", value_parser = detach_key::parse)]
    detach_key: DetachKey,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Attach {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let cx = Context::open(&self.client).await?;
        let client = cx.client.retry_for(RECONNECT_LIMIT);
        let id = task_ref::resolve_one(&client, &self.id).await?;
        let offset = match self.tail {
            Some(count) => output_reader::last_lines(&client, &id, count).await?,
            None => 0,
        };
        let task = client.task(id);
        let options = AttachOptions::from_offset(offset).give_up_after(RECONNECT_LIMIT);
        let attach = task.attach_with(options);
        let signals = Signals::listen().map_err(Failure::setup)?;
        let output = ForegroundOutput::open(cx.json).map_err(Failure::setup)?;
        let keyboard = Keyboard::open(self.detach_key).map_err(Failure::setup)?;
        ForegroundSession::new(task, Mode::Attach, output, keyboard, signals)
            .run(attach)
            .await
    }
}
