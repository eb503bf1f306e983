//! Trees that are hard to kill, and the leash that shows when they are gone.
//!
//! Every process of a brood has the write end of one FIFO open, and writes a byte when it runs. The reader
//! learns when all processes run and, by the end of file, that none is left.

#![allow(unsafe_code)]

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use nix::{
    libc,
    sys::{stat::Mode, wait::waitpid},
    unistd::{ForkResult, fork, mkfifo, pipe, setsid},
};

use crate::Result;

/// Number of processes or lineages.
pub(crate) const COUNT: usize = 200;
/// Maximum lifetime of a process.
const LIFETIME: Duration = Duration::from_secs(60);
/// Maximum time until a brood runs.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The kind of a brood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sleeps; of each four processes, one has its own session and one is an orphan in another.
    Tree,
    /// Each process forks and exits, without pause.
    Lineages,
}

impl Kind {
    pub(crate) fn read(name: &str) -> Result<Self> {
        match name {
            "tree" => Ok(Self::Tree),
            "lineages" => Ok(Self::Lineages),
            _ => Err(format!("{name} is no kind of brood").into()),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Lineages => "lineages",
        }
    }
}

/// The read end of the FIFO.
#[derive(Debug)]
pub(crate) struct Leash {
    path: PathBuf,
    end: File,
}

impl Leash {
    /// Creates the FIFO at this path.
    pub(crate) fn make(path: PathBuf) -> Result<Self> {
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let end = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)?;
        Ok(Self { path, end })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until every process runs.
    pub(crate) fn wait_for_all(&mut self) -> Result {
        let until = Instant::now() + TIME_LIMIT;
        let (mut there, mut buffer) = (0, [0; COUNT]);
        while there < COUNT {
            if Instant::now() > until {
                return Err(format!("{there} of {COUNT} processes are there").into());
            }
            match self.end.read(&mut buffer) {
                Ok(read) => there += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// True if no process has the write end open.
    pub(crate) fn is_loose(&mut self) -> Result<bool> {
        match self.end.read(&mut [0]) {
            Ok(read) => Ok(read == 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Becomes the leader of a brood, in this cgroup if one is given.
pub(super) fn breed(kind: Kind, leash: &Path, cgroup: Option<&Path>) -> Result {
    if let Some(cgroup) = cgroup {
        fs::write(cgroup.join("cgroup.procs"), "0")?;
    }
    let leash = OpenOptions::new().write(true).open(leash)?;
    match kind {
        Kind::Tree => grow(leash),
        Kind::Lineages => scatter(leash),
    }
}

fn grow(mut leash: File) -> Result {
    for number in 1..COUNT {
        add_to_tree(number, &mut leash)?;
    }
    leash.write_all(b".")?;
    stay()
}

/// All lineages begin at the same time: otherwise the first would leave no pids for the last.
fn scatter(mut leash: File) -> Result {
    let until = Instant::now() + LIFETIME;
    let (gate, gate_keeper) = pipe()?;
    for _ in 1..COUNT {
        if is_child()? {
            drop(gate_keeper);
            // Until no process has it open.
            File::from(gate).read_to_end(&mut Vec::new())?;
            leash.write_all(b".")?;
            run_away(until);
        }
    }
    drop(gate_keeper);
    leash.write_all(b".")?;
    run_away(until)
}

fn add_to_tree(number: usize, leash: &mut File) -> Result {
    match number % 4 {
        2 => {
            if is_child()? {
                setsid()?;
                leash.write_all(b".")?;
                stay();
            }
        }
        3 => match fork_alone()? {
            ForkResult::Child => {
                setsid()?;
                if is_child()? {
                    leash.write_all(b".")?;
                    stay();
                }
                exit();
            }
            ForkResult::Parent { child } => drop(waitpid(child, None)?),
        },
        _ => {
            if is_child()? {
                leash.write_all(b".")?;
                stay();
            }
        }
    }
    Ok(())
}

fn is_child() -> Result<bool> {
    Ok(matches!(fork_alone()?, ForkResult::Child))
}

fn fork_alone() -> nix::Result<ForkResult> {
    // SAFETY: this role never has a second thread, so no lock is held in the child.
    unsafe { fork() }
}

fn stay() -> ! {
    thread::sleep(LIFETIME);
    exit()
}

/// Forks and exits the parent, again and again, until the time is over.
fn run_away(until: Instant) -> ! {
    while Instant::now() < until {
        // Without a free pid, it tries again.
        if let Ok(ForkResult::Parent { .. }) = fork_alone() {
            exit();
        }
    }
    exit()
}

fn exit() -> ! {
    // SAFETY: ends this process and nothing else.
    unsafe { libc::_exit(0) }
}
