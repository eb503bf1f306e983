//! `heeler top`: the live tasks on a screen.
//!
//! ```text
//! WatchEvents  ──┐
//! FollowOutput ──┤                    ┌──> view ──> screen
//! keys         ──┼──> live ──> model ─┤
//! signals      ──┤                    ├──> calls to the daemon: cancel, detach, inspect
//! responses    ──┘                    └──> attach, a process in the place of the screen
//! ```
//!
//! The model and the view are pure: events and keys in, cells out.

mod attach;
mod keyboard;
mod keys;
mod live;
mod model;
mod pane;
mod screen;
mod tree;
mod view;

use std::io::{self, IsTerminal};

use clap::Args;

use crate::{
    args::selection,
    completion,
    context::{ClientArgs, Context},
    exit::Exit,
    failure::Failure,
    foreground::signals::Signals,
    out::Format,
};
use live::Live;

const EXAMPLES: &str = "\
Examples:
  heeler top
  heeler top --session s1

Keys: up and down (or k and j) select a task, s changes the order, / filters by a part of any column, c \
cancels the task after a question and shows the proof, d detaches it, a attaches to it until ctrl-b or its \
end, o hides its output, page up and page down scroll it, ? shows all keys, q quits.

The tasks and the output of the selected one arrive as events. The processes, memory and ports of the \
selected task are read every five seconds. For a script, use `heeler ps --watch --json`.";

/// Show the live tasks on a screen, with the output of one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Top {
    /// Only tasks of this session
    #[arg(long, value_parser = selection::not_empty(), add = completion::sessions())]
    session: Option<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Top {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        if self.client.format() == Format::Json {
            let text = "top has no JSON; use `heeler ps --watch --json`";
            return Err(Failure::Usage(text.to_owned()));
        }
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            let text = "top needs a terminal; use `heeler ps --watch`";
            return Err(Failure::Usage(text.to_owned()));
        }
        // The output of the context would keep stdout locked.
        let Context { client, .. } = Context::open(&self.client).await?;
        let signals = Signals::listen().map_err(Failure::setup)?;
        let filter = selection::filter(self.session.as_deref(), &[]);
        Live::open(client, self.client, filter, signals)?
            .run()
            .await
    }
}

#[cfg(test)]
mod tests;
