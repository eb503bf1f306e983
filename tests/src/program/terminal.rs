//! The command at a pseudo-terminal, whose keys the test types.

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
    pty::openpty,
    sys::termios::{LocalFlags, tcgetattr},
};
use tokio::process::Child;

use crate::{Daemon, Process, eventually, within};

/// A command with a controlling terminal.
#[derive(Debug)]
pub struct AtTerminal {
    pub child: Child,
    keys: File,
    /// The command's side, kept open so that its modes can be read after the command's exit.
    screen: OwnedFd,
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
        let pty = openpty(None, None).unwrap();
        // Starts a session whose controlling terminal is this one, then executes the command.
        let mut command = self.wrapper("setsid");
        command.arg("--ctty").arg(self.program()).args(args);
        let screen = || Stdio::from(pty.slave.try_clone().unwrap());
        command.stdin(screen()).stderr(screen());
        command.stdout(stdout.unwrap_or_else(screen));
        let child = command.spawn().expect("there is a setsid");
        drop(command);
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

/// Collects the output until the other side is closed.
fn watch(mut from: File, shown: Arc<Mutex<Vec<u8>>>) {
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            shown.lock().unwrap().extend_from_slice(&piece[..count]);
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
