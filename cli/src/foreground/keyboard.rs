//! The keyboard of a session: waits for the detach key. Ctrl-C and the like stay signals, unless the task
//! has a terminal of its own: then every other key is for the task.
//!
//! The modes of the terminal's line discipline are restored at the end, on a panic, and before the command is suspended;
//! those that the task's output has changed are the output's (`terminal_modes`). They are changed only while this process
//! group has the terminal: the kernel would stop any other group.

use std::{
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
    thread,
    time::{Duration, Instant},
};

use heeler_client::Bytes;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{Signal, raise},
        termios::{
            LocalFlags, SetArg, SpecialCharacterIndices, Termios, cfmakeraw, tcgetattr, tcsetattr,
        },
    },
    unistd::{getpgrp, read, tcgetpgrp},
};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::args::value::detach_key::DetachKey;

/// The interval of checks while another process group has the terminal.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) enum Keyboard {
    /// Stdin is no terminal, or no key is read.
    None,
    Terminal(Terminal),
}

/// A terminal in a mode that delivers every key at once and does not echo it.
#[derive(Debug)]
pub(crate) struct Terminal {
    original: Termios,
    mode: KeyMode,
    presses: mpsc::Receiver<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyMode {
    /// The terminal still turns Ctrl-C and the like into signals.
    DetachKey,
    /// Every key is a byte, and output is not changed.
    Raw,
}

/// The most bytes of one read.
const PIECE: usize = 1024;
/// The pieces of typed text that wait for the daemon: 1 MiB.
const PIECES: usize = 1024;
/// The time without room after which keys are dropped, and the interval of tries.
const NO_ROOM_FOR: Duration = Duration::from_secs(1);
const TRY_INTERVAL: Duration = Duration::from_millis(10);
/// Tells a person that keys are dropped, as a terminal does whose input is full.
const BELL: &[u8] = b"\x07";

impl Keyboard {
    /// Reads the detach key alone, if stdin is a terminal and this process group has it.
    pub(crate) fn open(key: DetachKey) -> io::Result<Self> {
        match key {
            DetachKey::Byte(_) if is_ours() => Self::start(key, KeyMode::DetachKey, None),
            DetachKey::Byte(_) | DetachKey::None => Ok(Self::None),
        }
    }

    /// Reads every key. All but the detach key are returned.
    pub(crate) fn open_raw(key: DetachKey) -> io::Result<(Self, mpsc::Receiver<Bytes>)> {
        let (typed, keys) = mpsc::channel(PIECES);
        Ok((Self::start(key, KeyMode::Raw, Some(typed))?, keys))
    }

    fn start(
        key: DetachKey,
        mode: KeyMode,
        typed: Option<mpsc::Sender<Bytes>>,
    ) -> io::Result<Self> {
        let original = tcgetattr(io::stdin())?;
        // One press is enough until it is handled.
        let (press, presses) = mpsc::channel(1);
        let terminal = Terminal {
            original,
            mode,
            presses,
        };
        terminal.set_key_mode();
        let mut keys = Keys {
            key,
            press,
            typed,
            has_room: true,
        };
        // The thread ends with the process.
        thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || keys.read())?;
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
        match self.mode {
            KeyMode::DetachKey => wanted
                .local_flags
                .remove(LocalFlags::ICANON | LocalFlags::ECHO),
            KeyMode::Raw => cfmakeraw(&mut wanted),
        }
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

/// Returns whether stdin is a terminal that this process group has.
pub(crate) fn is_ours() -> bool {
    io::stdin().is_terminal() && has_terminal()
}

/// Returns whether this process group has the terminal.
fn has_terminal() -> bool {
    // A terminal that controls no session can be used by any process.
    tcgetpgrp(io::stdin()).map_or(true, |group| group == getpgrp())
}

/// The receivers of the keys.
struct Keys {
    key: DetachKey,
    press: mpsc::Sender<()>,
    /// `None`: keys other than the detach key are dropped.
    typed: Option<mpsc::Sender<Bytes>>,
    /// False once keys were dropped, until others are taken.
    has_room: bool,
}

impl Keys {
    /// Reports the keys until the terminal is gone or the session has ended.
    fn read(&mut self) {
        let stdin = io::stdin();
        while !self.press.is_closed() {
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
            let mut typed = [0; PIECE];
            match read(&stdin, &mut typed) {
                Ok(0) if hung_up(&wanted[0]) => return,
                Ok(count) => self.report(&typed[..count]),
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Drops the keys behind the detach key with it.
    fn report(&mut self, typed: &[u8]) {
        let is_key = |byte: &u8| self.key == DetachKey::Byte(*byte);
        let end = typed.iter().position(is_key);
        let text = &typed[..end.unwrap_or(typed.len())];
        let wait = match (end, self.has_room) {
            (None, true) => NO_ROOM_FOR,
            (Some(_), _) | (None, false) => Duration::ZERO,
        };
        self.pass_on(text, wait);
        if end.is_some() {
            let _ = self.press.try_send(());
        }
    }

    /// Passes text on, or drops it if there is no room for this long: a task that does not read, or a daemon that is
    /// away, does not keep the detach key from being seen.
    fn pass_on(&mut self, text: &[u8], wait: Duration) {
        let Some(sender) = self.typed.as_ref().filter(|_| !text.is_empty()) else {
            return;
        };
        let begun = Instant::now();
        let mut piece = Bytes::copy_from_slice(text);
        loop {
            match sender.try_send(piece) {
                Ok(()) => {
                    self.has_room = true;
                    return;
                }
                Err(TrySendError::Closed(_)) => return,
                Err(TrySendError::Full(_)) if begun.elapsed() >= wait => break,
                Err(TrySendError::Full(same)) => piece = same,
            }
            thread::sleep(TRY_INTERVAL);
        }
        if self.has_room {
            self.has_room = false;
            let _ = io::stderr().write_all(BELL);
        }
    }
}

fn hung_up(stdin: &PollFd<'_>) -> bool {
    let ended = PollFlags::POLLHUP | PollFlags::POLLERR;
    stdin
        .revents()
        .is_none_or(|events| events.intersects(ended))
}
