//! The command under a shell that does job control, at a terminal of their own.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::Stdio,
    thread,
};

use heeler_tests::{Daemon, eventually, within};
use nix::{
    pty::openpty,
    sys::termios::{LocalFlags, tcgetattr},
    unistd::tcgetpgrp,
};
use tokio::process::{Child, Command};

/// Who has the terminal, as what it does with keys tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// What is typed is shown.
    Shell,
    /// What is typed is not shown.
    Command,
}

/// A shell that runs the command; when it is paused, it reads a line and lets it go on.
pub(crate) struct Shell {
    child: Child,
    keys: File,
    screen: OwnedFd,
}

impl Shell {
    pub(crate) fn start(daemon: &Daemon, args: &str) -> Self {
        let pty = openpty(None, None).unwrap();
        let heeler = daemon.command();
        let program = heeler.get_program().to_str().unwrap();
        let mut command = Command::new("setsid");
        command.args(["--ctty", "bash", "-c"]);
        command.arg(format!("set -m; '{program}' {args}; read line; fg"));
        command.current_dir(daemon.home()).env_clear();
        let set = heeler.get_envs();
        command.envs(set.filter_map(|(name, value)| Some((name, value?))));
        let screen = || Stdio::from(pty.slave.try_clone().unwrap());
        command.stdin(screen()).stdout(screen()).stderr(screen());
        let child = command.kill_on_drop(true).spawn().unwrap();
        let keys = File::from(pty.master);
        let mut shown = keys.try_clone().unwrap();
        // Nobody looks; it is taken so that nobody waits to write. It ends with the terminal.
        thread::spawn(move || while let Ok(1..) = shown.read(&mut [0; 4096]) {});
        Self {
            child,
            keys,
            screen: pty.slave,
        }
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).unwrap();
    }

    /// Until the terminal is this one's.
    pub(crate) async fn becomes(&self, wanted: Turn) {
        eventually("whose turn it is", || self.turn() == wanted).await;
    }

    fn turn(&self) -> Turn {
        let flags = tcgetattr(&self.screen).unwrap().local_flags;
        match flags.contains(LocalFlags::ECHO) {
            true => Turn::Shell,
            false => Turn::Command,
        }
    }

    /// The process group that the terminal belongs to.
    pub(crate) fn foreground(&self) -> i32 {
        tcgetpgrp(&self.keys).unwrap().as_raw()
    }

    /// The shell's exit code, which is that of the command.
    pub(crate) async fn exit(&mut self) -> Option<i32> {
        let status = within("the shell ends", self.child.wait()).await;
        status.unwrap().code()
    }
}
