//! How a daemon is to be started.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::PermissionsExt,
    sync::{OnceLock, atomic::AtomicU32},
};

use crate::Daemon;

/// How a daemon is to be started.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) program: Program,
}

/// Which `heeler` file it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Program {
    /// The one that was built.
    #[default]
    Built,
    /// A copy in its own directory.
    Copied,
}

impl Builder {
    /// One more argument of `serve`; `{dir}` in it stands for the daemon's directory.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args
            .push(arg.as_ref().to_str().expect("UTF-8").to_owned());
        self
    }

    /// The containment of the kill ladder.
    pub fn containment(self, containment: &str) -> Self {
        self.arg("--containment").arg(containment)
    }

    /// How many tasks may be live.
    pub fn max_tasks(self, max: u32) -> Self {
        self.arg("--max-tasks").arg(max.to_string())
    }

    /// A variable of the daemon's own environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// A copy of the program, so that whatever runs it can be told to be this daemon's own.
    pub fn own_program(mut self) -> Self {
        self.program = Program::Copied;
        self
    }

    /// Starts it, and waits until it serves.
    pub async fn start(self) -> Daemon {
        let mut daemon = self.prepare();
        daemon.restart().await;
        daemon
    }

    /// Its directory, with no daemon running.
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
