//! One run: its directory, and the state that several cases share.
//!
//! Nothing is deleted before the run ends: for some minutes after a deletion, ext4 creates files nearby
//! several times more slowly, which would distort the next case.

use std::{
    cell::Cell,
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::{
    Result,
    measured::{
        daemon::{Containment, Daemon},
        past, program,
    },
};

#[derive(Debug)]
pub(crate) struct Bench {
    /// In the directory for temporary files, which should be on a disk as the journal is.
    dir: TempDir,
    heeler: PathBuf,
    made: Cell<u32>,
    long_past: OnceCell<PathBuf>,
}

impl Bench {
    /// Begins a run, and builds the program if needed.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            dir: tempfile::Builder::new().prefix("heeler-bench-").tempdir()?,
            heeler: program::heeler()?,
            made: Cell::new(0),
            long_past: OnceCell::new(),
        })
    }

    /// The `heeler` program.
    pub(crate) fn heeler(&self) -> &Path {
        &self.heeler
    }

    /// Creates a directory that lasts as long as the run.
    pub(crate) fn directory(&self) -> Result<PathBuf> {
        let number = self.made.replace(self.made.get() + 1);
        let path = self.dir.path().join(number.to_string());
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Starts a daemon without finished tasks.
    pub(crate) async fn daemon(&self, containment: Containment) -> Result<Daemon> {
        self.daemon_with(containment, &[]).await
    }

    /// Starts a daemon without finished tasks, with further flags.
    pub(crate) async fn daemon_with(
        &self,
        containment: Containment,
        flags: &'static [&'static str],
    ) -> Result<Daemon> {
        let dir = self.directory()?;
        let state = dir.join("state");
        Daemon::start(&self.heeler, dir, state, containment, flags).await
    }

    /// Starts a daemon on an existing state directory.
    pub(crate) async fn daemon_on(&self, state: &Path) -> Result<Daemon> {
        Daemon::start(
            &self.heeler,
            self.directory()?,
            state.to_owned(),
            Containment::Best,
            &[],
        )
        .await
    }

    /// A state directory with 100,000 finished tasks, shared by the cases.
    pub(crate) async fn long_past(&self) -> Result<&Path> {
        let make = || async { past::make(self.directory()?, past::LONG).await };
        Ok(self.long_past.get_or_try_init(make).await?)
    }
}
