//! The command at a terminal of its own, and somebody who types there.

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
use tokio::process::{Child, Command};

use crate::{Daemon, Process, eventually, within};

/// A command that has a terminal, which it controls.
#[derive(Debug)]
pub struct AtTerminal {
    /// The command.
    pub child: Child,
    keys: File,
    /// The command's side, kept so that it can be looked at when the command is gone.
    screen: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
}

/// What a terminal does with what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// It is shown, and given line by line: as a shell leaves it to a command.
    Usual,
    /// It is not shown, and given at once; some keys are signals.
    Keys,
    /// Anything else.
    Odd,
}

impl Daemon {
    /// `heeler ARGS…` with its stdin, and what else was not sent elsewhere, at a new terminal.
    pub fn at_terminal<T: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = T>,
        stdout: Option<Stdio>,
    ) -> AtTerminal {
        let pty = openpty(None, None).unwrap();
        let heeler = self.command();
        // It makes the terminal that of a new session, and becomes the command.
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(heeler.get_program()).args(args);
        command.current_dir(self.home()).env_clear();
        let set = heeler.get_envs();
        command.envs(set.filter_map(|(name, value)| Some((name, value?))));
        let screen = || Stdio::from(pty.slave.try_clone().unwrap());
        command.stdin(screen()).stderr(screen());
        command
            .stdout(stdout.unwrap_or_else(screen))
            .kill_on_drop(true);
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

/// Ends when the last who has the other side is gone.
fn watch(mut from: File, shown: Arc<Mutex<Vec<u8>>>) {
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            shown.lock().unwrap().extend_from_slice(&piece[..count]);
        }
    });
}

impl AtTerminal {
    /// Types.
    pub fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).unwrap();
    }

    /// What the terminal does with what is typed, now.
    pub fn modes(&self) -> Modes {
        let flags = tcgetattr(&self.screen).unwrap().local_flags;
        let line = LocalFlags::ICANON | LocalFlags::ECHO;
        match (flags & line, flags.contains(LocalFlags::ISIG)) {
            (found, true) if found == line => Modes::Usual,
            (found, true) if found.is_empty() => Modes::Keys,
            _ => Modes::Odd,
        }
    }

    /// Until the terminal does this.
    pub async fn becomes(&self, modes: Modes) {
        eventually("the terminal's modes", || self.modes() == modes).await;
    }

    /// What is on it so far.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Until this is on it.
    pub async fn shows(&self, text: &str) {
        eventually(text, || self.shown().contains(text)).await;
    }

    /// The command's process.
    pub fn process(&self) -> Process {
        let pid = self.child.id().expect("it runs") as i32;
        Process::now(pid).expect("it runs")
    }

    /// The command's exit code, when it has ended.
    pub async fn exit(&mut self) -> Option<i32> {
        let status = within("the command ends", self.child.wait()).await;
        status.unwrap().code()
    }
}
