//! A shim without a server: the test launches tasks, sends orders and reads output as a server does,
//! and can end either side at any time.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use heeler_server::internal::{
    AfterFailure, EnvBlock, IdKey, Item, Kind, LastOutput, Launch, MemoryDir, OutputPolicy,
    Reading, RecordSync, Records, Seq, ShimLink, ShimOrder, ShimPool, ShimReport, Start, Stdin,
    TaskDir, TaskId, TaskUid, TreeEnd,
};
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::{Process, eventually_some, within};

/// The memory budget.
const BUDGET: u64 = 64 << 20;

/// Idle shims, and the directories for their files.
#[derive(Debug)]
pub struct LoneShims {
    temp: TempDir,
    memory: TempDir,
    pub dir: TaskDir,
    shims: ShimPool,
    next: AtomicU64,
}

/// The output of a task: where it begins, and its limits.
#[derive(Debug, Clone)]
pub struct OutputRules {
    pub begins: Begins,
    pub policy: OutputPolicy,
    /// The most bytes by order of the server.
    pub budget: u64,
}

/// The file in which output begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// If the budget allows.
    InMemory,
    OnDisk,
}

impl Default for OutputRules {
    fn default() -> Self {
        Self {
            begins: Begins::InMemory,
            policy: OutputPolicy::default(),
            budget: u64::MAX,
        }
    }
}

/// A task of a lone shim.
#[derive(Debug)]
pub struct LoneTask {
    pub id: TaskId,
    dir: TaskDir,
    memory: PathBuf,
    link: Option<ShimLink>,
}

impl LoneShims {
    /// Makes a pool with directories of its own.
    pub fn new() -> Self {
        Self::with(Path::new("/tmp"), Path::new("/dev/shm"), RecordSync::Cached)
    }

    /// Uses new directories in these.
    pub fn with(disk: &Path, memory: &Path, sync: RecordSync) -> Self {
        let temp = |dir| {
            let mut builder = tempfile::Builder::new();
            builder.prefix("heeler-shim-").tempdir_in(dir).unwrap()
        };
        let (temp, memory) = (temp(disk), temp(memory));
        let room = MemoryDir::open(memory.path(), temp.path(), BUDGET).unwrap();
        let dir = TaskDir::new(temp.path()).with_memory(room);
        dir.create().unwrap();
        let shims = ShimPool::unpack(&dir, sync, None).unwrap();
        Self {
            temp,
            memory,
            dir,
            shims,
            next: AtomicU64::new(1),
        }
    }

    /// A path for a file of the test.
    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Starts a shell script. Its output begins in memory, if the budget allows.
    pub async fn start(&self, script: &str) -> LoneTask {
        self.start_in(None, script).await
    }

    /// Starts a shell script in a cgroup.
    pub async fn start_in(&self, cgroup: Option<&Path>, script: &str) -> LoneTask {
        self.launch(cgroup, OutputRules::default(), script).await
    }

    /// Starts a shell script under these rules for its output.
    pub async fn start_with(&self, rules: OutputRules, script: &str) -> LoneTask {
        self.launch(None, rules, script).await
    }

    async fn launch(&self, cgroup: Option<&Path>, rules: OutputRules, script: &str) -> LoneTask {
        let seq = Seq(self.next.fetch_add(1, Ordering::Relaxed));
        let id = IdKey(7).task_id(Kind::Shell, seq);
        let reserved = match rules.begins {
            Begins::InMemory => self.dir.reserve_memory(&id),
            Begins::OnDisk => None,
        };
        let launch = Launch {
            after_failure: AfterFailure::End,
            uid: TaskUid::new(),
            output: &rules.policy,
            output_budget: rules.budget,
            stdin: Stdin::Empty,
            task_file: &self.dir.path(&id),
            memory: reserved.as_deref(),
            cgroup,
            working_directory: self.temp.path(),
            program: Path::new("/bin/sh"),
            argv: &["sh".to_owned(), "-c".to_owned(), script.to_owned()],
            env: &EnvBlock::default(),
        };
        let link = Some(self.shims.launch(&launch).await.unwrap());
        let memory = self.memory.path().join(id.as_str());
        let mut task = LoneTask {
            id,
            dir: self.dir.clone(),
            memory,
            link,
        };
        task.reported("its start", |report| report == ShimReport::Started)
            .await;
        task
    }
}

impl Default for LoneShims {
    fn default() -> Self {
        Self::new()
    }
}

impl LoneTask {
    /// Sends an order.
    pub async fn order(&mut self, order: ShimOrder) {
        self.link.as_mut().unwrap().send(order).await.unwrap();
    }

    /// Sends an order to a shim that may have ended.
    pub async fn order_if_there(&mut self, order: ShimOrder) {
        let _ = self.link.as_mut().unwrap().send(order).await;
    }

    /// Waits for a report.
    pub async fn reported(&mut self, what: &str, is_it: impl Fn(ShimReport) -> bool) {
        self.each_report(what, is_it).await;
    }

    /// Passes every report to `is_last`, until that returns true.
    pub async fn each_report(&mut self, what: &str, mut is_last: impl FnMut(ShimReport) -> bool) {
        let link = self.link.as_mut().unwrap();
        let reported = async {
            while let Some(report) = link.next().await {
                if is_last(report) {
                    return;
                }
            }
            panic!("the shim ended without reporting {what}");
        };
        within(what, reported).await;
    }

    /// Waits for output beyond an offset, of a task that goes on.
    pub async fn output_beyond(&mut self, beyond: u64) {
        self.order(ShimOrder::Follow { beyond }).await;
        self.reported(
            "output",
            |report| matches!(report, ShimReport::Output { end } if end > beyond),
        )
        .await;
    }

    /// Waits for the end of the task.
    pub async fn ended(&mut self) -> TreeEnd {
        self.reported("its end", |report| {
            matches!(report, ShimReport::TreeEnded { .. })
        })
        .await;
        self.records().tree_end.whole().unwrap()
    }

    /// Closes the connection, as a server does that dies.
    pub fn hang_up(&mut self) {
        self.link = None;
    }

    /// Waits for the record of the end, without a connection.
    pub async fn recorded_end(&self) -> TreeEnd {
        eventually_some("the record of the end", || self.records().tree_end.whole()).await
    }

    /// The records of the task file.
    pub fn records(&self) -> Records {
        self.dir.open(&self.id).unwrap().unwrap().records().unwrap()
    }

    /// Reads output from an offset, as the server does.
    pub fn read(&self, offset: u64) -> Reading {
        let file = self.dir.open(&self.id).unwrap().unwrap();
        file.read(offset, usize::MAX).unwrap()
    }

    /// The last output, as the server sees it.
    pub fn last_output(&self) -> LastOutput {
        let file = self.dir.open(&self.id).unwrap().unwrap();
        file.last_output().unwrap()
    }

    /// All output that was kept.
    pub fn output(&self) -> Vec<u8> {
        let bytes = |item| match item {
            Item::Chunk(chunk) => chunk.data,
            Item::Gap(_) => Vec::new(),
        };
        self.read(0).items.into_iter().flat_map(bytes).collect()
    }

    pub fn memory_file(&self) -> &Path {
        &self.memory
    }

    pub fn is_in_memory(&self) -> bool {
        self.memory.exists()
    }

    /// The disk space of the task file.
    pub fn bytes_on_disk(&self) -> u64 {
        let found = std::fs::metadata(self.dir.path(&self.id)).unwrap();
        found.len().max(found.blocks() * 512)
    }

    pub fn shim(&self) -> Option<Process> {
        let identity = self.records().identity.whole()?;
        let shim = Process::now(identity.shim_pid as i32)?;
        (shim.start_ticks == identity.shim_start_ticks).then_some(shim)
    }

    pub fn leader(&self) -> Option<Process> {
        match self.records().start.whole()? {
            Start::Running {
                pid, start_ticks, ..
            } => Process::now(pid as i32).filter(|found| found.start_ticks == start_ticks),
            Start::Failed { .. } => None,
        }
    }
}

impl Drop for LoneTask {
    fn drop(&mut self) {
        let exists = self.dir.open(&self.id).is_ok_and(|file| file.is_some());
        if exists && self.records().tree_end.whole().is_none() {
            if let Some(leader) = self.leader() {
                // Its pid is also the id of its process group.
                let _ = killpg(Pid::from_raw(leader.pid), Signal::SIGKILL);
            }
            if let Some(shim) = self.shim() {
                shim.signal(Signal::SIGKILL);
            }
        }
    }
}
