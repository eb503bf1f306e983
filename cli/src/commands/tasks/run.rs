//! `heeler run`: runs a task in the foreground. It behaves like the program itself.

use clap::Args;
use heeler_client::{
    AttachEnded, AttachItem, AttachOptions, Client, Error, Filter,
    v1::{
        AttachEndReason, BackgroundTask, RemoveRequest, SpawnNoticeType, SpawnResponse, TaskState,
    },
};
use nix::sys::signal::Signal;

use super::spawn;
use crate::{
    args::{
        detach_key::{self, DetachKey},
        spawn_request,
        task::{ForegroundArgs, TaskArgs},
    },
    context::{ClientArgs, Context, RECONNECT_LIMIT},
    exit::Exit,
    failure::Failure,
    foreground::{
        keyboard::Keyboard,
        output::ForegroundOutput,
        queue_notes::QueueNotes,
        session::{ForegroundSession, Mode, StopSignal},
        signals::{Received, Signals},
    },
    out,
    render::spec,
};

const EXAMPLES: &str = "\
Examples:
  heeler run -- make -j4
  heeler run make test
  heeler run --foreground-timeout 2m -c 'npm test'
  heeler run --queue build -- cargo test
  heeler run --on-disconnect detach --session s1 -- ./build.sh

The task's stdout goes to stdout and its stderr to stderr. It has no stdin, and it inherits the \
daemon's environment, not yours, apart from --env.

The exit code is the task's own, 128+n if signal n killed it, 127 if there is no such program, \
126 if the program cannot be executed, and 141 if the reader of its output went away, which stops \
the task.

Ctrl-C (or SIGTERM, SIGQUIT) is sent to the whole task, which is killed after its grace. A second \
one kills it at once. The command exits when every process of the task is gone; a third signal \
ends it at once. SIGHUP or SIGKILL ends the command alone; then --on-disconnect applies.

Ctrl-B, if stdin is a terminal, moves the task to the background: its id is printed as the last \
line of stdout, and the command exits with 0. The same happens after the foreground timeout, when \
another client detaches the task, and for a script that ends with an unquoted &.

A task that must wait for its queue or its key says on stderr what it is waiting for. The time until it starts counts for no timeout.

With --on-held ensure an equal task that runs already is attached to, as by `heeler attach`: a signal \
ends the command alone, and --rm deletes nothing. If that task is in the background, its output so far is printed, then its id.

If the leader exits while other processes of the task run, the task continues in the background, \
and the exit code is the leader's.";

/// Run a task in the foreground, with its output and exit code
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "heeler run [OPTIONS] [--] <ARGV>...\n       heeler run [OPTIONS] -c <SCRIPT>"
)]
pub(crate) struct Run {
    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    foreground: ForegroundArgs,

    /// The key that detaches the task: ctrl- and a letter, or none
    #[arg(long, value_name = "KEY", default_value = "ctrl-b", value_parser = detach_key::parse)]
    detach_key: DetachKey,

    /// Start the task in the background and print its id, as `heeler spawn` does
    #[arg(short, long, conflicts_with_all = ["foreground_timeout", "on_foreground_timeout",
          "on_disconnect", "reattach_window", "rm"])]
    detach: bool,

    /// Delete the task and its output when it has finished
    #[arg(long)]
    rm: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Run {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        if self.detach {
            let Self { task, client, .. } = self;
            let wait_ready = false;
            let spawn = spawn::Spawn {
                task,
                wait_ready,
                client,
            };
            return spawn.run().await;
        }
        let spawn = spawn_request::foreground(&self.task, &self.foreground)?;
        let cx = Context::open(&self.client).await?;
        let spawn = spawn_request::with_parent(&cx.client, &self.task, spawn).await?;
        // From here on signals are for the task, also while it is being spawned.
        let mut signals = Signals::listen().map_err(Failure::setup)?;
        let client = cx.client.retry_for(RECONNECT_LIMIT);
        let response = client.spawn_response(spawn);
        let (response, early_signal) = spawned(&mut signals, response).await?;
        for notice in &response.notices {
            out::note(&notice.message);
        }
        let is_own = !was_running(&response);
        let task = response.task.ok_or(Error::Incomplete { field: "task" })?;
        let output = ForegroundOutput::open(cx.json).map_err(Failure::setup)?;
        if !spec::is_foreground(&task) {
            return print_id(output, task).await;
        }
        let _notes = match task.state() == TaskState::Queued {
            true => Some(QueueNotes::start(client.clone(), task.clone()).await),
            false => None,
        };
        let task = client.task(task.id);
        let id = task.id().to_owned();
        let options = AttachOptions::default()
            .foreground_only()
            .give_up_after(RECONNECT_LIMIT);
        let attach = task.attach_with(options);
        let mode = match (is_own, self.task.has_stop_signal()) {
            (true, true) => Mode::Run(StopSignal::AsConfigured),
            (true, false) => Mode::Run(StopSignal::AsReceived),
            (false, _) => Mode::Attach,
        };
        let keyboard = Keyboard::open(self.detach_key).map_err(Failure::setup)?;
        let mut session = ForegroundSession::new(task, mode, output, keyboard, signals);
        if let Some(exit) = early_signal.and_then(|signal| session.handle_signal(signal)) {
            return Ok(exit);
        }
        let exit = session.run(attach).await;
        if self.rm && is_own {
            remove(&client, &id).await;
        }
        exit
    }
}

/// Returns whether an equal task is the answer, and nothing was started.
fn was_running(response: &SpawnResponse) -> bool {
    let notices = &response.notices;
    (notices.iter()).any(|notice| notice.r#type() == SpawnNoticeType::AlreadyRunning)
}

/// Deletes the task of `--rm`, unless it continues.
async fn remove(client: &Client, id: &str) {
    let filter = Some(Filter::all().task(id).into());
    if let Err(error) = client.remove(RemoveRequest { filter }).await {
        let failure = Failure::from(error);
        let reason = failure.message().unwrap_or_default();
        out::note(&format!("{id} is not deleted: {reason}"));
    }
}

/// A script that ends with `&` is a background task: only its id is printed.
async fn print_id(mut output: ForegroundOutput, task: BackgroundTask) -> Result<Exit, Failure> {
    let id = task.id.clone();
    let reason = AttachEndReason::Detached;
    output.put(&AttachItem::Ended(AttachEnded { task, reason }))?;
    output.put_id(&id);
    output.finish().await?;
    Ok(Exit::Success)
}

/// The response of the Spawn, and a signal that came before it and can only be handled after it. A second
/// signal ends the command.
async fn spawned(
    signals: &mut Signals,
    response: impl Future<Output = Result<SpawnResponse, Error>>,
) -> Result<(SpawnResponse, Option<Received>), Failure> {
    tokio::pin!(response);
    let mut early = None;
    loop {
        tokio::select! {
            response = &mut response => return Ok((response.map_err(Failure::Spawn)?, early)),
            received = signals.next() => match received {
                Received::End(signal) if early.is_some() => {
                    return Err(Failure::Interrupted(signal));
                }
                Received::HangUp => return Err(Failure::Interrupted(Signal::SIGHUP)),
                Received::End(_) => early = Some(received),
                Received::Suspend => Keyboard::None.suspend(),
                Received::Continue => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn it_has_the_flags_of_spawn_and_those_of_the_foreground() {
        let parse = |args: &[&str]| parse::<Run>(args);
        assert!(parse(&["--session", "s", "--timeout", "1s", "-c", "x"]).is_ok());
        let action = ["--on-foreground-timeout", "cancel", "--", "x"];
        let timeout = ["--foreground-timeout", "1s"];
        assert!(parse(&[&timeout[..], &action].concat()).is_ok());
        assert!(parse(&action).is_err());
        assert!(parse(&["--on-disconnect", "keep", "--detach-key", "none", "--", "x"]).is_ok());
        assert!(parse(&["--detach-key", "ctrl-c", "--", "x"]).is_err());
        assert!(parse(&["--reattach-window", "1s", "--", "x"]).is_ok());
        let error = parse(&["--reattach-window", "999ms", "--", "x"]).unwrap_err();
        assert!(error.to_string().contains("--reattach-window"), "{error}");
        assert!(parse(&[]).is_err());
    }
}
