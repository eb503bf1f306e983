//! The directory of task files.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{MemoryDir, TaskFile, open_if_exists};
use crate::{
    process::{PROBE_SUFFIX, host::disk},
    strays,
    task::{TaskId, TaskUid},
};

/// The task files of a state directory, and their memory files.
#[derive(Debug, Clone)]
pub struct TaskDir {
    path: PathBuf,
    pub(super) memory: Option<Arc<MemoryDir>>,
}

/// An entry of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskDirEntry {
    /// A task's file, by its name.
    Task(TaskId),
    /// The file of a command that looks whether this task is ready.
    Probe(TaskId),
    Other(PathBuf),
}

impl TaskDir {
    /// The directory of a state directory, without memory files.
    pub fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join("tasks"),
            memory: None,
        }
    }

    /// Adds a directory for memory files.
    pub fn with_memory(mut self, memory: MemoryDir) -> Self {
        self.memory = Some(Arc::new(memory));
        self
    }

    pub(in crate::process) fn as_path(&self) -> &Path {
        &self.path
    }

    /// Returns a text as long as the longest path of a task file in this directory.
    pub(in crate::process) fn path_placeholder(dir: &Path) -> String {
        " ".repeat(dir.as_os_str().len() + "/x/".len() + TaskId::LONGEST)
    }

    /// Creates the directories. The files are spread over several, because a bulk deletion makes further
    /// creations in the same directory slow.
    pub fn create(&self) -> io::Result<()> {
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(&self.path)?;
        if let Err(error) = disk::spread_subdirectories(&self.path) {
            // Most file systems do not support it.
            tracing::debug!(%error, "could not ask the file system to spread the task directories");
        }
        for first in ('a'..='z').chain('2'..='7') {
            let dir = self.path.join(first.to_string());
            private.create(dir)?;
        }
        Ok(())
    }

    /// Returns whether no task file can be seen.
    pub(crate) fn is_empty(&self) -> bool {
        let below = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
        below(&self.path).all(|part| below(&part.path()).next().is_none())
    }

    /// The path of a task's file.
    pub fn path(&self, id: &TaskId) -> PathBuf {
        let last = id.as_str().chars().next_back().unwrap_or('a');
        self.path.join(last.to_string()).join(id.as_str())
    }

    /// The path of the file of the command that looks whether a task is ready.
    pub(crate) fn probe_path(&self, id: &TaskId) -> PathBuf {
        let mut path = self.path(id).into_os_string();
        path.push(PROBE_SUFFIX);
        path.into()
    }

    /// Deletes this file of a task's probe, if no other one is at its path by now.
    pub(crate) fn remove_probe(&self, id: &TaskId, file: &TaskFile) -> io::Result<()> {
        let path = self.probe_path(id);
        let own = file.file.metadata()?;
        match fs::symlink_metadata(&path) {
            Ok(there) if (there.dev(), there.ino()) == (own.dev(), own.ino()) => {
                remove_if_exists(&path)
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Opens a task's file; `None` if it does not exist.
    pub fn open(&self, id: &TaskId) -> io::Result<Option<TaskFile>> {
        let file = open_if_exists(&self.path(id), 0)?;
        Ok(file.map(|file| self.task_file(id, file)))
    }

    /// Opens a task's file; `None` if it does not exist, or belongs to another task.
    pub(crate) fn open_own(&self, id: &TaskId, uid: TaskUid) -> io::Result<Option<TaskFile>> {
        match self.open(id)? {
            Some(file) if file.is_of(uid)? => Ok(Some(file)),
            Some(_) | None => Ok(None),
        }
    }

    pub(super) fn task_file(&self, id: &TaskId, file: File) -> TaskFile {
        let memory = self.memory_path(id);
        TaskFile { file, memory }
    }

    /// The path of a task's memory file, if there can be one.
    pub(super) fn memory_path(&self, id: &TaskId) -> Option<PathBuf> {
        self.own_memory().map(|memory| memory.path(id))
    }

    /// Deletes a task's file and its output, on disk and in memory. Succeeds if there are none.
    pub fn remove(&self, id: &TaskId) -> io::Result<()> {
        self.remove_from_memory(id)?;
        remove_if_exists(&self.path(id))
    }

    /// Lists the directory.
    pub(crate) fn entries(&self) -> io::Result<Vec<TaskDirEntry>> {
        let mut entries = Vec::new();
        for part in fs::read_dir(&self.path)? {
            let part = part?.path();
            if !part.is_dir() {
                entries.push(TaskDirEntry::Other(part));
                continue;
            }
            for entry in fs::read_dir(part)? {
                entries.push(self.entry(entry?.path()));
            }
        }
        Ok(entries)
    }

    fn entry(&self, path: PathBuf) -> TaskDirEntry {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let task = name.parse().ok().filter(|id| self.path(id) == path);
        let probe = name.strip_suffix(PROBE_SUFFIX);
        let probe = probe.and_then(|name| name.parse().ok());
        match (task, probe.filter(|id| self.probe_path(id) == path)) {
            (Some(id), _) => TaskDirEntry::Task(id),
            (None, Some(id)) => TaskDirEntry::Probe(id),
            (None, None) => TaskDirEntry::Other(path),
        }
    }

    /// The path of a set-aside file with this task's name.
    pub(crate) fn stray(&self, id: &TaskId) -> PathBuf {
        strays::directory(self.state_dir()).join(id.as_str())
    }

    /// Moves a file that belongs to no task out of the way, with its output, and returns its new path.
    pub(crate) fn set_aside(&self, id: &TaskId) -> io::Result<PathBuf> {
        self.spill(id)?;
        let to = strays::unused_path(self.state_dir(), id.as_str())?;
        fs::rename(self.path(id), &to)?;
        Ok(to)
    }

    /// Returns whether a task's file, here or set aside, records that the task has abandoned orphans.
    pub(crate) fn has_abandoned(&self, id: &TaskId) -> bool {
        [self.path(id), self.stray(id)].iter().any(|path| {
            let file = open_if_exists(path, 0).ok().flatten();
            let records = file.and_then(|file| self.task_file(id, file).records().ok());
            let end = records.and_then(|records| records.tree_end.whole());
            end.is_some_and(|end| end.abandoned)
        })
    }

    fn state_dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use heeler_shim::{
        record::{TreeEnd, position},
        stamp::Stamp,
    };

    use super::*;

    fn dir() -> (tempfile::TempDir, TaskDir, TaskId) {
        let temp = tempfile::tempdir().unwrap();
        let dir = TaskDir::new(temp.path());
        dir.create().unwrap();
        (temp, dir, "shell-aaaaaaaaaa".parse().unwrap())
    }

    /// F11
    #[test]
    fn the_record_of_abandoned_orphans_is_found_here_and_set_aside() {
        let (_temp, dir, id) = dir();
        let end = |abandoned| TreeEnd {
            time: Stamp::default(),
            output_end: 0,
            cgroup_empty: false,
            cpu_micros: 0,
            max_memory: 0,
            capture_errno: 0,
            discarded: 0,
            abandoned,
        };
        for abandoned in [false, true] {
            let mut file = vec![0; position::TREE_END as usize];
            file.extend(end(abandoned).encode());
            fs::write(dir.path(&id), file).unwrap();
            assert_eq!(dir.has_abandoned(&id), abandoned);
        }
        dir.set_aside(&id).unwrap();
        assert!(dir.has_abandoned(&id));
    }

    /// R1
    #[test]
    fn the_file_of_a_later_probe_is_not_deleted() {
        let (_temp, dir, id) = dir();
        let path = dir.probe_path(&id);
        let create = || dir.task_file(&id, File::create(&path).unwrap());
        let earlier = create();
        fs::remove_file(&path).unwrap();
        let later = create();
        dir.remove_probe(&id, &earlier).unwrap();
        assert!(path.exists());
        dir.remove_probe(&id, &later).unwrap();
        assert!(!path.exists());
    }

    /// R4
    #[test]
    fn files_of_one_name_are_set_aside_under_different_names() {
        let (temp, dir, id) = dir();
        for name in ["shell-aaaaaaaaaa", "shell-aaaaaaaaaa.2"] {
            fs::write(dir.path(&id), name).unwrap();
            assert_eq!(dir.entries().unwrap(), [TaskDirEntry::Task(id.clone())]);
            let to = dir.set_aside(&id).unwrap();
            assert_eq!(to, temp.path().join("strays").join(name));
            assert_eq!(fs::read_to_string(to).unwrap(), name);
        }
    }
}
