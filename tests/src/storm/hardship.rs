//! Begins and ends the hardships of a storm. One that has begun may outlast several lives of the server.

use std::{collections::BTreeMap, fs, path::PathBuf};

use nix::sys::signal::Signal;

use super::{Ingredient, chance::Chance};
use crate::{
    Api, Daemon, Process, SmallDisk, Watch, history::after, http2::HalfOpen, process::shims_of,
    skipped, waiting::within_or,
};

/// Watchers that do not read.
const SLOW_READERS: usize = 8;
/// More calls than the server answers at a time.
const HALF_OPEN_CALLS: usize = 600;

/// The hardships of one storm.
#[derive(Debug)]
pub(super) struct Hardships<'a> {
    with: Vec<Ingredient>,
    chance: Chance,
    disk: Option<&'a SmallDisk>,
    limit: Option<ProcessLimit>,
    active: Vec<Ingredient>,
    turn: usize,
    stopped: Vec<Process>,
    readers: Vec<Watch>,
    calls: Option<HalfOpen>,
    /// The number of times that each one began.
    pub(super) counts: BTreeMap<&'static str, u64>,
}

impl<'a> Hardships<'a> {
    pub(super) fn new(with: Vec<Ingredient>, disk: Option<&'a SmallDisk>, chance: Chance) -> Self {
        let limited = with.contains(&Ingredient::ProcessLimit);
        Self {
            limit: limited.then(ProcessLimit::new).flatten(),
            with,
            chance,
            disk,
            active: Vec::new(),
            turn: 0,
            stopped: Vec::new(),
            readers: Vec::new(),
            calls: None,
            counts: BTreeMap::new(),
        }
    }

    /// The longest life of a server, in milliseconds: long enough for a hardship to be felt.
    pub(super) fn longest_life(&self) -> u64 {
        match self.with.is_empty() {
            true => 250,
            false => 800,
        }
    }

    pub(super) fn include(&self, ingredient: Ingredient) -> bool {
        self.with.contains(&ingredient)
    }

    /// To be called for each server that was started.
    pub(super) fn adopt(&mut self, daemon: &Daemon) {
        if let Some(limit) = &self.limit {
            limit.lift();
            limit.adopt(daemon.pid());
        }
    }

    /// Ends some hardships and begins others.
    pub(super) async fn change(&mut self, daemon: &Daemon) {
        self.turn += 1;
        for (number, ingredient) in self.with.clone().into_iter().enumerate() {
            // Each has its turn, however short the storm.
            let is_due = self.turn % self.with.len() == number;
            let active = self.active.contains(&ingredient);
            match active {
                true if self.chance.once_in(2) => self.end(ingredient),
                false if is_due || self.chance.once_in(4) => {
                    self.active.push(ingredient);
                    *self.counts.entry(ingredient.name()).or_default() += 1;
                    self.begin(ingredient, daemon).await;
                }
                true | false => {}
            }
        }
    }

    pub(super) fn end_all(&mut self) {
        for ingredient in self.active.clone() {
            self.end(ingredient);
        }
    }

    async fn begin(&mut self, ingredient: Ingredient, daemon: &Daemon) {
        match ingredient {
            Ingredient::FullDisk => self.disk.iter().for_each(|disk| disk.fill()),
            Ingredient::ProcessLimit => self.limit.iter().for_each(ProcessLimit::impose),
            Ingredient::StoppedShims => {
                let mut shims = shims_of(&daemon.state_dir().join("tasks"));
                shims.extend(busy_shims(daemon));
                shims.retain(|_| self.chance.once_in(2));
                shims.iter().for_each(|shim| shim.signal(Signal::SIGSTOP));
                self.stopped.extend(shims);
            }
            // The killer of servers kills them: it knows when.
            Ingredient::KilledShims => {}
            Ingredient::SlowReaders => self.readers = slow_readers(daemon.address()).await,
            Ingredient::HalfOpenCalls => {
                let socket = daemon.socket();
                let opened = HalfOpen::calls(&socket, "List", HALF_OPEN_CALLS);
                self.calls = within_or(opened, || None).await;
            }
        }
    }

    fn end(&mut self, ingredient: Ingredient) {
        self.active.retain(|one| *one != ingredient);
        match ingredient {
            Ingredient::FullDisk => self.disk.iter().for_each(|disk| disk.free()),
            Ingredient::ProcessLimit => self.limit.iter().for_each(ProcessLimit::lift),
            Ingredient::StoppedShims => {
                for shim in self.stopped.drain(..) {
                    shim.signal(Signal::SIGCONT);
                }
            }
            Ingredient::KilledShims => {}
            Ingredient::SlowReaders => self.readers.clear(),
            Ingredient::HalfOpenCalls => self.calls = None,
        }
    }
}

impl Drop for Hardships<'_> {
    fn drop(&mut self) {
        // A panic must not leave stopped shims behind.
        self.end_all();
    }
}

pub(super) fn busy_shims(daemon: &Daemon) -> Vec<Process> {
    let mut shims = daemon.processes();
    shims.retain(|process| process.command().starts_with("heeler-shim"));
    shims
}

async fn slow_readers(address: String) -> Vec<Watch> {
    let mut readers = Vec::new();
    for _ in 0..SLOW_READERS {
        // A server that has just died refuses them.
        let open = async {
            let api = Api::connect(&address).await.ok()?;
            api.watch(after(0)).await.ok()
        };
        readers.extend(within_or(open, || None).await);
    }
    readers
}

/// A control group of the server whose number of processes can be limited.
#[derive(Debug)]
struct ProcessLimit {
    path: PathBuf,
}

impl ProcessLimit {
    /// Makes one. Returns `None`, after reporting a skip, where this user may not.
    fn new() -> Option<Self> {
        let name = format!("heeler-storm-{}", std::process::id());
        let path = PathBuf::from("/sys/fs/cgroup/pids").join(name);
        match fs::create_dir(&path) {
            Ok(()) => Some(Self { path }),
            Err(error) => {
                skipped(&format!(
                    "no limit of processes: {}: {error}",
                    path.display()
                ));
                None
            }
        }
    }

    fn adopt(&self, pid: i32) {
        // The server may be dead already.
        let _ = fs::write(self.path.join("cgroup.procs"), pid.to_string());
    }

    /// Lets no process start that is not there yet.
    fn impose(&self) {
        let current = fs::read_to_string(self.path.join("pids.current")).unwrap();
        fs::write(self.path.join("pids.max"), current).unwrap();
    }

    fn lift(&self) {
        fs::write(self.path.join("pids.max"), "max").unwrap();
    }
}

impl Drop for ProcessLimit {
    fn drop(&mut self) {
        // Processes that are still there move up, so that the group can go.
        let members = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        for pid in members.lines() {
            let _ = fs::write("/sys/fs/cgroup/pids/cgroup.procs", pid);
        }
        let _ = fs::remove_dir(&self.path);
    }
}
