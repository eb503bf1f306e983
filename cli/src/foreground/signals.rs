//! The signals that a session reacts to. A signal that was ignored at the start of the command, as under
//! `nohup`, stays ignored.

use std::{fs, io};

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// SIGINT, SIGTERM or SIGQUIT.
    End(Signal),
    /// SIGHUP: the terminal is gone.
    HangUp,
    /// SIGTSTP.
    Suspend,
    /// SIGCONT.
    Continue,
    /// SIGWINCH: the terminal has another size.
    Resize,
}

#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Option<unix::Signal>,
    terminate: Option<unix::Signal>,
    quit: Option<unix::Signal>,
    hang_up: Option<unix::Signal>,
    suspend: Option<unix::Signal>,
    resume: Option<unix::Signal>,
    resize: Option<unix::Signal>,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored_signals();
        let listen = |signal: Signal| {
            let number = signal as i32;
            let is_wanted = ignored & (1 << (number - 1)) == 0;
            is_wanted
                .then(|| unix::signal(SignalKind::from_raw(number)))
                .transpose()
        };
        Ok(Self {
            interrupt: listen(Signal::SIGINT)?,
            terminate: listen(Signal::SIGTERM)?,
            quit: listen(Signal::SIGQUIT)?,
            hang_up: listen(Signal::SIGHUP)?,
            suspend: listen(Signal::SIGTSTP)?,
            resume: listen(Signal::SIGCONT)?,
            resize: listen(Signal::SIGWINCH)?,
        })
    }

    pub(crate) async fn next(&mut self) -> Received {
        tokio::select! {
            () = next(&mut self.interrupt) => Received::End(Signal::SIGINT),
            () = next(&mut self.terminate) => Received::End(Signal::SIGTERM),
            () = next(&mut self.quit) => Received::End(Signal::SIGQUIT),
            () = next(&mut self.hang_up) => Received::HangUp,
            () = next(&mut self.suspend) => Received::Suspend,
            () = next(&mut self.resume) => Received::Continue,
            () = next(&mut self.resize) => Received::Resize,
        }
    }
}

async fn next(signal: &mut Option<unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// The bit set of the signals that this process ignores; empty if it cannot be read.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or(0)
}
