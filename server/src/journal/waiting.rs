//! The requests of waiting tasks, secrets included: a file for each, in the directory `waiting`.
//!
//! A request is not in the database: deleted rows live on there, in free pages and in the WAL. A file is
//! written before its task is recorded, and deleted once the record says that the task has started or
//! ended. A server that dies in between leaves a file that the next one deletes.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{Durability, JournalError, RecordError, record};
use crate::task::{Seq, SpawnRequest, Task};

/// The directory with the requests of waiting tasks.
#[derive(Debug)]
pub(super) struct WaitingRequests {
    dir: PathBuf,
    durability: Durability,
}

/// Reports whether the request of a task is needed to start it.
pub(super) fn is_needed(task: &Task) -> bool {
    task.queued.is_some() && task.is_live() && task.started.is_none()
}

impl WaitingRequests {
    /// Opens the directory, and deletes the requests that no live task needs.
    pub(super) fn open<'a>(
        state_dir: &Path,
        durability: Durability,
        live: impl Iterator<Item = &'a Task>,
    ) -> Self {
        let this = Self {
            dir: state_dir.join("waiting"),
            durability,
        };
        let needed = live.filter(|task| is_needed(task)).map(|task| task.seq);
        if let Err(error) = this.retain(&needed.map(file_name).collect()) {
            tracing::warn!(%error, "cannot delete the requests of tasks that no longer wait");
        }
        this
    }

    fn retain(&self, needed: &HashSet<OsString>) -> io::Result<()> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if !needed.contains(&entry.file_name()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Stores the request of a task that is about to be recorded.
    pub(super) fn put(&self, seq: Seq, request: &SpawnRequest) -> Result<(), JournalError> {
        let write = || {
            let body = serde_json::to_vec(request).map_err(io::Error::other)?;
            let mut made = DirBuilder::new();
            made.recursive(true).mode(0o700).create(&self.dir)?;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(self.path(seq))?;
            writeln!(file, "{}", record::FORMAT)?;
            file.write_all(&body)?;
            match self.durability {
                Durability::Process => Ok(()),
                Durability::Power => {
                    file.sync_all()?;
                    sync(&self.dir)?;
                    self.dir.parent().map_or(Ok(()), sync)
                }
            }
        };
        write().map_err(|source| {
            self.delete(seq);
            JournalError::Request {
                operation: "store",
                source,
            }
        })
    }

    /// The request of a task; none if it is not needed any more, or lost.
    pub(super) fn get(&self, task: &Task) -> Result<Option<SpawnRequest>, JournalError> {
        let bytes = match fs::read(self.path(task.seq)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                let operation = "read";
                return Err(JournalError::Request { operation, source });
            }
        };
        decode(&bytes)
            .map(Some)
            .map_err(|source| JournalError::Damaged {
                revision: task.revision,
                source,
            })
    }

    /// Deletes the request of a task that has started, or never will.
    pub(super) fn delete(&self, seq: Seq) {
        match fs::remove_file(self.path(seq)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "cannot delete the request of a task that no longer waits");
            }
            Ok(()) | Err(_) => {}
        }
    }

    fn path(&self, seq: Seq) -> PathBuf {
        self.dir.join(file_name(seq))
    }
}

fn file_name(Seq(seq): Seq) -> OsString {
    seq.to_string().into()
}

/// Decodes a file: the number of its format, a line break, and the request.
fn decode(bytes: &[u8]) -> Result<SpawnRequest, RecordError> {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (format, body) = (parts.next().unwrap_or_default(), parts.next());
    let format = serde_json::from_slice(format)?;
    record::request(format, body.unwrap_or_default())
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
