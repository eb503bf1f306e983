//! What makes a task wait for others, or them for it.

use clap::{Args, ValueEnum};
use heeler_client::{Spawn, v1::ExclusiveMode};

/// Beside whom a task may run.
#[derive(Debug, Args)]
pub(crate) struct TurnArgs {
    /// Wait for a turn in this queue, which runs one task at a time unless it is set otherwise: see
    /// `heeler queue`
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,

    /// Of the tasks with this key, one lives at a time: it is free once no process of its holder is left
    #[arg(long, value_name = "KEY")]
    exclusive: Option<String>,

    /// What to do if another task has the key
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnHeld::Reject,
          requires = "exclusive")]
    on_held: OnHeld,
}

/// What happens when another task has the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnHeld {
    /// Do not start, and name the holder
    Reject,
    /// Stop the holder, prove it gone, then start
    Replace,
    /// Wait for it: first come, first served
    Queue,
}

impl TurnArgs {
    /// With what was asked for.
    pub(crate) fn apply(&self, mut spawn: Spawn) -> Spawn {
        if let Some(queue) = &self.queue {
            spawn = spawn.queue(queue);
        }
        if let Some(key) = &self.exclusive {
            let mode = match self.on_held {
                OnHeld::Reject => ExclusiveMode::Reject,
                OnHeld::Replace => ExclusiveMode::Replace,
                OnHeld::Queue => ExclusiveMode::Queue,
            };
            spawn = spawn.exclusive(key, mode);
        }
        spawn
    }
}
