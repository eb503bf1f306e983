//! Trees that are hard to end, and the leash by which it is known that they have.
//!
//! Every process of a brood holds the write end of one FIFO, and writes a byte when it is there. So
//! whoever reads it knows when all are there, and, by its end of file, that nobody is left.

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

/// How many processes, or lineages, there are.
pub(crate) const COUNT: usize = 200;
/// How long anything here lives at most.
const LIFETIME: Duration = Duration::from_secs(60);
/// How long a brood may take to be there.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a brood does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sleeps; of each four one is in a session of its own, and one an orphan in another.
    Tree,
    /// Each forks and exits, without pause.
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

/// The read end.
#[derive(Debug)]
pub(crate) struct Leash {
    path: PathBuf,
    end: File,
}

impl Leash {
    /// A new one, at this path.
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

    /// Until every process is there.
    pub(crate) fn wait_for_all(&mut self) -> Result {
        let until = Instant::now() + PATIENCE;
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

    /// Whether nobody holds it.
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

/// Becomes the leader of a brood; in this cgroup, if there is one.
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

/// They all begin at once: the first would otherwise leave no room for the last.
fn scatter(mut leash: File) -> Result {
    let until = Instant::now() + LIFETIME;
    let (gate, gate_keeper) = pipe()?;
    for _ in 1..COUNT {
        if is_child()? {
            drop(gate_keeper);
            // Until nobody keeps it.
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
    // SAFETY: this role never has a second thread, so that nothing is left half done in the child.
    unsafe { fork() }
}

fn stay() -> ! {
    thread::sleep(LIFETIME);
    exit()
}

/// Forks and lets the parent go, over and over, until the time is up.
fn run_away(until: Instant) -> ! {
    while Instant::now() < until {
        // Where there are no more processes for the moment, it is tried again.
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
