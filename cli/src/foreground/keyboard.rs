//! The keyboard of a session: waits for the detach key. Ctrl-C and the like stay signals.
//!
//! The terminal's modes are restored at the end, on a panic, and before the command is suspended. They are
//! changed only while this process group has the terminal: the kernel would stop any other group.

use std::{
    io::{self, IsTerminal},
    os::fd::AsFd,
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{Signal, raise},
        termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr},
    },
    unistd::{getpgrp, read, tcgetpgrp},
};
use tokio::sync::mpsc;

use crate::args::detach_key::DetachKey;

/// The interval of checks while another process group has the terminal.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) enum Keyboard {
    /// Stdin is no terminal, or there is no detach key.
    None,
    Terminal(Terminal),
}

/// A terminal in a mode that delivers every key at once and does not echo it.
#[derive(Debug)]
pub(crate) struct Terminal {
    original: Termios,
    presses: mpsc::Receiver<()>,
}

impl Keyboard {
    /// Changes the mode of the terminal, if stdin is one and this process group has it.
    pub(crate) fn open(key: DetachKey) -> io::Result<Self> {
        let DetachKey::Byte(key) = key else {
            return Ok(Self::None);
        };
        if !io::stdin().is_terminal() || !has_terminal() {
            return Ok(Self::None);
        }
        let original = tcgetattr(io::stdin())?;
        // One press is enough until it is handled.
        let (press, presses) = mpsc::channel(1);
        let terminal = Terminal { original, presses };
        terminal.set_key_mode();
        // The thread ends with the process.
        thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || read_keys(key, &press))?;
        Ok(Self::Terminal(terminal))
    }

    /// Waits for the key; never returns without a terminal.
    pub(crate) async fn pressed(&mut self) {
        let pressed = match self {
            Self::None => None,
            Self::Terminal(terminal) => terminal.presses.recv().await,
        };
        if pressed.is_none() {
            std::future::pending().await
        }
    }

    /// Stops this process like the terminal's own suspend key, and not at all if no shell could resume
    /// it.
    pub(crate) fn suspend(&self) {
        if let Self::Terminal(terminal) = self {
            terminal.restore();
        }
        // This process has no handler for SIGTTIN, and the kernel drops the signal in an orphaned group.
        // It goes to this thread: when `raise` returns, the stop is over or was dropped.
        let _ = raise(Signal::SIGTTIN);
        self.resume();
    }

    /// Changes the mode of the terminal again, if this process group has it.
    pub(crate) fn resume(&self) {
        if let Self::Terminal(terminal) = self {
            terminal.set_key_mode();
        }
    }
}

impl Terminal {
    fn set_key_mode(&self) {
        let mut wanted = self.original.clone();
        wanted
            .local_flags
            .remove(LocalFlags::ICANON | LocalFlags::ECHO);
        // A read returns at once with the bytes that there are.
        wanted.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        wanted.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        self.set(&wanted);
    }

    fn restore(&self) {
        self.set(&self.original);
    }

    /// Does nothing if the terminal is gone or another process group has it.
    fn set(&self, modes: &Termios) {
        if has_terminal() {
            let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, modes);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Returns whether this process group has the terminal.
fn has_terminal() -> bool {
    // A terminal that controls no session can be used by any process.
    tcgetpgrp(io::stdin()).map_or(true, |group| group == getpgrp())
}

/// Reports every press of the key until the terminal is gone or the session has ended.
fn read_keys(key: u8, press: &mpsc::Sender<()>) {
    let stdin = io::stdin();
    while !press.is_closed() {
        let mut wanted = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut wanted, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(_) => return,
        }
        if !has_terminal() {
            thread::sleep(CHECK_INTERVAL);
            continue;
        }
        let mut typed = [0; 64];
        match read(&stdin, &mut typed) {
            Ok(0) if hung_up(&wanted[0]) => return,
            Ok(count) if typed[..count].contains(&key) => drop(press.try_send(())),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

fn hung_up(stdin: &PollFd<'_>) -> bool {
    let ended = PollFlags::POLLHUP | PollFlags::POLLERR;
    stdin
        .revents()
        .is_none_or(|events| events.intersects(ended))
}
