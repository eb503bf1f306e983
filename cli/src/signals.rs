//! The signals that somebody who holds a task hears. One that was ignored when the command began, as
//! under `nohup`, stays so.

use std::{fs, io};

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

/// What was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// That it should end: SIGINT, SIGTERM or SIGQUIT.
    End(Signal),
    /// SIGHUP: whoever was looking has gone.
    HangUp,
    /// SIGTSTP: it should pause.
    Pause,
    /// SIGCONT: it goes on.
    GoOn,
}

/// The signals, from the moment this is made.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Option<unix::Signal>,
    terminate: Option<unix::Signal>,
    quit: Option<unix::Signal>,
    hang_up: Option<unix::Signal>,
    pause: Option<unix::Signal>,
    go_on: Option<unix::Signal>,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let listen = |signal: Signal| {
            let number = signal as i32;
            let heard = ignored & (1 << (number - 1)) == 0;
            heard
                .then(|| unix::signal(SignalKind::from_raw(number)))
                .transpose()
        };
        Ok(Self {
            interrupt: listen(Signal::SIGINT)?,
            terminate: listen(Signal::SIGTERM)?,
            quit: listen(Signal::SIGQUIT)?,
            hang_up: listen(Signal::SIGHUP)?,
            pause: listen(Signal::SIGTSTP)?,
            go_on: listen(Signal::SIGCONT)?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Heard {
        tokio::select! {
            () = next(&mut self.interrupt) => Heard::End(Signal::SIGINT),
            () = next(&mut self.terminate) => Heard::End(Signal::SIGTERM),
            () = next(&mut self.quit) => Heard::End(Signal::SIGQUIT),
            () = next(&mut self.hang_up) => Heard::HangUp,
            () = next(&mut self.pause) => Heard::Pause,
            () = next(&mut self.go_on) => Heard::GoOn,
        }
    }
}

async fn next(signal: &mut Option<unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// The set of signals that this process ignores; none where that cannot be told.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or(0)
}
