//! One run: the directory that everything happens in, and what several cases share.
//!
//! Nothing is deleted before the run is over: for some minutes after files were deleted ext4 takes
//! several times as long to make new ones near by, and the next case would be measured with that.

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
    daemon::{Containment, Daemon},
    past, program,
};

/// A run.
#[derive(Debug)]
pub(crate) struct Bench {
    /// In the directory for temporary files, which should be on a disk: the journal is.
    dir: TempDir,
    heeler: PathBuf,
    made: Cell<u32>,
    long_past: OnceCell<PathBuf>,
}

impl Bench {
    /// A run of this build, which may have to be built.
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

    /// A new directory, for as long as the run.
    pub(crate) fn directory(&self) -> Result<PathBuf> {
        let number = self.made.replace(self.made.get() + 1);
        let path = self.dir.path().join(number.to_string());
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// A daemon with nothing in its past.
    pub(crate) async fn daemon(&self, containment: Containment) -> Result<Daemon> {
        let dir = self.directory()?;
        let state = dir.join("state");
        Daemon::start(&self.heeler, dir, state, containment).await
    }

    /// A daemon on a state directory that is there.
    pub(crate) async fn daemon_on(&self, state: &Path) -> Result<Daemon> {
        Daemon::start(
            &self.heeler,
            self.directory()?,
            state.to_owned(),
            Containment::Best,
        )
        .await
    }

    /// A state directory with 100,000 finished tasks, the same for all who ask.
    pub(crate) async fn long_past(&self) -> Result<&Path> {
        let make = || async { past::make(self.directory()?, past::LONG).await };
        Ok(self.long_past.get_or_try_init(make).await?)
    }
}
