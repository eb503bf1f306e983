//! Processes as the kernel shows them in `/proc`.

mod fixture;
mod lone_shim;
mod relay_client;
pub mod task_file;

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path, time::Duration};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::eventually;
pub use fixture::{Fixture, Gate};
pub use lone_shim::{Begins, LoneShims, LoneTask, OutputRules};
pub use relay_client::RelayClient;

/// A process, told apart from a later one with the same pid by its start time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    /// Ticks since boot.
    pub start_ticks: u64,
}

/// The fields of `/proc/PID/stat` that tests look at.
#[derive(Debug, Clone)]
pub struct Stat {
    /// The kernel's letter, e.g. `Z` for a zombie.
    pub state: char,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    /// The threads that have not ended, and the first one.
    pub threads: u32,
    /// The controlling terminal; 0 if none.
    pub terminal: i32,
    /// Ticks since boot.
    pub start_ticks: u64,
}

impl Process {
    /// The process that has this pid now.
    pub fn now(pid: i32) -> Option<Self> {
        Stat::of(pid).map(|stat| Self {
            pid,
            start_ticks: stat.start_ticks,
        })
    }

    /// Its status; `None` once not even a zombie is left.
    pub fn stat(&self) -> Option<Stat> {
        Stat::of(self.pid).filter(|stat| stat.start_ticks == self.start_ticks)
    }

    /// True once not even a zombie is left.
    pub fn is_gone(&self) -> bool {
        self.stat().is_none()
    }

    /// True if it exists and is not a zombie. One whose first thread alone has ended shows as a zombie,
    /// and is alive.
    pub fn is_alive(&self) -> bool {
        self.stat()
            .is_some_and(|stat| stat.state != 'Z' || stat.threads > 1)
    }

    pub fn is_stopped(&self) -> bool {
        self.stat().is_some_and(|stat| stat.state == 'T')
    }

    /// Signals it, if it exists.
    pub fn signal(&self, signal: Signal) {
        if !self.is_gone() {
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }

    /// True if it is an idle shim, or a fork of the daemon that is about to become one.
    pub fn is_idle_shim(&self, daemon: Option<i32>, task_dir: &Path) -> bool {
        let is_copy = daemon.is_some_and(|daemon| {
            let stat = self.stat();
            stat.is_some_and(|stat| stat.parent == daemon)
                && arguments(self.pid) == arguments(daemon)
        });
        let waits = shim_for(self.pid, |path| path == task_dir)
            && !shim_for(self.pid, |path| {
                path != task_dir && path.starts_with(task_dir)
            });
        is_copy || waits
    }

    /// Its arguments, for messages.
    pub fn command(&self) -> String {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&line)
            .replace('\0', " ")
            .chars()
            .take(200)
            .collect()
    }
}

impl Stat {
    /// Reads `/proc/PID/stat`.
    pub fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses the text of the file.
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            terminal: fields.get(4)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Every process of a daemon's tasks. A task has the daemon's address in its environment; one that
/// cleared it has a program or a directory below the daemon's; a busy shim has the task file among its
/// arguments.
pub fn belonging_to(dir: &Path, address: &str) -> Vec<Process> {
    let tag = format!("HEELER_ADDR={address}");
    let tagged = |pid: i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == tag.as_bytes())
    };
    let below = |pid: i32, link: &str| {
        fs::read_link(format!("/proc/{pid}/{link}")).is_ok_and(|path| path.starts_with(dir))
    };
    let own = std::process::id() as i32;
    let ours = |pid: &i32| {
        let found = || tagged(*pid) || below(*pid, "exe") || below(*pid, "cwd");
        *pid != own && (found() || shim_for(*pid, |path| path.starts_with(dir) && path.is_file()))
    };
    pids()
        .into_iter()
        .filter(ours)
        .filter_map(Process::now)
        .collect()
}

/// The shims of a task directory, busy and idle.
pub fn shims_of(task_dir: &Path) -> Vec<Process> {
    let ours = |pid: &i32| shim_for(*pid, |path| path == task_dir);
    let shims = pids().into_iter().filter(ours);
    shims.filter_map(Process::now).collect()
}

fn arguments(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

fn shim_for(pid: i32, path: impl Fn(&Path) -> bool) -> bool {
    let line = arguments(pid);
    let mut words = line
        .split(|byte| *byte == 0)
        .map(|word| Path::new(OsStr::from_bytes(word)));
    words.next() == Some(Path::new("heeler-shim")) && words.any(path)
}

/// Kills processes, and waits until each is dead.
pub async fn kill_all(processes: &[Process]) {
    for process in processes {
        process.signal(Signal::SIGKILL);
        eventually("a death by SIGKILL", || !process.is_alive()).await;
    }
}

/// The children of a process.
pub fn children_of(parent: i32) -> Vec<i32> {
    let child = |pid: &i32| Stat::of(*pid).is_some_and(|stat| stat.parent == parent);
    pids().into_iter().filter(child).collect()
}

/// The zombie children of a process.
pub fn zombies_of(parent: i32) -> Vec<i32> {
    let zombie =
        |pid: &i32| Stat::of(*pid).is_some_and(|stat| stat.parent == parent && stat.state == 'Z');
    pids().into_iter().filter(zombie).collect()
}

fn pids() -> Vec<i32> {
    let names = fs::read_dir("/proc").expect("a /proc").flatten();
    names
        .filter_map(|name| name.file_name().to_str()?.parse().ok())
        .collect()
}

/// A figure of `/proc/PID/status` in bytes, e.g. `VmRSS`.
pub fn memory(pid: i32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a live process");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .expect("a known field");
    let kib = line.trim_matches(|c: char| !c.is_ascii_digit());
    kib.parse::<u64>().expect("a number") * 1024
}

/// The CPU time of a process, in the kernel's steps of 10 ms.
pub fn cpu_time(pid: i32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a live process");
    let (_, fields) = text.rsplit_once(')').expect("a name");
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(10 * ticks)
}

/// The open files of a process: paths, or the kernel's names.
pub fn open_files(pid: i32) -> Vec<String> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    let links = descriptors.into_iter().flatten().flatten();
    links
        .filter_map(|link| Some(fs::read_link(link.path()).ok()?.to_str()?.to_owned()))
        .collect()
}

/// The number of open descriptors of a process.
pub fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("a live process")
        .count()
}
