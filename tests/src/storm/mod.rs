//! Storms: clients spawn jobs whose ends and output are known in advance while the server is killed
//! repeatedly; then an audit compares everything (see `audit`).
//!
//! Every random choice follows from the seed. The timing does not: the same seed gives the same jobs
//! and a similar storm.

mod audit;
mod chance;
mod client;
mod evidence;
mod hardship;
mod ingredient;
mod job;

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::process::ExitStatusExt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nix::sys::signal::Signal;

pub use client::{Client, Done, Record, Removed};
pub use ingredient::Ingredient;
pub use job::{Ending, Job, JobKit, is_lost, never_ran};

pub use audit::Figures;
use chance::Chance;
use hardship::{Hardships, busy_shims};

use crate::{
    Daemon, Follower, Process, SmallDisk,
    client::follower::Seen,
    eventually,
    process::{self, open_files},
    waiting::eventually_blocking,
};

/// The number of clients.
const CLIENTS: usize = 6;
/// The time limit for a daemon to reach its crash point.
const POINT_WITHIN: Duration = Duration::from_secs(4);

/// The way the server dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deaths {
    /// By `kill -9` at a random moment after its start.
    AtAnyMoment,
    /// By `kill -9` too, and shims are killed with and without a server.
    WithShims,
    /// At a random crash point.
    AtAnyPoint,
}

/// A storm to run.
#[derive(Debug, Clone)]
pub struct Storm {
    pub seed: u64,
    /// The number of deaths.
    pub kills: u64,
    pub deaths: Deaths,
    /// The hardships that are mixed in.
    pub with: Vec<Ingredient>,
}

/// The record of a storm, for the audit.
#[derive(Debug)]
pub struct Aftermath {
    pub kills: u64,
    /// The deaths per crash point.
    pub points: BTreeMap<String, usize>,
    pub shims_killed: u64,
    /// The tasks of the killed shims.
    pub victims: BTreeSet<String>,
    pub records: Vec<Record>,
    pub seen: Seen,
    /// The file to which every leader appends its name.
    pub ran: String,
    /// The descriptors of the idle server before the storm: see [`descriptors`].
    pub descriptors: usize,
    pub faults: Vec<String>,
    /// The number of times that each hardship began.
    pub hardships: BTreeMap<&'static str, u64>,
}

impl Storm {
    /// Takes kills and seed from `HEELER_STORM_KILLS` and `HEELER_STORM_SEED`, if they are set.
    pub fn new(deaths: Deaths, kills: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            seed: from_env("HEELER_STORM_SEED")
                .unwrap_or_else(|| u64::from(now.map_or(0, |now| now.subsec_nanos()))),
            kills: from_env("HEELER_STORM_KILLS").unwrap_or(kills),
            deaths,
            with: Vec::new(),
        }
    }

    /// Mixes hardships in.
    pub fn with(mut self, ingredients: Vec<Ingredient>) -> Self {
        self.with = ingredients;
        self
    }

    /// The size of a disk on which the state of this storm has room, in MiB.
    pub fn disk_size(&self) -> u32 {
        64 + u32::try_from(self.kills).unwrap_or(u32::MAX / 2)
    }

    /// Runs against a daemon without tasks, and returns the audit.
    pub async fn over(self, daemon: Daemon) -> Figures {
        self.over_disk(daemon, None).await
    }

    /// As [`Storm::over`], against a daemon whose state is on this disk.
    pub async fn over_disk(self, mut daemon: Daemon, disk: Option<&SmallDisk>) -> Figures {
        // Printed first: it explains any panic that follows.
        eprintln!("{self:?}: set HEELER_STORM_SEED={} to repeat it", self.seed);
        let mut chance = Chance::new(self.seed);
        let mut killer = Killer::new(&self, &daemon, disk, chance.fork()).await;
        let follower = Follower::of(daemon.address());
        let enough = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let client = Client::new(daemon.address());
                let numbers = (n as u64..).step_by(CLIENTS);
                let kit = killer.kit.clone();
                tokio::spawn(client.work(kit, chance.fork(), numbers, Arc::clone(&enough)))
            })
            .collect();
        daemon.kill9();
        for _ in 0..self.kills {
            killer.one_life(&mut daemon).await;
        }
        killer.hardships.end_all();
        daemon.live_on();
        daemon.restart().await;
        enough.store(true, Ordering::Relaxed);
        let mut records = Vec::new();
        for client in clients {
            records.push(client.await.expect("a client that did not panic"));
        }
        let aftermath = killer.settle(&self, &daemon, records, follower).await;
        audit::of(&daemon, self, aftermath).await
    }
}

/// Kills the server and its shims.
struct Killer<'a> {
    deaths: Deaths,
    chance: Chance,
    kit: JobKit,
    shims_killed: u64,
    victims: BTreeSet<String>,
    descriptors: usize,
    faults: Vec<String>,
    hardships: Hardships<'a>,
}

impl<'a> Killer<'a> {
    /// Runs a few tasks first, so that descriptors that stay open are open before the storm.
    async fn new(
        storm: &Storm,
        daemon: &Daemon,
        disk: Option<&'a SmallDisk>,
        mut chance: Chance,
    ) -> Self {
        let fixture = daemon.fixture_program().to_str().expect("ASCII").to_owned();
        let api = daemon.api().await;
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(api.start(daemon.script("print first exit 0")).await.id);
        }
        for id in &ids {
            api.ended(id).await;
        }
        api.remove(&ids).await.expect("finished tasks");
        daemon.no_processes().await;
        Self {
            deaths: storm.deaths,
            hardships: Hardships::new(storm.with.clone(), disk, chance.fork()),
            chance,
            kit: JobKit {
                fixture,
                ran: daemon.file("ran"),
            },
            shims_killed: 0,
            victims: BTreeSet::new(),
            descriptors: descriptors(daemon),
            faults: Vec::new(),
        }
    }

    /// Runs one life of the server, and ends it.
    async fn one_life(&mut self, daemon: &mut Daemon) {
        match self.deaths {
            Deaths::AtAnyPoint => {
                daemon.die_at(&format!("*:{}", self.chance.within(1..90)));
                daemon.launch();
                if daemon.exited(POINT_WITHIN).is_none() {
                    daemon.kill9();
                }
                return;
            }
            Deaths::AtAnyMoment | Deaths::WithShims if self.chance.once_in(4) => {
                daemon.launch();
                self.hardships.adopt(daemon);
                self.random_pause(60).await;
            }
            Deaths::AtAnyMoment | Deaths::WithShims => {
                daemon.restart().await;
                self.hardships.adopt(daemon);
                self.hardships.change(daemon).await;
                self.random_pause(self.hardships.longest_life()).await;
            }
        }
        self.perhaps_kill_a_shim(daemon);
        let status = daemon.kill9();
        if status.signal() != Some(9) {
            let fault = format!("the server ended by itself, {status}:\n{}", daemon.log());
            self.faults.push(fault);
        }
        self.perhaps_kill_a_shim(daemon);
    }

    /// Sleeps for a random time, which is what makes the moment of death random.
    async fn random_pause(&mut self, most_millis: u64) {
        let millis = self.chance.within(0..most_millis);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    fn perhaps_kill_a_shim(&mut self, daemon: &Daemon) {
        let shims_die =
            self.deaths == Deaths::WithShims || self.hardships.include(Ingredient::KilledShims);
        if !shims_die || self.chance.once_in(2) {
            return;
        }
        let mut shims = busy_shims(daemon);
        let pids: BTreeSet<i32> = shims.iter().map(|shim| shim.pid).collect();
        // A leader before its exec still looks like its shim.
        let is_leader = |stat: process::Stat| pids.contains(&stat.parent);
        shims.retain(|shim| !shim.stat().is_none_or(is_leader));
        if shims.is_empty() {
            return;
        }
        let shim: &Process = self.chance.pick(&shims);
        // Stopped first, so that it cannot take a task between the look and the kill.
        shim.signal(Signal::SIGSTOP);
        eventually_blocking(Duration::from_secs(5), || {
            shim.is_stopped() || !shim.is_alive()
        });
        let shim = shim.clone();
        self.victims.extend(tasks_of(daemon, &shim));
        shim.signal(Signal::SIGKILL);
        self.shims_killed += 1;
    }

    /// Waits until every job has ended and the watcher has caught up.
    async fn settle(
        mut self,
        storm: &Storm,
        daemon: &Daemon,
        records: Vec<Record>,
        follower: Follower,
    ) -> Aftermath {
        let api = daemon.api().await;
        audit::nothing_lives(&api).await;
        let seen = follower.up_to(api.revision().await).await;
        drop((api, follower));
        eventually("as many descriptors as before the storm", || {
            descriptors(daemon) <= self.descriptors
        })
        .await;
        Aftermath {
            kills: storm.kills + 1,
            points: daemon.deaths(),
            shims_killed: self.shims_killed,
            victims: self.victims,
            records,
            seen,
            ran: self.kit.ran,
            descriptors: self.descriptors,
            faults: self.faults,
            hardships: std::mem::take(&mut self.hardships.counts),
        }
    }
}

/// The task of a stopped shim, by the task file that it has open.
fn tasks_of(daemon: &Daemon, shim: &Process) -> Vec<String> {
    let tasks = daemon.path("state/tasks");
    let tasks = tasks.canonicalize().expect("a directory of tasks");
    let mut open = open_files(shim.pid);
    open.retain(|path| path.starts_with(tasks.to_str().expect("ASCII")));
    let ids = open.iter().filter_map(|path| path.rsplit('/').next());
    ids.map(str::to_owned).collect()
}

/// The descriptors of the server, without one per idle shim and without its journal connections, whose
/// number depends on the peak load.
pub fn descriptors(daemon: &Daemon) -> usize {
    let mut open = process::open_files(daemon.pid());
    open.retain(|path| !path.contains("/journal.db"));
    let shims = process::children_of(daemon.pid());
    open.len().saturating_sub(shims.len())
}

fn from_env<T: FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(name).ok()?;
    let parsed = value.parse().ok();
    assert!(parsed.is_some(), "{name}={value} is not a number");
    parsed
}
