//! `heeler run`: runs a task in the foreground. It behaves like the program itself.

use std::io;

use clap::Args;
use heeler_client::{
    AttachEnded, AttachItem, AttachOptions, Client, Error, Filter,
    v1::{
        AttachEndReason, BackgroundTask, RemoveRequest, SpawnNoticeType, SpawnResponse, TaskState,
    },
};
use nix::sys::signal::Signal;
use tokio::io::AsyncWriteExt;

use super::spawn;
use crate::{
    args::{
        spawn_request,
        task::{ForegroundArgs, TaskArgs},
        value::detach_key::{self, DetachKey},
    },
    context::{ClientArgs, Context, RECONNECT_LIMIT},
    exit::Exit,
    failure::Failure,
    foreground::{
        input::{Input, Source},
        keyboard::Keyboard,
        output::ForegroundOutput,
        queue_notes::QueueNotes,
        session::{ForegroundSession, Mode, StopSignal, TaskTerminal},
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
  printf '3\\n1\\n' | heeler run sort
  heeler run -i -- some-stdio-server

The task's stdout goes to stdout and its stderr to stderr. It inherits the daemon's environment, \
not yours, apart from --env.

Stdin is passed on, byte for byte and with its end, if it is a pipe, a socket or a file, and with -i. \
Otherwise the task has none. When stdin has ended and the reader of stdout is gone, so is the caller, \
and the task is stopped: a stdio server does not outlive its client.

With -t, as in `heeler run -t bash`, the task has a terminal of its own, of the size of yours, and every key but the detach key is \
for the task, Ctrl-C included. `heeler attach` continues with a task that was detached.

The exit code is the task's own, 128+n if signal n killed it, 127 if there is no such program, \
126 if the program cannot be executed, and 141 if the reader of its output went away, which stops \
the task.

Ctrl-C (or SIGTERM, SIGQUIT) is sent to the whole task, which is killed after its grace. A second \
one kills it at once. The command exits when every process of the task is gone; a third signal \
ends it at once. SIGHUP or SIGKILL ends the command alone; then --on-disconnect applies.

Ctrl-B, if stdin is a terminal, moves the task to the background: its id is printed as the last \
line of stdout, and the command exits with 0. The same happens after the foreground timeout, when \
another client detaches the task, and for a script that ends with an unquoted &. If the daemon does \
not answer, a second press ends the command alone.

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
        let source = Source::of_run(&self.task.input)?;
        let spawn = spawn_request::foreground(&self.task, &self.foreground)?;
        let spawn = match source {
            Source::Stdin => spawn.input(),
            Source::Nothing | Source::Keyboard => spawn,
        };
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
        let is_plain = cx.json.is_none();
        let output = ForegroundOutput::open(cx.json).map_err(Failure::setup)?;
        let output = match (self.task.input.tty, is_own) {
            (true, true) => output.follow_modes(),
            // No key is passed on, and so no answer.
            (true, false) => output.follow_modes().hold_queries_before(u64::MAX),
            (false, _) => output,
        };
        if !spec::is_foreground(&task) {
            if is_own && source == Source::Stdin {
                // As the shell gives a background job no input.
                let _ = client.task(&*task.id).input().shutdown().await;
            }
            return print_id(output, task).await;
        }
        let source = match is_own {
            true => source,
            false => Source::Nothing,
        };
        let _notes = match task.state() == TaskState::Queued {
            true => Some(QueueNotes::start(client.clone(), task.clone()).await),
            false => None,
        };
        let may_relay = is_plain && source == Source::Stdin && task.state() == TaskState::Running;
        let uid = task.uid;
        let task = client.task(task.id);
        let id = task.id().to_owned();
        let mode = match (is_own, self.task.has_stop_signal()) {
            (true, true) => Mode::Run(StopSignal::AsConfigured),
            (true, false) => Mode::Run(StopSignal::AsReceived),
            (false, _) => Mode::Attach,
        };
        let (keyboard, input) = match may_relay {
            true => (Keyboard::None, None),
            false => self.open(source).map_err(Failure::setup)?,
        };
        let terminal = match source {
            Source::Keyboard if self.task.input.size.is_none() => TaskTerminal::SameSize,
            Source::Keyboard | Source::Nothing | Source::Stdin => TaskTerminal::None,
        };
        let session = ForegroundSession::new(
            client.clone(),
            task.clone(),
            mode,
            output,
            keyboard,
            signals,
        );
        let mut session = session.pass_input(input, terminal);
        let attach = match may_relay {
            true => session.pass_stdin(&uid, attach_from).await,
            false => Ok(task.attach_with(attach_from(0))),
        };
        let attach = attach.map_err(Failure::setup)?;
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

/// The options of the Attach from an offset on.
fn attach_from(offset: u64) -> AttachOptions {
    AttachOptions::from_offset(offset)
        .foreground_only()
        .give_up_after(RECONNECT_LIMIT)
}

impl Run {
    fn open(&self, source: Source) -> io::Result<(Keyboard, Option<Input>)> {
        Ok(match source {
            Source::Nothing => (Keyboard::open(self.detach_key)?, None),
            Source::Stdin => (Keyboard::None, Some(Input::stdin()?)),
            Source::Keyboard => {
                let (keyboard, keys) = Keyboard::open_raw(self.detach_key)?;
                (keyboard, Some(Input::keys(keys)))
            }
        })
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
                Received::Continue | Received::Resize => {}
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
