//! The task that a process at the other end of the Unix socket is inside of.
//!
//! The kernel names the process that has connected. Most callers are in no task, so a look at the caller's
//! ancestors, its cgroup and its marks comes first, and the live tasks are asked for only if one of them
//! names a task. That makes the look as cheap with ten thousand live tasks as with none.
//!
//! A caller whose task cannot be told is not taken for the user: see [`Caller::Unknown`].

use std::{
    ffi::OsStr,
    fs, io,
    os::{
        fd::AsFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::socket::{getsockopt, sockopt},
};

use super::{
    owner::{self, KnownTask, MOST_PARENTS, Owner, PinnedProcess, WALKS},
    procfs::Stat,
    stat,
    sweep::Marks,
};
use crate::{
    process::{containment::ChosenContainment, task_file::TaskDir},
    task::TaskId,
};

/// The name of a shim's process.
const SHIM_NAME: &str = "heeler-shim";
/// The argument of a shim that names the directory of its tasks.
const SHIM_DIRECTORY: usize = 3;
/// The number of times, and the pause between them, that a shim of this server's state directory is looked for
/// again whose task is not known yet.
const LOOKS: usize = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// The origin of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Inside the tree of this task.
    Task(TaskId),
    /// In no task of this server.
    Outside,
    /// The process has ended, is hidden, or is in the tree of a task that this server does not know.
    Unknown,
}

impl PinnedProcess {
    /// Pins the process that has connected this socket. Kernels before 6.5 tell its pid only: there it is
    /// pinned by that.
    pub(crate) fn peer(socket: impl AsFd) -> io::Result<Self> {
        let pid = getsockopt(&socket, sockopt::PeerCredentials)?.pid();
        if pid <= 0 {
            let problem = "the caller is outside of the server's PID namespace";
            return Err(io::Error::new(io::ErrorKind::NotFound, problem));
        }
        match getsockopt(&socket, sockopt::PeerPidfd) {
            Ok(pidfd) => Ok(Self::from_parts(pid, pidfd)),
            Err(Errno::ENOPROTOOPT) => Self::open(pid),
            Err(error) => Err(error.into()),
        }
    }
}

/// The signs that a process belongs to a task of some server.
#[derive(Debug, Default)]
struct Signs {
    /// The ancestors that are shims.
    shims: Vec<i32>,
    /// It is in the cgroup of a task of this server.
    in_own_cgroup: bool,
    has_marks: bool,
}

/// Finds the task that a caller is inside of. It may wait, for a task that is being started.
pub(crate) fn caller(
    process: &PinnedProcess,
    live: impl Fn() -> Vec<KnownTask>,
    (containment, tasks): (&ChosenContainment, &TaskDir),
) -> Caller {
    let Some(signs) = signs(process.pid(), containment) else {
        return Caller::Unknown;
    };
    if !signs.are_there() {
        return match process.is_alive() {
            true => Caller::Outside,
            false => Caller::Unknown,
        };
    }
    for _ in 0..LOOKS {
        match owner::owner(process, &live(), containment) {
            Owner::Task(id) => return Caller::Task(id),
            Owner::Unknown => return Caller::Unknown,
            Owner::None if signs.are_below_shim_of(tasks) => thread::sleep(PAUSE),
            // The task is finished, and has left this process behind.
            Owner::None if signs.in_own_cgroup => return Caller::Unknown,
            // A task of another server, inside of which this one or its caller may run.
            Owner::None => return Caller::Outside,
        }
    }
    Caller::Unknown
}

impl Signs {
    fn are_there(&self) -> bool {
        !self.shims.is_empty() || self.in_own_cgroup || self.has_marks
    }

    fn are_below_shim_of(&self, tasks: &TaskDir) -> bool {
        self.shims.iter().any(|shim| is_shim_of(*shim, tasks))
    }
}

/// Returns whether a shim has its tasks in this directory, whatever server has started it. One that cannot be read, or
/// whose directory is gone, may have.
fn is_shim_of(shim: i32, tasks: &TaskDir) -> bool {
    let Ok(line) = fs::read(format!("/proc/{shim}/cmdline")) else {
        return true;
    };
    let directory = line.split(|byte| *byte == 0).nth(SHIM_DIRECTORY);
    let Some(Ok(its)) = directory.map(|path| fs::metadata(OsStr::from_bytes(path))) else {
        return true;
    };
    fs::metadata(tasks.as_path())
        .map_or(true, |own| (own.dev(), own.ino()) == (its.dev(), its.ino()))
}

/// Looks at a process; `None` if it, or an ancestor, cannot be read.
fn signs(pid: i32, containment: &ChosenContainment) -> Option<Signs> {
    let mut signs = (0..WALKS).find_map(|_| ancestors(pid))?;
    signs.in_own_cgroup = owner::cgroup_task(pid, containment).is_some();
    // A shim says enough: the environment need not be read.
    signs.has_marks = !signs.shims.is_empty() || Marks::of(pid).are_there();
    Some(signs)
}

/// Goes from parent to parent; `None` if one has ended on the way. A process that got the pid of an ended parent
/// is younger than the child. So an older one is the parent, and for any other one the child is read again.
fn ancestors(pid: i32) -> Option<Signs> {
    let mut signs = Signs::default();
    let (mut child, mut process) = (pid, stat(pid).ok()?);
    for _ in 0..MOST_PARENTS {
        signs.note(child, &process);
        let parent = process.parent_pid;
        if parent == 0 {
            return Some(signs);
        }
        let above = stat(parent).ok()?;
        let is_older = above.start_ticks < process.start_ticks;
        if !is_older && stat(child).ok()?.parent_pid != parent {
            return None;
        }
        (child, process) = (parent, above);
    }
    None
}

impl Signs {
    fn note(&mut self, pid: i32, process: &Stat) {
        if process.name == SHIM_NAME {
            self.shims.push(pid);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        os::unix::{net::UnixStream, process::CommandExt},
        path::Path,
        process::{Child, Command, Stdio},
    };

    use nix::{
        sys::signal::{Signal, killpg},
        unistd::Pid,
    };

    use super::*;
    use crate::process::containment::SubreaperReason;

    fn subreaper() -> ChosenContainment {
        ChosenContainment::Subreaper {
            reason: SubreaperReason::Requested,
        }
    }

    /// K1
    #[test]
    fn the_kernel_names_the_process_that_has_connected() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = PinnedProcess::peer(&ours).unwrap();
        assert_eq!(peer.pid(), std::process::id() as i32);
        assert!(peer.is_alive());
    }

    /// K1
    #[test]
    fn a_caller_that_has_ended_is_unknown() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = PinnedProcess::open(child.id() as i32).unwrap();
        child.wait().unwrap();
        let tasks = TaskDir::new(Path::new("/"));
        let found = caller(&process, Vec::new, (&subreaper(), &tasks));
        assert_eq!(found, Caller::Unknown);
    }

    /// A process below one that looks like a shim and that another process than this one has started.
    struct BelowShim {
        parents: Child,
        pid: i32,
    }

    impl BelowShim {
        fn of(home: &Path, tasks: &Path) -> Self {
            let script = format!("./{SHIM_NAME} run flags {} task & wait", tasks.display());
            let mut parents = Command::new("sh")
                .args(["-c", &script])
                .current_dir(home)
                .process_group(0)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let stdout = parents.stdout.take().unwrap();
            BufReader::new(stdout).read_line(&mut line).unwrap();
            let pid = line.trim().parse().unwrap();
            Self { parents, pid }
        }
    }

    impl Drop for BelowShim {
        fn drop(&mut self) {
            let _ = killpg(Pid::from_raw(self.parents.id() as i32), Signal::SIGKILL);
            let _ = self.parents.wait();
        }
    }

    /// K1: the server that has started the shim is gone, and with it what it knew.
    #[test]
    fn a_caller_below_a_shim_of_the_state_directory_is_not_the_user() {
        let home = tempfile::tempdir().unwrap();
        let (own, other) = (home.path().join("own"), home.path().join("other"));
        let tasks = TaskDir::new(&own);
        for directory in [tasks.as_path(), &other] {
            fs::create_dir_all(directory).unwrap();
        }
        // By another process: a child of another test could hold a copy of this one open for writing. Once: the
        // kernel refuses to write to a program that still runs.
        let mut copy = Command::new("cp");
        copy.arg("/bin/sh").arg(home.path().join(SHIM_NAME));
        assert!(copy.status().unwrap().success());
        // It tells its pid once it runs: before that it has the name of its parent.
        let child = "sh -c 'echo $$; exec sleep 1000' & wait";
        fs::write(home.path().join("run"), child).unwrap();
        let gone = home.path().join("gone");
        let expected = [
            (tasks.as_path(), Caller::Unknown),
            (&gone, Caller::Unknown),
            (&other, Caller::Outside),
        ];
        for (directory, expected) in expected {
            let below = BelowShim::of(home.path(), directory);
            let process = PinnedProcess::open(below.pid).unwrap();
            let found = caller(&process, Vec::new, (&subreaper(), &tasks));
            assert_eq!(found, expected, "{}", directory.display());
        }
    }
}
