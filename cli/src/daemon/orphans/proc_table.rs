//! This user's processes, as `/proc` shows them at one moment.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use nix::unistd::geteuid;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The environment variable that every process of a task has.
const TAG: &str = "HEELER_TASK_UID";

#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: i32,
    /// Tells the process from a later one with the same pid.
    start_ticks: u64,
    state: char,
    arguments: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(crate) struct ProcTable {
    processes: BTreeMap<i32, Process>,
}

impl ProcTable {
    /// Reads the processes of this user.
    pub(crate) fn read() -> Self {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = names.filter_map(|name| name.file_name().to_str()?.parse().ok());
        let own = std::process::id() as i32;
        let processes = pids.filter(|pid| *pid != own).filter_map(Process::read);
        Self {
            processes: processes.map(|one| (one.pid, one)).collect(),
        }
    }

    /// Every process that is no zombie.
    pub(crate) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.values().filter(|one| one.state != 'Z')
    }

    pub(crate) fn parent_of(&self, process: &Process) -> Option<&Process> {
        self.processes.get(&process.parent)
    }

    /// Returns whether a process descends from another.
    pub(crate) fn is_below(&self, process: &Process, above: &Process) -> bool {
        let mut at = process;
        // A table that changed while it was read could have a circle.
        for _ in 0..self.processes.len() {
            match self.parent_of(at) {
                Some(parent) if parent.pid == above.pid => {
                    return parent.start_ticks == above.start_ticks;
                }
                Some(parent) => at = parent,
                None => return false,
            }
        }
        false
    }
}

impl Process {
    /// Reads a process of this user; none for another user's, or one that is gone.
    fn read(pid: i32) -> Option<Self> {
        let dir = format!("/proc/{pid}");
        if fs::metadata(&dir).ok()?.uid() != geteuid().as_raw() {
            return None;
        }
        let stat = fs::read(format!("{dir}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat).into_owned();
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let arguments = fs::read(format!("{dir}/cmdline")).unwrap_or_default();
        let arguments = arguments.split(|byte| *byte == 0).map(<[u8]>::to_vec);
        Some(Self {
            pid,
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
            arguments: arguments.collect(),
        })
    }

    /// Returns whether the process still exists and is no zombie.
    pub(crate) fn is_alive(&self) -> bool {
        let now = Self::read(self.pid);
        now.is_some_and(|now| now.start_ticks == self.start_ticks && now.state != 'Z')
    }

    /// Signals the process, if it is still the same one. The descriptor is opened first: once its process
    /// is known to be this one, a reused pid can no longer be hit.
    pub(super) fn signal(&self, signal: Signal) {
        let descriptor = Pid::from_raw(self.pid)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            .filter(|_| self.is_alive());
        if let Some(descriptor) = descriptor {
            // It may have exited by now.
            let _ = pidfd_send_signal(descriptor, signal);
        }
    }

    /// Returns whether this is a shim with a task: its program is a memory file, and its last argument is
    /// the path of its task file.
    pub(crate) fn is_busy_shim(&self) -> bool {
        let is_shim = self.argument(0) == Some("heeler-shim") && self.argument(1) == Some("run");
        let has_task = self.argument(4).is_some_and(|title| title.starts_with('/'));
        let program = fs::read_link(format!("/proc/{}/exe", self.pid));
        let is_memory = |path: PathBuf| path.to_string_lossy().starts_with("/memfd:");
        is_shim && has_task && program.is_ok_and(is_memory)
    }

    /// Returns whether this is a daemon: it has a journal open.
    fn has_journal_open(&self) -> bool {
        let open = fs::read_dir(format!("/proc/{}/fd", self.pid)).into_iter();
        let mut links = open.flatten().flatten();
        links.any(|one| {
            let target = fs::read_link(one.path()).unwrap_or_default();
            let name = target.file_name().unwrap_or_default().as_bytes();
            name.starts_with(b"journal.db")
        })
    }

    /// Returns whether this is a running daemon.
    pub(crate) fn is_server(&self) -> bool {
        self.state != 'Z' && self.has_journal_open()
    }

    /// The state directory of a shim.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        let tasks = self.arguments.get(3)?;
        let tasks = Path::new(OsStr::from_bytes(tasks));
        Some(tasks.parent()?.to_owned())
    }

    /// The id of a shim's task.
    pub(crate) fn task_id(&self) -> Option<&str> {
        let title = self.argument(4)?.trim_end();
        title.rsplit_once('/').map(|(_, id)| id)
    }

    /// A path as this process sees it.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        let inner = path.strip_prefix("/").unwrap_or(path);
        Path::new(&format!("/proc/{}/root", self.pid)).join(inner)
    }

    /// The uid of the task that the process belongs to.
    pub(crate) fn tag(&self) -> Option<String> {
        self.variable(TAG)
    }

    /// A variable of its environment at its start.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|one| {
            let text = std::str::from_utf8(one).ok()?;
            let (key, value) = text.split_once('=')?;
            (key == name).then(|| value.to_owned())
        })
    }

    /// The command line, for messages.
    pub(crate) fn command(&self) -> String {
        let words = self
            .arguments
            .iter()
            .map(|word| String::from_utf8_lossy(word));
        let words: Vec<_> = words.collect();
        words.join(" ").trim_end().to_owned()
    }

    fn argument(&self, index: usize) -> Option<&str> {
        std::str::from_utf8(self.arguments.get(index)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::ExitStatusExt,
        process::{Child, Command},
    };

    use super::*;

    fn sleeper() -> (Child, Process) {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::read(child.id() as i32).unwrap();
        (child, process)
    }

    /// U3, C10
    #[test]
    fn a_later_process_with_the_same_pid_is_not_signalled() {
        let (mut child, process) = sleeper();
        let earlier = Process {
            start_ticks: process.start_ticks - 1,
            ..process.clone()
        };
        earlier.signal(Signal::KILL);
        assert!(process.is_alive() && child.try_wait().unwrap().is_none());
        process.signal(Signal::TERM);
        assert_eq!(child.wait().unwrap().signal(), Some(15));
        assert!(!process.is_alive());
        process.signal(Signal::KILL);
    }
}
