//! The command at a pseudo-terminal, whose keys the test types and which answers queries as terminals do.

use std::{
    ffi::OsStr,
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::Stdio,
    sync::{Arc, Mutex},
    thread,
};

use nix::{
    fcntl::{OFlag, open},
    pty::{Winsize, grantpt, openpty, posix_openpt, ptsname_r, unlockpt},
    sys::{
        stat::Mode,
        termios::{LocalFlags, tcgetattr},
    },
};
use tokio::process::{Child, ChildStdin};

use crate::{Daemon, Process, eventually, within};

/// The columns of every terminal.
pub const COLUMNS: u16 = 80;
/// The lines of every terminal.
pub const LINES: u16 = 24;
const SIZE: Winsize = Winsize {
    ws_row: LINES,
    ws_col: COLUMNS,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

/// The queries that every terminal answers, here and in reality: for its kind, and for the cursor's position.
const ANSWERS: [(&[u8], &[u8]); 2] = [(b"\x1b[c", b"\x1b[?62c"), (b"\x1b[6n", b"\x1b[7;9R")];

/// A command with a controlling terminal.
#[derive(Debug)]
pub struct AtTerminal {
    pub child: Child,
    keys: File,
    /// The command's side, kept open so that its modes can be read after the command's exit.
    screen: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
}

/// A terminal that takes no output until it is watched.
#[derive(Debug)]
pub struct SilentTerminal {
    screen: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

/// The modes of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// Echo and line mode, as a shell leaves them.
    Usual,
    /// No echo, key by key; signal keys work.
    Keys,
    /// Any other modes.
    Odd,
}

impl Daemon {
    /// `heeler ARGS…` at a new terminal; stdout may go elsewhere.
    pub fn at_terminal<T: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = T>,
        stdout: Option<Stdio>,
    ) -> AtTerminal {
        self.at_terminal_of(SIZE, args, stdout)
    }

    /// `heeler ARGS…` at a new terminal with so many columns.
    pub fn at_wide_terminal<T: AsRef<OsStr>>(
        &self,
        columns: u16,
        args: impl IntoIterator<Item = T>,
    ) -> AtTerminal {
        let size = Winsize {
            ws_col: columns,
            ..SIZE
        };
        self.at_terminal_of(size, args, None)
    }

    /// `heeler ARGS…` with stdin in a pipe, and stdout and stderr at a terminal that takes nothing yet.
    pub fn at_silent_terminal<T: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = T>,
    ) -> (Child, ChildStdin, SilentTerminal) {
        let pty = openpty(&SIZE, None).unwrap();
        let mut command = self.cli(args);
        let screen = || Stdio::from(pty.slave.try_clone().unwrap());
        command.stdin(Stdio::piped());
        command.stdout(screen()).stderr(screen());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().expect("it is piped");
        let terminal = SilentTerminal {
            screen: File::from(pty.master),
            shown: Arc::default(),
        };
        (child, stdin, terminal)
    }

    /// `heeler ARGS…` at a new terminal, which the test reads itself; to drop it is to close its window.
    pub fn at_unwatched_terminal<T: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = T>,
    ) -> (Child, File) {
        let (terminal, screen) = unshared().unwrap();
        (self.spawn_at(&screen, args, None), terminal)
    }

    /// Starts a session whose controlling terminal is this one, then executes the command.
    fn spawn_at<T: AsRef<OsStr>>(
        &self,
        terminal: &OwnedFd,
        args: impl IntoIterator<Item = T>,
        stdout: Option<Stdio>,
    ) -> Child {
        let mut command = self.wrapper("setsid");
        command.arg("--ctty").arg(self.program()).args(args);
        let screen = || Stdio::from(terminal.try_clone().unwrap());
        command.stdin(screen()).stderr(screen());
        command.stdout(stdout.unwrap_or_else(screen));
        command.spawn().expect("there is a setsid")
    }

    fn at_terminal_of<T: AsRef<OsStr>>(
        &self,
        size: Winsize,
        args: impl IntoIterator<Item = T>,
        stdout: Option<Stdio>,
    ) -> AtTerminal {
        let pty = openpty(&size, None).unwrap();
        let child = self.spawn_at(&pty.slave, args, stdout);
        let (keys, shown) = (File::from(pty.master), Arc::default());
        watch(keys.try_clone().unwrap(), Arc::clone(&shown));
        AtTerminal {
            child,
            keys,
            screen: pty.slave,
            shown,
        }
    }
}

impl SilentTerminal {
    /// Takes the output from here on.
    pub fn watch(&self) {
        watch(self.screen.try_clone().unwrap(), Arc::clone(&self.shown));
    }

    /// The text shown so far.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }
}

/// The two sides of a new terminal. No child inherits the first one, which would keep the window open.
fn unshared() -> nix::Result<(File, OwnedFd)> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let screen = open(ptsname_r(&master)?.as_str(), flags, Mode::empty())?;
    Ok((File::from(OwnedFd::from(master)), screen))
}

/// Collects the output until the other side is closed. Queries are answered before they count as shown.
fn watch(mut from: File, shown: Arc<Mutex<Vec<u8>>>) {
    thread::spawn(move || {
        let (mut all, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = from.read(&mut piece) {
            for &byte in &piece[..count] {
                all.push(byte);
                let asked = ANSWERS.iter().find(|(query, _)| all.ends_with(query));
                if let Some((_, answer)) = asked {
                    // The command may have exited.
                    let _ = from.write_all(answer);
                }
            }
            shown.lock().unwrap().clone_from(&all);
        }
    });
}

impl AtTerminal {
    /// Types keys.
    pub fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).unwrap();
    }

    /// The current modes of the terminal.
    pub fn modes(&self) -> Modes {
        let flags = tcgetattr(&self.screen).unwrap().local_flags;
        let line = LocalFlags::ICANON | LocalFlags::ECHO;
        match (flags & line, flags.contains(LocalFlags::ISIG)) {
            (found, true) if found == line => Modes::Usual,
            (found, true) if found.is_empty() => Modes::Keys,
            _ => Modes::Odd,
        }
    }

    /// Waits until the terminal has these modes.
    pub async fn becomes(&self, modes: Modes) {
        eventually("the terminal's modes", || self.modes() == modes).await;
    }

    /// The text shown so far.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until the terminal shows this text.
    pub async fn shows(&self, text: &str) {
        eventually(text, || self.shown().contains(text)).await;
    }

    /// The command's process.
    pub fn process(&self) -> Process {
        let pid = self.child.id().expect("it runs") as i32;
        Process::now(pid).expect("it runs")
    }

    /// Waits for the command's exit code.
    pub async fn exit(&mut self) -> Option<i32> {
        let status = within("the command ends", self.child.wait()).await;
        status.unwrap().code()
    }
}
