//! `heeler attach` in the place of the screen: a process of its own, which reads the keys and changes the
//! terminal as it does for a shell.

use std::{env, future, io, process::ExitStatus};

use heeler_client::v1::{BackgroundTask, Placement};
use nix::{
    sys::{
        signal::{Signal, kill, raise},
        termios::{SetArg, Termios, tcgetattr, tcsetattr},
    },
    unistd::Pid,
};
use tokio::{
    process::{Child, Command},
    task::yield_now,
};

use crate::{
    context::ClientArgs,
    foreground::signals::{Received, Signals},
    out,
    render::spec,
};

/// Lines of output that are printed again.
const TAIL_LINES: u64 = 500;

/// The end of an attach.
#[derive(Debug)]
pub(super) enum Ended {
    /// The person has left, or the task has ended.
    Back(ExitStatus),
    /// A signal ends `top` as well.
    Signalled(Signal),
}

/// Attaches to a task of the daemon that these flags name. Leaves the terminal in the modes that it has now.
pub(super) async fn run(
    task: &BackgroundTask,
    args: &ClientArgs,
    signals: &mut Signals,
) -> io::Result<Ended> {
    let modes = tcgetattr(io::stdin())?;
    out::note(&notice(task));
    let child = Command::new(env::current_exe()?)
        .arg("attach")
        .args(args.to_arguments())
        .args(tail(task))
        .arg(&task.id)
        .spawn()?;
    let ended = wait(child, signals).await;
    set(&modes);
    ended
}

/// The task, and the key that leaves it.
fn notice(task: &BackgroundTask) -> String {
    let moves = match task.placement() {
        Placement::Foreground => "moves it to the background and ",
        Placement::Background | Placement::Unspecified => "",
    };
    format!(
        "attached to {}; ctrl-b {moves}goes back to heeler top",
        task.id
    )
}

/// The screen of a terminal is made by all of its output; of other output the end is enough.
fn tail(task: &BackgroundTask) -> Option<String> {
    let has_terminal = spec::of(task).terminal.is_some();
    (!has_terminal).then(|| format!("--tail={TAIL_LINES}"))
}

async fn wait(mut child: Child, signals: &mut Signals) -> io::Result<Ended> {
    let mut end = None;
    let status = loop {
        tokio::select! {
            received = signals.next() => end = handle(&child, received).or(end),
            status = child.wait() => break status?,
        }
    };
    // The runtime may learn of a signal one turn after the end of the child that had it as well.
    yield_now().await;
    loop {
        tokio::select! {
            biased;
            received = signals.next() => end = handle(&child, received).or(end),
            () = future::ready(()) => {
                return Ok(end.map_or(Ended::Back(status), Ended::Signalled));
            }
        }
    }
}

/// Returns a signal that ends `top` as well; the child has it then.
fn handle(child: &Child, received: Received) -> Option<Signal> {
    let signal = match received {
        // The terminal sends these keys to both processes: they end the attach alone.
        Received::End(Signal::SIGINT | Signal::SIGQUIT) => return None,
        Received::Continue | Received::Resize => return None,
        Received::Suspend => {
            // The child stops as well. Without a shell that could resume them, the kernel drops the signal.
            let _ = raise(Signal::SIGTTIN);
            return None;
        }
        Received::End(signal) => signal,
        Received::HangUp => Signal::SIGHUP,
    };
    forward(child, signal);
    Some(signal)
}

/// Ends the child, which restores the terminal first.
fn forward(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid {
        // It may have ended, and is not reaped before the next `wait`.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Undoes what a child that was killed has left behind.
fn set(modes: &Termios) {
    // A terminal that is gone has no modes.
    let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, modes);
}
