//! `heeler attach`: a task's output as it comes, and a hold on it if it is in the foreground.

use clap::Args;
use heeler_client::AttachOptions;

use crate::{
    context::{ClientArgs, Context},
    exit::{Exit, Failure},
    flow::Flow,
    follow::{self, Select},
    hold::{Hold, PATIENCE, Role},
    signals::Signals,
    terminal::Keyboard,
    values::{self, DetachKey},
};

const EXAMPLES: &str = "\
Examples:
  heeler attach shell-4k2mzq7xda
  heeler attach --tail 20 shell-4k2mzq7xda

It prints the task's output from its beginning, its stdout to stdout and its stderr to stderr, and ends
with the task's first process: with its exit code, 128+n if signal n ended it.

Ctrl-C, and any other signal, ends the command and not the task, with 128+n. A task in the foreground is
held meanwhile, and when the last who holds it leaves like this, its rule for that case applies: unless
it was told otherwise it is stopped 10s later. Ctrl-B, if stdin is a terminal, puts a foreground task into
the background, prints its id and exits with 0, for everybody who holds it; of a task that is in the
background it takes leave.";

/// Follow a task's output, and hold it if it is in the foreground
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Attach {
    /// The task
    #[arg(value_name = "ID")]
    id: String,

    /// Begin with the last N lines rather than at the beginning
    #[arg(long, value_name = "N")]
    tail: Option<u64>,

    /// The key that puts it into the background: ctrl- and a letter, or none
    #[arg(long, value_name = "KEY", default_value = "ctrl-b", value_parser = values::detach_key)]
    detach_key: DetachKey,

    #[command(flatten)]
    client: ClientArgs,
}

impl Attach {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let cx = Context::open(&self.client).await?;
        let client = cx.client.retry_for(PATIENCE);
        let offset = match self.tail {
            Some(count) => follow::last_lines(&client, &self.id, count, Select::Both).await?,
            None => 0,
        };
        let task = client.task(&self.id);
        let attach = task.attach_with(AttachOptions::from_offset(offset).give_up_after(PATIENCE));
        let signals = Signals::listen().map_err(Failure::begin)?;
        let flow = Flow::open(cx.json).map_err(Failure::begin)?;
        let keyboard = Keyboard::open(self.detach_key).map_err(Failure::begin)?;
        Hold::new(task, Role::Visitor, flow, keyboard, signals)
            .until_ended(attach)
            .await
    }
}
