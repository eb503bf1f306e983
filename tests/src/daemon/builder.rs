//! The configuration of a daemon.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::PermissionsExt,
    sync::{OnceLock, atomic::AtomicU32},
};

use crate::Daemon;

/// A daemon to be started.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) program: Program,
}

/// The `heeler` file that a daemon runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Program {
    /// The one under test.
    #[default]
    Built,
    /// A copy in the daemon's directory.
    Copied,
}

impl Builder {
    /// Adds an argument of `serve`; `{dir}` in it stands for the daemon's directory.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args
            .push(arg.as_ref().to_str().expect("UTF-8").to_owned());
        self
    }

    pub fn containment(self, containment: &str) -> Self {
        self.arg("--containment").arg(containment)
    }

    pub fn max_tasks(self, max: u32) -> Self {
        self.arg("--max-tasks").arg(max.to_string())
    }

    /// Sets a variable in the daemon's environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Runs a copy of the program: a process that runs it belongs to this daemon.
    pub fn own_program(mut self) -> Self {
        self.program = Program::Copied;
        self
    }

    /// Starts the daemon, and waits until it serves.
    pub async fn start(self) -> Daemon {
        let mut daemon = self.prepare();
        daemon.restart().await;
        daemon
    }

    /// Makes the directory, and starts nothing.
    pub fn prepare(self) -> Daemon {
        let dir = tempfile::Builder::new()
            .prefix("heeler-")
            .tempdir_in("/tmp")
            .unwrap();
        for name in ["home", "run"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::set_permissions(dir.path().join(name), PermissionsExt::from_mode(0o700)).unwrap();
        }
        let memory = tempfile::Builder::new()
            .prefix("heeler-test-")
            .tempdir_in("/dev/shm")
            .unwrap();
        let (child, fixtures) = (None, AtomicU32::new(0));
        let (epoch, fixture) = (None, OnceLock::new());
        Daemon {
            dir,
            memory,
            child,
            fixtures,
            epoch,
            builder: self,
            fixture,
        }
    }
}
