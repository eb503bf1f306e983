//! Tasks that run the fixture, a program that misbehaves as its script says.
//!
//! There are two ways to see that a tree is gone. Each process that the script names with `pid` is
//! recorded with its start time. And every process of the tree inherits the *leash*, a FIFO whose
//! reader sees end-of-file when the last of them is gone, however many there were and however short
//! they lived.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    sync::atomic::Ordering,
};

use heeler_proto::v1::{BackgroundTask, SpawnRequest};
use nix::{sys::stat::Mode, unistd::mkfifo};

use crate::{Api, Daemon, Process, SpawnRequestExt as _, argv, eventually_some};

/// A task that runs a script of the fixture.
#[derive(Debug)]
pub struct Fixture {
    /// The task in the answer to Spawn.
    pub task: BackgroundTask,
    pub id: String,
    pids: PathBuf,
    leash: File,
}

impl Daemon {
    /// A request to run a script of the fixture, whose words are separated by spaces.
    pub fn script(&self, script: &str) -> SpawnRequest {
        let program = self.fixture_program().to_str().expect("ASCII");
        argv([program].into_iter().chain(script.split_whitespace()))
    }

    /// Runs a script of the fixture, and waits until its leader runs.
    pub async fn run(&self, api: &Api, script: &str) -> Fixture {
        self.run_as(api, SpawnRequest::default(), script).await
    }

    /// Runs a script of the fixture with the rest of `request`.
    pub async fn run_as(&self, api: &Api, request: SpawnRequest, script: &str) -> Fixture {
        let number = self.fixtures.fetch_add(1, Ordering::Relaxed);
        let (pids, leash) = (
            self.file(&format!("pids-{number}")),
            self.file(&format!("leash-{number}")),
        );
        mkfifo(leash.as_str(), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let reader = OpenOptions::new()
            .read(true)
            .custom_flags(nix::libc::O_NONBLOCK)
            .open(&leash);
        let script = format!("pids {pids} leash {leash} pid leader {script}");
        let task = api
            .start(request.with_command_of(self.script(&script)))
            .await;
        let fixture = Fixture {
            id: task.id.clone(),
            task,
            pids: pids.into(),
            leash: reader.unwrap(),
        };
        fixture.process("leader").await;
        fixture
    }
}

impl Fixture {
    /// Waits for the process that the script names.
    pub async fn process(&self, name: &str) -> Process {
        eventually_some(&format!("a process named {name}"), || self.find(name)).await
    }

    /// Waits for several named processes.
    pub async fn processes(&self, names: &[&str]) -> Vec<Process> {
        let mut found = Vec::new();
        for name in names {
            found.push(self.process(name).await);
        }
        found
    }

    /// Every process named so far.
    pub fn named(&self) -> Vec<Process> {
        let text = fs::read_to_string(&self.pids).unwrap_or_default();
        text.lines()
            .filter_map(parse)
            .map(|(_, process)| process)
            .collect()
    }

    /// Asserts that no process of the tree is left.
    #[track_caller]
    pub fn assert_gone(&mut self) {
        let left: Vec<Process> = self
            .named()
            .into_iter()
            .filter(|one| !one.is_gone())
            .collect();
        assert!(left.is_empty(), "left: {left:?}");
        assert!(self.leash_is_free(), "a process has the leash open");
    }

    /// True if no process has the leash open.
    pub fn leash_is_free(&mut self) -> bool {
        match self.leash.read(&mut [0]) {
            Ok(0) => true,
            Ok(_) => panic!("a process wrote to the leash"),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => false,
            Err(error) => panic!("the leash: {error}"),
        }
    }

    /// The process that the script names, if it is there.
    pub fn find(&self, name: &str) -> Option<Process> {
        let text = fs::read_to_string(&self.pids).ok()?;
        let named = text
            .lines()
            .filter_map(parse)
            .find(|(found, _)| *found == name);
        named.map(|(_, process)| process)
    }
}

/// Parses `NAME PID START_TICKS`; the last line may be incomplete.
fn parse(line: &str) -> Option<(&str, Process)> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let process = Process {
        pid: words.next()?.parse().ok()?,
        start_ticks: words.next()?.parse().ok()?,
    };
    Some((name, process))
}

/// A FIFO at which scripts wait until it is opened; later arrivals pass.
#[derive(Debug)]
pub struct Gate {
    path: PathBuf,
    writer: File,
}

impl Daemon {
    /// Makes a closed gate; scripts wait at it with `gate PATH`.
    pub fn gate(&self, name: &str) -> Gate {
        let path = self.path(name);
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        // Read access too: opening a FIFO for writing alone waits for a reader.
        let writer = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        Gate { path, writer }
    }
}

impl Gate {
    /// Writes text for one reader; the gate stays closed.
    pub fn write(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).unwrap();
    }

    /// Lets every waiting script go on.
    pub fn open(self) {
        // A FIFO without a writer would block those that come later.
        let empty = self.path.with_extension("open");
        File::create(&empty).unwrap();
        fs::rename(empty, self.path).unwrap();
        drop(self.writer);
    }
}
