//! `heeler attach`: prints a task's output as it comes, as an attached client of a foreground task.

use std::io;

use clap::Args;
use heeler_client::AttachOptions;

use crate::{
    args::{
        selection,
        value::detach_key::{self, DetachKey},
    },
    completion,
    context::{ClientArgs, Context, RECONNECT_LIMIT},
    exit::Exit,
    failure::Failure,
    foreground::{
        input::Input,
        keyboard::{self, Keyboard},
        output::ForegroundOutput,
        session::{ForegroundSession, Mode, TaskTerminal},
        signals::Signals,
    },
    output_reader,
    render::spec,
    task_ref,
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
stopped after 10s. Others can have the input then.

If the task has a terminal and stdin is one, every key but Ctrl-B is for the task, Ctrl-C as well, and its terminal gets \
the size of yours unless another client has its input. The questions that the task has asked its terminal before, such as that for the cursor's position, \
are not asked again: your terminal's answers would be keys. With -i stdin is passed on to a task with a stdin. If another client has the \
task's input, --take-over takes it; --read-only leaves it alone.

Ctrl-B, if stdin is a terminal, moves a foreground task to the background, prints its id and \
exits with 0, for all attached clients. On a background task it ends the command alone. If the daemon \
does not answer, a second press ends the command.";

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

    /// Pass stdin on to the task
    #[arg(short = 'i', long, conflicts_with = "read_only")]
    interactive: bool,

    /// Take the task's input from the client that has it
    #[arg(long, conflicts_with = "read_only")]
    take_over: bool,

    /// Pass no key on to the task
    #[arg(long)]
    read_only: bool,

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
        let task_has_terminal = spec::of(&task.get().await?).terminal.is_some();
        let has_terminal = task_has_terminal && keyboard::is_ours() && !self.read_only;
        let signals = Signals::listen().map_err(Failure::setup)?;
        let output = ForegroundOutput::open(cx.json).map_err(Failure::setup)?;
        let output = match task_has_terminal {
            true => {
                let live = match has_terminal {
                    true => output_reader::present_end(&client, task.id()).await?,
                    // No answer is passed on.
                    false => u64::MAX,
                };
                output.follow_modes().hold_queries_before(live)
            }
            false => output,
        };
        let options = AttachOptions::from_offset(offset).give_up_after(RECONNECT_LIMIT);
        let attach = task.attach_with(options);
        let (keyboard, input) = self.open(has_terminal).map_err(Failure::setup)?;
        let terminal = match has_terminal {
            true => TaskTerminal::SameSize,
            false => TaskTerminal::None,
        };
        let mode = Mode::Attach;
        let session = ForegroundSession::new(client, task, mode, output, keyboard, signals);
        session.pass_input(input, terminal).run(attach).await
    }

    fn open(&self, has_terminal: bool) -> io::Result<(Keyboard, Option<Input>)> {
        let (keyboard, input) = match (has_terminal, self.interactive) {
            (true, _) => {
                let (keyboard, keys) = Keyboard::open_raw(self.detach_key)?;
                (keyboard, Some(Input::keys(keys)))
            }
            (false, true) => (Keyboard::None, Some(Input::stdin()?)),
            (false, false) => (Keyboard::open(self.detach_key)?, None),
        };
        Ok(match self.take_over {
            true => (keyboard, input.map(Input::take_over)),
            false => (keyboard, input),
        })
    }
}
