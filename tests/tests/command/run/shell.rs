//! A shell with job control at a pseudo-terminal, which runs the command.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::Stdio,
    sync::{Arc, Mutex},
    thread,
};

use heeler_tests::{Daemon, eventually, within};
use nix::{
    pty::openpty,
    sys::termios::{LocalFlags, tcgetattr},
    unistd::tcgetpgrp,
};
use tokio::process::Child;

/// The program that has the terminal, known by the echo mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreground {
    /// Echo is on.
    Shell,
    /// Echo is off.
    Command,
}

/// A shell that runs the command and, once it is stopped, reads a line and continues it.
pub(crate) struct Shell {
    child: Child,
    keys: File,
    screen: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Shell {
    pub(crate) fn start(daemon: &Daemon, args: &str) -> Self {
        let pty = openpty(None, None).unwrap();
        let program = daemon.program();
        let program = program.to_str().unwrap();
        let mut command = daemon.wrapper("setsid");
        command.args(["--ctty", "bash", "-c"]);
        command.arg(format!("set -m; '{program}' {args}; read line; fg"));
        let screen = || Stdio::from(pty.slave.try_clone().unwrap());
        command.stdin(screen()).stdout(screen()).stderr(screen());
        let child = command.spawn().unwrap();
        let keys = File::from(pty.master);
        let mut from = keys.try_clone().unwrap();
        let shown = Arc::<Mutex<Vec<u8>>>::default();
        let all = Arc::clone(&shown);
        // Ends with the terminal.
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                all.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Self {
            child,
            keys,
            screen: pty.slave,
            shown,
        }
    }

    /// Waits until the terminal shows this text.
    pub(crate) async fn shows(&self, text: &str) {
        let shows = || String::from_utf8_lossy(&self.shown.lock().unwrap()).contains(text);
        eventually(text, shows).await;
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).unwrap();
    }

    /// Waits until this program has the terminal.
    pub(crate) async fn becomes(&self, wanted: Foreground) {
        eventually("the terminal to change hands", || self.current() == wanted).await;
    }

    fn current(&self) -> Foreground {
        let flags = tcgetattr(&self.screen).unwrap().local_flags;
        match flags.contains(LocalFlags::ECHO) {
            true => Foreground::Shell,
            false => Foreground::Command,
        }
    }

    /// The foreground process group of the terminal.
    pub(crate) fn process_group(&self) -> i32 {
        tcgetpgrp(&self.keys).unwrap().as_raw()
    }

    /// Waits for the shell's exit code, which is that of the command.
    pub(crate) async fn exit(&mut self) -> Option<i32> {
        let status = within("the shell ends", self.child.wait()).await;
        status.unwrap().code()
    }
}
