//! A run of a command that looks whether a task is ready: a tree of its own under a shim, like a task's,
//! with no entry in the journal.
//!
//! ```text
//!  launch ──> first process exits ──> tree empty: delete the file
//!    │            │ others remain         ^
//!    └── limit ───┴──> kill, search ──────┘   not proven empty: the file stays
//! ```
//!
//! The file beside the task file is the only trace of the run. The next look at the task, or the next
//! server, finds it and ends what is left of the run.

use std::{io, time::Duration};

use tokio::{task::spawn_blocking, time::timeout};

use super::{Look, Probed, Probes, Unwanted};
use crate::{
    process::{
        launch::{self, EnvBlock},
        shim::{
            AfterFailure, AfterTask, Launch, ShimLink, ShimOrder, ShimProcess, ShimReport, Stdin,
        },
        task_file::{Exit, FileState, Records},
        tree::{
            owner::KnownTask,
            sweep::{SweepTarget, Swept},
        },
    },
    supervisor::{
        Shared, lifecycle::KILL_DEADLINE, lifecycle::case::Lock, task_actor::cgroup_path,
    },
    task::{Command, OutputPolicy, TaskId, TaskUid},
};

/// The time that a shim has to kill the tree before the server does it.
const KILL_WITHIN: Duration = Duration::from_secs(1);
/// The most output that a command may write before it is killed. Nothing reads it.
const MOST_OUTPUT: u64 = 1 << 20;
/// The most walks over the tree of a shim that does not answer, while each finds a live process.
const WALKS: usize = 8;

/// The environment of the command: that of the task.
#[derive(Debug, Clone)]
pub(in crate::supervisor) enum Environment {
    Known(EnvBlock),
    /// An earlier server has started the leader, which has this pid and start time.
    OfLeader {
        pid: u32,
        start_ticks: u64,
        /// The environment without the request's variables, if that of the leader cannot be read.
        otherwise: EnvBlock,
    },
}

impl Environment {
    async fn read(&self) -> EnvBlock {
        match self.clone() {
            Self::Known(block) => block,
            Self::OfLeader {
                pid,
                start_ticks,
                otherwise,
            } => {
                // A process that hangs can block the read.
                let read = spawn_blocking(move || EnvBlock::of_process(pid, start_ticks)).await;
                read.ok().and_then(Result::ok).unwrap_or(otherwise)
            }
        }
    }
}

/// Runs the command to its end, and ends every process of it.
pub(super) async fn run(
    shared: &Shared,
    look: &Look,
    argv: &[String],
    limit: Duration,
    unwanted: Unwanted,
) -> Probed {
    let _permit = shared.probes.commands.acquire().await;
    let _turn = shared.probes.turn(&look.task).await;
    match Run::start(shared, look, argv).await {
        Ok(run) => run.finish(limit, unwanted).await,
        Err(error) => {
            tracing::debug!(task = %look.task, %error, "cannot run the command of a ready policy");
            Probed::NotYet
        }
    }
}

/// Ends what an earlier run for this task has left, unless a look at the task does that now.
pub(in crate::supervisor) async fn clear_leftover(
    shared: &Shared,
    task: &TaskId,
) -> io::Result<()> {
    match shared.probes.try_turn(task) {
        Some(_turn) => clear(shared, task).await,
        None => Ok(()),
    }
}

/// Ends what an earlier run for this task has left, and deletes its file. Needs the turn for the task.
async fn clear(shared: &Shared, task: &TaskId) -> io::Result<()> {
    let task_dir = &shared.parts.task_dir;
    let (file, lock) = match task_dir.probe_state(task)? {
        None => return Ok(()),
        Some(FileState::Locked(file)) => (file, Lock::Held),
        Some(FileState::Unlocked(file)) => (file, Lock::Free),
        Some(FileState::NotAFile) => return Err(not_a_file()),
    };
    let identity = file.records()?.identity.whole();
    // A shim that has released the file may have another task by now.
    let (shim, identity) = match (lock, identity) {
        (Lock::Held, Some(identity)) => (Some(ShimProcess::from(identity)), identity),
        (Lock::Free, Some(identity)) => (None, identity),
        (Lock::Held, None) => return Err(io::Error::other("its shim has no readable identity")),
        // Nothing was started.
        (Lock::Free, None) => return task_dir.remove_probe(task, &file),
    };
    let target = SweepTarget {
        uid: TaskUid(uuid::Uuid::from_bytes(identity.task_uid)),
        cgroup: cgroup_path(&identity.cgroup),
        leader: None,
        spared: None,
    };
    if let Some(shim) = shim {
        end_shim(shim).await;
    }
    kill_tree(shared, &target).await?;
    task_dir.remove_probe(task, &file)
}

/// A run that was given to a shim.
struct Run<'a> {
    shared: &'a Shared,
    task: &'a TaskId,
    link: ShimLink,
    target: SweepTarget,
    _announced: Announced<'a>,
}

/// Lets the server recognise the processes of a run as the task's, until it is dropped.
struct Announced<'a> {
    probes: &'a Probes,
    uid: TaskUid,
}

impl<'a> Announced<'a> {
    fn new(probes: &'a Probes, known: KnownTask) -> Self {
        let uid = known.uid;
        probes.running().push(known);
        Self { probes, uid }
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.probes.running().retain(|known| known.uid != self.uid);
    }
}

/// The state of a run's tree.
enum Tree {
    /// The shim has no child left.
    Ended(AfterTask),
    /// The first process has exited, or should have.
    MayLive,
}

impl<'a> Run<'a> {
    async fn start(shared: &'a Shared, look: &'a Look, argv: &[String]) -> io::Result<Self> {
        let (parts, task) = (&shared.parts, &look.task);
        clear(shared, task).await?;
        let uid = TaskUid::new();
        let environment = look.environment.read().await.tagged(uid);
        let command = Command::Argv(argv.to_vec());
        let executable = launch::resolve(&command, &look.directory, environment.get("PATH"))
            .map_err(|unusable| unusable.source)?;
        let cgroup = parts.containment.probe_leaf(task);
        let launch = Launch {
            after_failure: AfterFailure::End,
            uid,
            output: &OutputPolicy::with_limit(2 * MOST_OUTPUT),
            stdin: Stdin::Empty,
            output_budget: 2 * MOST_OUTPUT,
            task_file: &parts.task_dir.probe_path(task),
            memory: None,
            cgroup: cgroup.as_deref(),
            working_directory: &look.directory,
            program: &executable.program,
            argv: &executable.argv,
            env: &environment,
        };
        let mut link = parts.shims.launch(&launch).await?;
        // A shim that does not take it shows that to the next call.
        let _ = link
            .send(ShimOrder::Follow {
                beyond: MOST_OUTPUT,
            })
            .await;
        let known = KnownTask {
            id: task.clone(),
            uid,
            shim: link.process(),
        };
        Ok(Self {
            shared,
            task,
            link,
            target: SweepTarget {
                uid,
                cgroup,
                leader: None,
                spared: None,
            },
            _announced: Announced::new(&shared.probes, known),
        })
    }

    async fn finish(mut self, limit: Duration, unwanted: Unwanted) -> Probed {
        let tree = tokio::select! {
            _ = unwanted => Tree::MayLive,
            tree = timeout(limit, first_exit(&mut self.link)) => tree.unwrap_or(Tree::MayLive),
        };
        let records = self.records().unwrap_or_default();
        let (shared, task) = (self.shared, self.task);
        let ended = match self.end(tree, &records).await {
            Ok(()) => remove_file(shared, task),
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::error!(%task, %error, "cannot end the command of a ready policy; will retry");
        }
        let exit = records.leader_exit.whole().map(|exit| exit.exit);
        super::as_probed(exit == Some(Exit::Code(0)))
    }

    fn records(&self) -> io::Result<Records> {
        match self.shared.parts.task_dir.probe_state(self.task)? {
            Some(FileState::Locked(file) | FileState::Unlocked(file)) => file.records(),
            Some(FileState::NotAFile) | None => Ok(Records::default()),
        }
    }

    /// Ends the tree, unless it has ended by itself.
    async fn end(mut self, tree: Tree, records: &Records) -> io::Result<()> {
        if let Tree::Ended(shim) = tree {
            self.retire(shim);
            return Ok(());
        }
        match self.kill().await {
            Tree::Ended(shim) => {
                let identity = records.identity.whole();
                self.target.spared = identity.map(|identity| identity.shim_pid);
                let killed = kill_tree(self.shared, &self.target).await;
                self.retire(shim);
                killed
            }
            Tree::MayLive => {
                if let Some(shim) = self.link.process() {
                    end_shim(shim).await;
                }
                kill_tree(self.shared, &self.target).await
            }
        }
    }

    /// Lets the shim kill the tree.
    async fn kill(&mut self) -> Tree {
        let within_millis = KILL_DEADLINE.as_millis() as u64;
        let killed = async {
            let ordered = self.link.send(ShimOrder::Kill { within_millis }).await;
            if ordered.is_err() {
                return Tree::MayLive;
            }
            tree_end(&mut self.link).await
        };
        timeout(KILL_WITHIN, killed).await.unwrap_or(Tree::MayLive)
    }

    fn retire(self, shim: AfterTask) {
        match shim {
            AfterTask::Waits => self.shared.parts.shims.give_back(self.link),
            AfterTask::Ends | AfterTask::Keeps => {}
        }
    }
}

fn remove_file(shared: &Shared, task: &TaskId) -> io::Result<()> {
    let task_dir = &shared.parts.task_dir;
    match task_dir.probe_state(task)? {
        Some(FileState::Locked(file) | FileState::Unlocked(file)) => {
            task_dir.remove_probe(task, &file)
        }
        Some(FileState::NotAFile) => Err(not_a_file()),
        None => Ok(()),
    }
}

fn not_a_file() -> io::Error {
    io::Error::other("it is not a file")
}

/// Waits for the exit of the first process, and whether others remain.
async fn first_exit(link: &mut ShimLink) -> Tree {
    loop {
        match link.next().await {
            Some(ShimReport::TreeEnded { shim }) => return Tree::Ended(shim),
            Some(
                ShimReport::LeaderExited
                | ShimReport::CannotStart { .. }
                // More than is kept.
                | ShimReport::Output { .. }
                | ShimReport::OutputLimit,
            )
            | None => return Tree::MayLive,
            Some(
                ShimReport::Hello { .. }
                | ShimReport::Started
                | ShimReport::Signalled { .. }
                | ShimReport::Overdue
                | ShimReport::RecordRefused
                | ShimReport::Stored { .. }
                | ShimReport::Storm
                | ShimReport::Input { .. }
                | ShimReport::InputGiven
                | ShimReport::Note { .. }
                | ShimReport::Resized,
            ) => {}
        }
    }
}

/// Waits until the shim has no child left; it is not known if the shim ends before.
async fn tree_end(link: &mut ShimLink) -> Tree {
    while let Some(report) = link.next().await {
        if let ShimReport::TreeEnded { shim } = report {
            return Tree::Ended(shim);
        }
    }
    Tree::MayLive
}

/// Kills the descendants of a shim that does not answer, and the shim: its tree may have stopped it.
async fn end_shim(shim: ShimProcess) {
    for _ in 0..WALKS {
        let alive = shim.kill_descendants().await;
        shim.resume();
        if alive == 0 {
            break;
        }
    }
    shim.end(KILL_WITHIN).await;
}

/// Kills what has the marks of the run or is in its cgroup, until nothing is found.
async fn kill_tree(shared: &Shared, target: &SweepTarget) -> io::Result<()> {
    match shared.sweeper.sweep(target, KILL_DEADLINE).await? {
        Swept::Gone { .. } => Ok(()),
        Swept::NotGone(survivors) => Err(io::Error::other(format!(
            "its processes cannot be killed: {survivors:?}"
        ))),
    }
}
