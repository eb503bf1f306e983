//! `heeler_ensure`: starts a task unless an equal one runs.

use heeler_client::v1::{ErrorReason, ExclusiveMode};
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Effect, Tool,
    spawn::{self, Started},
};
use crate::{
    connection::Call,
    input::{ReadyArgs, StartArgs},
    problem::Problem,
};

/// The longest key that the daemon accepts, in bytes.
const LONGEST_KEY: usize = 256;

pub(crate) struct Ensure;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct EnsureArgs {
    /// A word for its purpose, e.g. `dev-server`. One task per key and directory runs at a time.
    key: String,
    /// Stop the task that has the key, whatever it runs, and start this one. Use it to restart.
    #[serde(default)]
    replace: bool,
    #[serde(flatten)]
    start: StartArgs,
    #[serde(flatten)]
    ready: ReadyArgs,
}

impl Tool for Ensure {
    const NAME: &'static str = "heeler_ensure";
    const TITLE: &'static str = "Keep one task running";
    const DESCRIPTION: &'static str = "Makes sure that a background task runs exactly once: returns the task \
that has this key and command, or starts it. Use it for dev servers, databases, watchers and tunnels, before you \
rely on them; call it again whenever in doubt. A task that another agent started in the same directory is found \
too. A different command under the key is refused unless replace=true, which stops the old one, proves it gone \
and starts this one. Do not use it for commands that end: use heeler_run or heeler_spawn.";
    const EFFECT: Effect = Effect::RunsOnce;
    type Input = EnsureArgs;
    type Output = Started;

    async fn call(input: EnsureArgs, call: &Call<'_>) -> Result<Started, Problem> {
        if input.key.trim().is_empty() {
            return Err(Problem::argument("key", "is empty"));
        }
        let mode = match input.replace {
            true => ExclusiveMode::Replace,
            false => ExclusiveMode::Ensure,
        };
        let directory = input.start.directory(&call.connection.options.directory);
        let key = format!("{}:{}", input.key, directory.display());
        if key.len() > LONGEST_KEY {
            return Err(Problem::argument(
                "key",
                "is too long, with the directory it belongs to",
            ));
        }
        let spawn = input
            .ready
            .add_to(input.start.spawn(call)?.exclusive(key, mode))?;
        let started = spawn::start(spawn, &input.ready, Problem::NotStarted, call).await;
        match &started {
            Ok(started) => call.connection.share(&started.task.id),
            Err(problem) => {
                if let Some(holder) = holder(problem) {
                    call.connection.share(holder);
                }
            }
        }
        started
    }
}

/// The task that has the key, if that is why none was started. The error names it, so it has to be within reach.
fn holder(problem: &Problem) -> Option<&str> {
    let Problem::Daemon(error) = problem else {
        return None;
    };
    let differs = error
        .refusal()
        .filter(|_| error.is(ErrorReason::ExclusiveKeyDiffers));
    differs?.metadata.get("task_id").map(String::as_str)
}
