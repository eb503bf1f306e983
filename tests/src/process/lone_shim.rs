//! A shim without a server: a test gives it its task, orders and reads as a server does, and can let
//! either of them die whenever it likes.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use heeler_server::{
    process::{
        environment::EnvBlock,
        link::Link,
        shim::{Launch, Records as Durable, Shims},
        task_file::{MemoryDir, Reading, Records, TaskDir},
    },
    task::{IdKey, Kind, Seq, TaskId, TaskUid},
};
use heeler_shim::{
    record::{Start, TreeEnd},
    wire::{Order, Report},
};
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::{Process, eventually_some, within};

/// How much may be in memory, unless a test says otherwise.
const ROOM: u64 = 64 << 20;

/// Shims that wait, and the place for what they leave.
#[derive(Debug)]
pub struct LoneShims {
    temp: TempDir,
    memory: TempDir,
    /// As the server has it.
    pub dir: TaskDir,
    shims: Shims,
    next: AtomicU64,
}

/// A task of one of them.
#[derive(Debug)]
pub struct LoneTask {
    /// Its name.
    pub id: TaskId,
    dir: TaskDir,
    memory: PathBuf,
    link: Option<Link>,
}

impl LoneShims {
    /// In directories of their own.
    pub fn new() -> Self {
        Self::with(Path::new("/tmp"), Path::new("/dev/shm"), Durable::Cached)
    }

    /// With directories of their own in these.
    pub fn with(disk: &Path, memory: &Path, durable: Durable) -> Self {
        let temp = |dir| {
            let mut builder = tempfile::Builder::new();
            builder.prefix("heeler-shim-").tempdir_in(dir).unwrap()
        };
        let (temp, memory) = (temp(disk), temp(memory));
        let room = MemoryDir::open(memory.path(), ROOM).unwrap();
        let dir = TaskDir::new(temp.path()).with_memory(room);
        dir.create().unwrap();
        let shims = Shims::unpack(&dir, durable, None).unwrap();
        Self {
            temp,
            memory,
            dir,
            shims,
            next: AtomicU64::new(1),
        }
    }

    /// A file of the test's own.
    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Starts a shell script whose output begins in memory, if there is room.
    pub async fn start(&self, script: &str) -> LoneTask {
        self.start_in(None, script).await
    }

    /// The same, born in a cgroup.
    pub async fn start_in(&self, cgroup: Option<&Path>, script: &str) -> LoneTask {
        let seq = Seq(self.next.fetch_add(1, Ordering::Relaxed));
        let id = IdKey(7).task_id(Kind::Shell, seq);
        let place = self.dir.memory_place(&id);
        let launch = Launch {
            uid: TaskUid::new(),
            task_file: &self.dir.path(&id),
            memory: place.as_deref(),
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
        task.reported("its start", |report| report == Report::Started)
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
    /// Tells the shim to do something.
    pub async fn order(&mut self, order: Order) {
        self.link.as_mut().unwrap().send(order).await.unwrap();
    }

    /// The same of a shim that may have ended by now.
    pub async fn order_if_there(&mut self, order: Order) {
        let _ = self.link.as_mut().unwrap().send(order).await;
    }

    /// Until the shim has said this.
    pub async fn reported(&mut self, what: &str, is_it: impl Fn(Report) -> bool) {
        let link = self.link.as_mut().unwrap();
        let told = async {
            while let Some(report) = link.next().await {
                if is_it(report) {
                    return;
                }
            }
            panic!("the shim is gone, and has not told {what}");
        };
        within(what, told).await;
    }

    /// Until there is more output than this, of a task that does not end before.
    pub async fn output_beyond(&mut self, beyond: u64) {
        self.order(Order::Follow { beyond }).await;
        self.reported(
            "output",
            |report| matches!(report, Report::Output { end } if end > beyond),
        )
        .await;
    }

    /// Until it is over.
    pub async fn ended(&mut self) -> TreeEnd {
        self.reported("its end", |report| {
            matches!(report, Report::TreeEnded { .. })
        })
        .await;
        self.records().tree_end.whole().unwrap()
    }

    /// As a server that dies: the shim is alone from now on.
    pub fn hang_up(&mut self) {
        self.link = None;
    }

    /// Until the end is on record, with nobody to be told.
    pub async fn recorded_end(&self) -> TreeEnd {
        eventually_some("its end", || self.records().tree_end.whole()).await
    }

    /// What the task file says.
    pub fn records(&self) -> Records {
        self.dir.open(&self.id).unwrap().unwrap().records().unwrap()
    }

    /// Output from an offset on, as the server reads it.
    pub fn read(&self, offset: u64) -> Reading {
        let file = self.dir.open(&self.id).unwrap().unwrap();
        file.read(offset, usize::MAX).unwrap()
    }

    /// All of its output.
    pub fn output(&self) -> Vec<u8> {
        let chunks = self.read(0).chunks.into_iter();
        chunks.flat_map(|chunk| chunk.data).collect()
    }

    /// Where its output is while it is in memory.
    pub fn memory_file(&self) -> &Path {
        &self.memory
    }

    /// Whether its output is in memory.
    pub fn is_in_memory(&self) -> bool {
        self.memory.exists()
    }

    /// How much of the disk its file takes.
    pub fn bytes_on_disk(&self) -> u64 {
        let found = std::fs::metadata(self.dir.path(&self.id)).unwrap();
        found.len().max(found.blocks() * 512)
    }

    /// Its shim.
    pub fn shim(&self) -> Option<Process> {
        let identity = self.records().identity.whole()?;
        let shim = Process::now(identity.shim_pid as i32)?;
        (shim.start_ticks == identity.shim_start_ticks).then_some(shim)
    }

    /// Its leader.
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
                // Its number is its group's, too.
                let _ = killpg(Pid::from_raw(leader.pid), Signal::SIGKILL);
            }
            if let Some(shim) = self.shim() {
                shim.signal(Signal::SIGKILL);
            }
        }
    }
}
