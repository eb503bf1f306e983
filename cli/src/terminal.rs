//! The keyboard, while a task is in the foreground: one key is looked for, and signals stay signals.
//!
//! The terminal is given back as it was found: at the end, on a panic, before a stop. It is touched
//! only by the group of processes that has it: any other would be stopped for it.

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

use crate::values::DetachKey;

/// Between two looks at a terminal that is another's: what is typed there is not for us.
const OTHERS_TURN: Duration = Duration::from_millis(200);

/// The keyboard, or that there is none to be read.
#[derive(Debug)]
pub(crate) enum Keyboard {
    /// Nobody types, or nothing that is typed would mean anything.
    None,
    Terminal(Terminal),
}

/// A terminal that gives every key at once, and shows none.
#[derive(Debug)]
pub(crate) struct Terminal {
    found: Termios,
    presses: mpsc::Receiver<()>,
}

impl Keyboard {
    /// Takes the terminal, if stdin is one and it is ours.
    pub(crate) fn open(key: DetachKey) -> io::Result<Self> {
        let DetachKey::Byte(key) = key else {
            return Ok(Self::None);
        };
        if !io::stdin().is_terminal() || !is_ours() {
            return Ok(Self::None);
        }
        let found = tcgetattr(io::stdin())?;
        // A press that has not been acted upon needs no second one.
        let (press, presses) = mpsc::channel(1);
        let terminal = Terminal { found, presses };
        terminal.listen();
        // It ends with the process.
        thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || read_keys(key, &press))?;
        Ok(Self::Terminal(terminal))
    }

    /// Until the key is pressed; never, where there is none.
    pub(crate) async fn pressed(&mut self) {
        let pressed = match self {
            Self::None => None,
            Self::Terminal(terminal) => terminal.presses.recv().await,
        };
        if pressed.is_none() {
            std::future::pending().await
        }
    }

    /// Stops this process, as the terminal's own key for that would have: not at all, where no shell
    /// would let it go on.
    pub(crate) fn suspend(&self) {
        if let Self::Terminal(terminal) = self {
            terminal.give_back();
        }
        // Of the signals that stop a process and that nobody here listens to, one which the kernel drops
        // in an orphaned group. To this very thread: when it returns, that is decided, or over.
        let _ = raise(Signal::SIGTTIN);
        self.resume();
    }

    /// The process goes on, in the foreground or not.
    pub(crate) fn resume(&self) {
        if let Self::Terminal(terminal) = self {
            terminal.listen();
        }
    }
}

impl Terminal {
    fn listen(&self) {
        let mut wanted = self.found.clone();
        wanted
            .local_flags
            .remove(LocalFlags::ICANON | LocalFlags::ECHO);
        // A read gives what there is, and waits for nothing.
        wanted.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        wanted.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        self.set(&wanted);
    }

    fn give_back(&self) {
        self.set(&self.found);
    }

    /// A terminal that is gone, or another's, needs nothing.
    fn set(&self, modes: &Termios) {
        if is_ours() {
            let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, modes);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Whether this process is among those that the terminal belongs to now.
fn is_ours() -> bool {
    // One that controls no session is for whoever has it open.
    tcgetpgrp(io::stdin()).map_or(true, |group| group == getpgrp())
}

/// Tells of every press of the key, until the terminal is gone or nobody listens.
fn read_keys(key: u8, press: &mpsc::Sender<()>) {
    let stdin = io::stdin();
    while !press.is_closed() {
        let mut wanted = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut wanted, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(_) => return,
        }
        if !is_ours() {
            thread::sleep(OTHERS_TURN);
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
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
    stdin.revents().is_none_or(|seen| seen.intersects(gone))
}
