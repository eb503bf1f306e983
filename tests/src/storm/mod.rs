//! A load of tasks whose ends and output are known beforehand, under which the server dies again and
//! again; then an account of everything (see [`crate::audit`]).
//!
//! All that is random follows from the seed, but not the moments at which things happen: the same
//! seed gives the same jobs, and a similar storm.

mod audit;
mod chance;
mod client;
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

pub use client::{Client, Done, Ledger, Removed};
pub use job::{Ending, Job, Workshop, is_lost, never_ran};

use audit::Figures;
use chance::Chance;

use crate::{
    Daemon, Follower, Process,
    client::follower::Seen,
    eventually,
    process::{self, open_files},
    waiting::eventually_blocking,
};

/// How many clients there are.
const CLIENTS: usize = 6;
/// How long a daemon may take to come to the point at which it is to die.
const POINT_WITHIN: Duration = Duration::from_secs(4);

/// How the server dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deaths {
    /// By a `kill -9` at any moment, from its start on.
    AtAnyMoment,
    /// The same, and shims are killed too, while there is a server and while there is none.
    WithShims,
    /// At one of its crash points.
    AtAnyPoint,
}

/// A storm to come.
#[derive(Debug, Clone, Copy)]
pub struct Storm {
    /// What decides it.
    pub seed: u64,
    /// How often the server dies.
    pub kills: u64,
    /// How it dies.
    pub deaths: Deaths,
}

/// What has happened, to be accounted for.
#[derive(Debug)]
pub struct Aftermath {
    /// How often the server has died.
    pub kills: u64,
    /// Where it has died.
    pub points: BTreeMap<String, usize>,
    /// How many shims were killed.
    pub shims_killed: u64,
    /// The tasks that they had.
    pub victims: BTreeSet<String>,
    /// What the clients did.
    pub ledgers: Vec<Ledger>,
    /// What a watcher was told.
    pub seen: Seen,
    /// The file in which every leader has said that it began.
    pub ran: String,
    /// How many descriptors an idle server had before it all: see [`descriptors`].
    pub descriptors: usize,
    /// What was wrong so far.
    pub faults: Vec<String>,
}

impl Storm {
    /// As `HEELER_STORM_KILLS` and `HEELER_STORM_SEED` say; so many kills and some seed otherwise.
    pub fn new(deaths: Deaths, kills: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            seed: from_env("HEELER_STORM_SEED")
                .unwrap_or_else(|| u64::from(now.map_or(0, |now| now.subsec_nanos()))),
            kills: from_env("HEELER_STORM_KILLS").unwrap_or(kills),
            deaths,
        }
    }

    /// Rages over a daemon that has no tasks yet, and gives the account.
    pub async fn over(self, mut daemon: Daemon) -> Figures {
        // Where a panic of anything below is explained.
        eprintln!("{self:?}: set HEELER_STORM_SEED={} for the same", self.seed);
        let mut chance = Chance::new(self.seed);
        let mut weather = Weather::calm(self, &daemon, chance.fork()).await;
        let follower = Follower::of(daemon.address());
        let enough = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let client = Client::new(daemon.address());
                let numbers = (n as u64..).step_by(CLIENTS);
                let workshop = weather.workshop.clone();
                tokio::spawn(client.work(workshop, chance.fork(), numbers, Arc::clone(&enough)))
            })
            .collect();
        daemon.kill9();
        for _ in 0..self.kills {
            weather.strike(&mut daemon).await;
        }
        daemon.live_on();
        daemon.restart().await;
        enough.store(true, Ordering::Relaxed);
        let mut ledgers = Vec::new();
        for client in clients {
            ledgers.push(client.await.expect("a client does not fail"));
        }
        let aftermath = weather.settle(self, &daemon, ledgers, follower).await;
        audit::of(&daemon, self, aftermath).await
    }
}

/// What strikes.
struct Weather {
    deaths: Deaths,
    chance: Chance,
    workshop: Workshop,
    shims_killed: u64,
    victims: BTreeSet<String>,
    descriptors: usize,
    faults: Vec<String>,
}

impl Weather {
    /// Before it all: a few tasks, so that whatever is opened once is open.
    async fn calm(storm: Storm, daemon: &Daemon, chance: Chance) -> Self {
        let fixture = daemon.fixture_program().to_str().expect("ASCII").to_owned();
        let api = daemon.api().await;
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(api.start(daemon.script("print first exit 0")).await.id);
        }
        for id in &ids {
            api.ended(id).await;
        }
        api.remove(&ids).await.expect("they are over");
        daemon.no_processes().await;
        Self {
            deaths: storm.deaths,
            chance,
            workshop: Workshop {
                fixture,
                ran: daemon.file("ran"),
            },
            shims_killed: 0,
            victims: BTreeSet::new(),
            descriptors: descriptors(daemon),
            faults: Vec::new(),
        }
    }

    /// One life of the server, and its end.
    async fn strike(&mut self, daemon: &mut Daemon) {
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
                self.some_time(60).await;
            }
            Deaths::AtAnyMoment | Deaths::WithShims => {
                daemon.restart().await;
                self.some_time(250).await;
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

    /// Not to wait for anything: it is what makes one moment differ from another.
    async fn some_time(&mut self, most_millis: u64) {
        let millis = self.chance.within(0..most_millis);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    fn perhaps_kill_a_shim(&mut self, daemon: &Daemon) {
        if self.deaths != Deaths::WithShims || self.chance.once_in(2) {
            return;
        }
        let mut shims = daemon.processes();
        shims.retain(|process| process.command().starts_with("heeler-shim"));
        let pids: BTreeSet<i32> = shims.iter().map(|shim| shim.pid).collect();
        // A leader that is about to execute its program still looks like its shim.
        let is_leader = |stat: process::Stat| pids.contains(&stat.parent);
        shims.retain(|shim| !shim.stat().is_none_or(is_leader));
        if shims.is_empty() {
            return;
        }
        let shim: &Process = self.chance.pick(&shims);
        // It is stopped first, so that it cannot take up a task between the look and the kill.
        shim.signal(Signal::SIGSTOP);
        eventually_blocking(Duration::from_secs(5), || {
            shim.is_stopped() || !shim.is_alive()
        });
        let tasks = daemon.path("state/tasks");
        let mut held = open_files(shim.pid);
        held.retain(|path| path.starts_with(tasks.to_str().expect("ASCII")));
        let ids = held.iter().filter_map(|path| path.rsplit('/').next());
        self.victims.extend(ids.map(str::to_owned));
        shim.signal(Signal::SIGKILL);
        self.shims_killed += 1;
    }

    /// After it all: everything that was asked for has ended, and the watcher has caught up.
    async fn settle(
        self,
        storm: Storm,
        daemon: &Daemon,
        ledgers: Vec<Ledger>,
        follower: Follower,
    ) -> Aftermath {
        let api = daemon.api().await;
        audit::nothing_lives(&api).await;
        let seen = follower.up_to(api.revision().await).await;
        drop((api, follower));
        eventually("descriptors as at first", || {
            descriptors(daemon) <= self.descriptors
        })
        .await;
        Aftermath {
            kills: storm.kills + 1,
            points: daemon.deaths(),
            shims_killed: self.shims_killed,
            victims: self.victims,
            ledgers,
            seen,
            ran: self.workshop.ran,
            descriptors: self.descriptors,
            faults: self.faults,
        }
    }
}

/// How many descriptors the server has, but for one to each shim that it keeps and those with which it
/// reads the journal, of which there are as many as were ever needed at once.
pub fn descriptors(daemon: &Daemon) -> usize {
    let mut open = process::open_files(daemon.pid());
    open.retain(|path| !path.contains("/journal.db"));
    let shims = process::children_of(daemon.pid());
    open.len().saturating_sub(shims.len())
}

fn from_env<T: FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(name).ok()?;
    let parsed = value.parse().ok();
    assert!(parsed.is_some(), "{name}={value} is no number");
    parsed
}
