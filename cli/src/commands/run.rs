//! `heeler run`: a task in the foreground. It behaves as the command itself would.

use std::time::Duration;

use clap::Args;
use heeler_client::{
    AttachEnded, AttachItem, AttachOptions, Error,
    v1::{AttachEndReason, BackgroundTask, SpawnResponse, TaskState},
};
use nix::sys::signal::Signal;

use crate::{
    context::{ClientArgs, Context},
    duration,
    exit::{Exit, Failure},
    flow::Flow,
    hold::{Hold, PATIENCE, Role, StopBy},
    out,
    signals::{Heard, Signals},
    task_args::TaskArgs,
    terminal::Keyboard,
    values::{self, DetachKey, OnDisconnect, OnForegroundTimeout},
    words,
};

/// A task would be stopped before the command that began it has taken hold of it.
const SHORTEST_WINDOW: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  heeler run -- make -j4
  heeler run --foreground-timeout 2m -c 'npm test'
  heeler run --on-disconnect detach --session s1 -- ./build.sh

Its stdout goes to stdout, its stderr to stderr; it has no stdin, and the daemon's environment but for
--env. The command exits with the task's own exit
code, 128+n if signal n ended it; 127 if there is no such program, 126 if it cannot be executed; 141
if its output is not read any more, which stops it.

Ctrl-C (and SIGTERM, SIGQUIT) is passed on to the whole task, which is killed when its grace is over,
or at once the second time; the command ends when nothing of it is left, or at once the third time.
SIGHUP ends the command alone, as does a kill: --on-disconnect says what becomes of the task then.

Ctrl-B puts the task into the background, if stdin is a terminal: its id is printed, as the last line
of stdout, and the command exits with 0. So it is when the foreground timeout passes, or when somebody
else detaches it. A task whose first process is over while others live on goes on in the background
too; the exit code is then that of the first. A script that ends with an & is put there at once.";

/// Run a task in the foreground: its output, its exit code
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "heeler run [OPTIONS] -- <ARGV>...\n       heeler run [OPTIONS] -c <SCRIPT>"
)]
pub(crate) struct Run {
    #[command(flatten)]
    task: TaskArgs,

    /// How long it may stay in the foreground, from its start: waiting for its turn does not count
    /// [default: as long as it takes, and not the 60s of a Spawn by gRPC]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    foreground_timeout: Option<Duration>,

    /// What happens then [default: detach]
    #[arg(long, value_name = "ACTION", requires = "foreground_timeout")]
    on_foreground_timeout: Option<OnForegroundTimeout>,

    /// What happens to it when this command is gone without having detached it [default: cancel]
    #[arg(long, value_name = "ACTION")]
    on_disconnect: Option<OnDisconnect>,

    /// How long after that, 1s or more: an attach within it keeps the task [default: 10s]
    #[arg(long, value_name = "T", value_parser = reattach_window, allow_hyphen_values = true)]
    reattach_window: Option<Duration>,

    /// The key that puts it into the background: ctrl- and a letter, or none
    #[arg(long, value_name = "KEY", default_value = "ctrl-b", value_parser = values::detach_key)]
    detach_key: DetachKey,

    #[command(flatten)]
    client: ClientArgs,
}

impl Run {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let spawn = self.request()?;
        let cx = Context::open(&self.client).await?;
        // From here on a signal is the task's, also while it is being started.
        let mut signals = Signals::listen().map_err(Failure::begin)?;
        let client = cx.client.retry_for(PATIENCE);
        let spawned = client.spawn_response(spawn);
        let (started, early) = started(&mut signals, spawned).await?;
        for notice in &started.notices {
            out::note(&notice.message);
        }
        let task = started.task.ok_or(Error::Incomplete { field: "task" })?;
        let flow = Flow::open(cx.json).map_err(Failure::begin)?;
        if task.foreground_timeout.is_none() {
            return in_background(flow, task).await;
        }
        if task.state() == TaskState::Queued {
            let (id, what) = (&task.id, words::waited(&task));
            out::note(&format!("{id} waits for its turn: {what}"));
        }
        let task = client.task(task.id);
        let options = AttachOptions::default()
            .foreground_only()
            .give_up_after(PATIENCE);
        let attach = task.attach_with(options);
        let by = match self.task.has_stop_signal() {
            true => StopBy::Chosen,
            false => StopBy::SameSignal,
        };
        let keyboard = Keyboard::open(self.detach_key).map_err(Failure::begin)?;
        let mut hold = Hold::new(task, Role::Owner(by), flow, keyboard, signals);
        early.and_then(|heard| hold.hear(heard));
        hold.until_ended(attach).await
    }

    fn request(&self) -> Result<heeler_client::Spawn, Failure> {
        let mut spawn = self
            .task
            .request()?
            .foreground()
            .foreground_timeout(self.foreground_timeout.unwrap_or(Duration::MAX));
        if let Some(action) = self.on_foreground_timeout {
            spawn = spawn.on_foreground_timeout(action.into());
        }
        if let Some(action) = self.on_disconnect {
            spawn = spawn.on_disconnect(action.into());
        }
        if let Some(window) = self.reattach_window {
            spawn = spawn.reattach_window(window);
        }
        Ok(spawn)
    }
}

/// A script that ends with an `&` has asked for the background itself: all there is to say is the id.
async fn in_background(mut flow: Flow, task: BackgroundTask) -> Result<Exit, Failure> {
    let id = task.id.clone();
    let reason = AttachEndReason::Detached;
    flow.put(&AttachItem::Ended(AttachEnded { task, reason }))?;
    flow.put_id(&id);
    flow.finish().await?;
    Ok(Exit::Done)
}

fn reattach_window(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        window if window < SHORTEST_WINDOW => Err(format!(
            "it must be {} or more: the command needs a moment to take hold of its task",
            duration::precise(SHORTEST_WINDOW)
        )),
        window => Ok(window),
    }
}

/// The answer to a Spawn, and what was heard meanwhile: it can only be acted upon once there is a task.
/// Whoever says it twice is not kept waiting.
async fn started(
    signals: &mut Signals,
    spawn: impl Future<Output = Result<SpawnResponse, Error>>,
) -> Result<(SpawnResponse, Option<Heard>), Failure> {
    tokio::pin!(spawn);
    let mut early = None;
    loop {
        tokio::select! {
            answer = &mut spawn => return Ok((answer.map_err(Failure::Program)?, early)),
            heard = signals.next() => match heard {
                Heard::End(signal) if early.is_some() => return Err(Failure::Left(signal)),
                Heard::HangUp => return Err(Failure::Left(Signal::SIGHUP)),
                Heard::End(_) => early = Some(heard),
                Heard::Pause => Keyboard::None.suspend(),
                Heard::GoOn => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use heeler_client::v1::{Placement, SpawnRequest};

    use super::*;

    fn parse(args: &[&str]) -> Result<Run, clap::Error> {
        let cli = crate::Cli::try_parse_from([&["heeler", "run"], args].concat())?;
        let crate::commands::Command::Run(crate::deferred::Deferred(args)) = cli.command else {
            panic!("not run")
        };
        Ok(args)
    }

    #[test]
    fn unless_told_it_stays_in_the_foreground_for_as_long_as_it_takes() {
        let request = SpawnRequest::from(parse(&["--", "true"]).unwrap().request().unwrap());
        assert_eq!(request.placement(), Placement::Foreground);
        let years = request.foreground_timeout.unwrap().seconds / (365 * 24 * 3600);
        assert!(years > 1000, "{years}");
        assert_eq!((request.on_disconnect, request.reattach_window), (0, None));
    }

    #[test]
    fn it_takes_what_spawn_takes_and_the_rules_of_the_foreground() {
        assert!(parse(&["--session", "s", "--timeout", "1s", "-c", "x"]).is_ok());
        assert!(
            parse(&[
                "--foreground-timeout",
                "1s",
                "--on-foreground-timeout",
                "cancel",
                "--",
                "x"
            ])
            .is_ok()
        );
        assert!(parse(&["--on-foreground-timeout", "cancel", "--", "x"]).is_err());
        assert!(parse(&["--on-disconnect", "keep", "--detach-key", "none", "--", "x"]).is_ok());
        assert!(parse(&["--detach-key", "ctrl-c", "--", "x"]).is_err());
        assert!(parse(&["--reattach-window", "1s", "--", "x"]).is_ok());
        let error = parse(&["--reattach-window", "999ms", "--", "x"]).unwrap_err();
        assert!(error.to_string().contains("--reattach-window"), "{error}");
        assert!(parse(&[]).is_err());
    }
}
