//! What an actor learns from its task file.

use std::{io, path::PathBuf, time::Duration};

use tokio::task::spawn_blocking;

use super::{
    actor::{TaskActor, survivors_below},
    lifecycle::{Input, TreeEnded},
};
use crate::{
    crash,
    process::{
        Moment, errno_text,
        task_file::{CgroupPath, Exit, LeaderExit, Records, Stage, Start, TreeEnd},
        tree,
        tree::sweep::{SweepTarget, Swept},
    },
    task::{
        Command, Containment, LeaderEnd, OrphanPolicy, Outcome, ProofMethod, Signal, SpawnFailure,
        Started, Survivor, Task, Timestamp,
    },
};

/// How long the sweep at the end of a cancel goes on before the actor hears others again.
const SWEEP_ROUND: Duration = Duration::from_secs(5);

impl TaskActor {
    /// Takes in whatever the task file has recorded and the task does not know yet. What cannot be
    /// read now is looked at again.
    pub(super) async fn catch_up(&mut self, leader: LeaderExits) {
        match self.records() {
            Ok(records) => self.take_in(records, leader).await,
            Err(error) => self.look_again(&error),
        }
    }

    async fn take_in(&mut self, records: Records, leader: LeaderExits) {
        self.tell_damage(&records);
        if let Some(identity) = records.identity.whole() {
            self.shim_pid = Some(identity.shim_pid);
        }
        if let (None, Some(start)) = (&self.life.task.started, records.start.whole()) {
            self.learn_start(start).await;
        }
        match (records.tree_end.whole(), records.leader_exit.whole()) {
            (Some(end), leader) => self.learn_end(end, leader).await,
            (None, Some(exit)) if leader == LeaderExits::Count && self.others_live_on() => {
                crash::point("end.leader-seen");
                let output_bytes = exit.output_end;
                let end = leader_end(exit);
                let others = self.others().await;
                self.learn(Input::LeaderExited {
                    end,
                    output_bytes,
                    others,
                })
                .await;
            }
            (None, Some(_) | None) => {}
        }
    }

    /// A cgroup may count a member for a moment after its end; the shim, which has no child then,
    /// waits for that before it records the tree's end.
    fn others_live_on(&self) -> bool {
        self.shim_pid
            .is_none_or(|shim_pid| tree::has_children(shim_pid as i32))
    }

    /// Those who outlive the leader, if they are to be left.
    async fn others(&self) -> Vec<Survivor> {
        match (self.life.task.spec.rules.orphan_policy, self.shim_pid) {
            (OrphanPolicy::Abandon, Some(shim_pid)) => {
                let walked = spawn_blocking(move || survivors_below(shim_pid)).await;
                walked.unwrap_or_default()
            }
            (OrphanPolicy::Abandon, None) | (OrphanPolicy::Track | OrphanPolicy::Kill, _) => {
                Vec::new()
            }
        }
    }

    /// Says once which records cannot be read.
    pub(super) fn tell_damage(&mut self, records: &Records) {
        let records = records.unreadable();
        if !records.is_empty() && !self.damage_told {
            self.damage_told = true;
            let file = self.shared.parts.task_dir.path(&self.life.task.id);
            let (task, file) = (&self.life.task.id, file.display());
            tracing::warn!(%task, %file, ?records, "records of its task file cannot be read");
        }
    }

    pub(super) fn look_again(&mut self, error: &io::Error) {
        tracing::error!(task = %self.life.task.id, %error, "its task file cannot be used now");
        self.unreachable = true;
    }

    /// The shim could not even make its file.
    pub(super) async fn cannot_start(&mut self, stage: Stage, errno: i32) {
        let failure = spawn_failure(&self.life.task, stage, errno);
        self.learn(Input::SpawnFailed(failure)).await;
    }

    pub(super) fn records(&self) -> io::Result<Records> {
        match self.shared.parts.task_dir.open(&self.life.task.id)? {
            Some(file) => file.records(),
            None => Ok(Records::default()),
        }
    }

    pub(super) async fn learn_start(&mut self, start: Start) {
        crash::point("spawn.start-seen");
        let input = match start {
            Start::Running {
                pid,
                start_ticks,
                time,
                in_cgroup,
            } => Input::Started(Started {
                pid,
                start_ticks,
                at: Moment::from(time).wall,
                containment: match in_cgroup {
                    true => Containment::Cgroup,
                    false => Containment::Subreaper,
                },
            }),
            Start::Failed { stage, errno } => {
                Input::SpawnFailed(spawn_failure(&self.life.task, stage, errno))
            }
        };
        self.learn(input).await;
    }

    pub(super) async fn learn_end(&mut self, end: TreeEnd, leader: Option<LeaderExit>) {
        if !self.life.task.is_live() || self.life.is_over() {
            return;
        }
        let stopped = self.life.task.stop.is_some();
        let method = match (end.cgroup_empty, end.abandoned && stopped) {
            (true, _) => ProofMethod::CgroupEmpty,
            // Let go before the shim heard of the stop.
            (false, true) => ProofMethod::Sweep,
            (false, false) => ProofMethod::NoChildren,
        };
        // A cancel without a cgroup also looks for whatever a process of the tree may have had
        // started for it elsewhere, with the task's environment tag. Who was let go, and is not to be stopped, is
        // not looked for.
        let wants_sweep = stopped && !end.cgroup_empty;
        if wants_sweep {
            match self.sweep_after_shim().await {
                Ok(Swept::Gone { .. }) => {}
                Ok(Swept::NotGone(survivors)) => return self.not_gone_yet(survivors).await,
                Err(error) => return self.look_again(&error),
            }
        }
        crash::point("end.seen");
        let ended = TreeEnded {
            leader: Some(leader.map_or_else(lost_leader, leader_end)),
            at: Moment::from(end.time).wall,
            method,
            output_bytes: end.output_end,
            capture_error: capture_error(&end),
            abandoned: end.abandoned,
            cpu: Duration::from_micros(end.cpu_micros),
            max_memory: end.max_memory,
        };
        self.learn(Input::TreeEnded(ended)).await;
    }

    /// Looks for what the shim could not know of. The shim itself, which is tagged too, is
    /// about to end.
    async fn sweep_after_shim(&self) -> io::Result<Swept> {
        let identity = self.records()?.identity.whole();
        let sweep = SweepTarget {
            uid: self.life.task.uid,
            cgroup: identity.and_then(|identity| cgroup_path(&identity.cgroup)),
            leader: None,
            spared: identity.map(|identity| identity.shim_pid),
        };
        self.shared.sweeper.sweep(&sweep, SWEEP_ROUND).await
    }
}

/// A cgroup as it stands in a record; `None` if there was none.
pub(super) fn cgroup_path(cgroup: &CgroupPath) -> Option<PathBuf> {
    let path = str::from_utf8(cgroup.as_bytes()).ok()?;
    (!path.is_empty()).then(|| path.into())
}

/// What the record of a leader's exit means where there is none of the tree's end: the two may be
/// written in one breath, and then the leader was alone. A living shim says which it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaderExits {
    /// Others live on: the shim has said so, or will say nothing any more.
    Count,
    /// The shim is about to say.
    AwaitWord,
}

pub(super) fn leader_end(exit: LeaderExit) -> LeaderEnd {
    let outcome = match exit.exit {
        Exit::Code(code) => Outcome::Exited(code),
        Exit::Signal {
            number,
            core_dumped,
        } => Outcome::Signalled {
            signal: Signal(number),
            core_dumped,
        },
    };
    LeaderEnd {
        outcome,
        at: Moment::from(exit.time).wall,
    }
}

/// The record of it is damaged, and that of the tree's end is not.
fn lost_leader() -> LeaderEnd {
    let outcome = Outcome::Unknown("the record of its exit cannot be read".to_owned());
    LeaderEnd {
        outcome,
        at: Timestamp::now(),
    }
}

fn capture_error(end: &TreeEnd) -> Option<String> {
    (end.capture_errno != 0).then(|| {
        format!(
            "{}: {} bytes were not kept",
            errno_text(end.capture_errno),
            end.discarded
        )
    })
}

fn spawn_failure(task: &Task, stage: Stage, errno: i32) -> SpawnFailure {
    let operation = match stage {
        Stage::TaskFile => "make its task file".to_owned(),
        Stage::Prepare => "prepare its pipes".to_owned(),
        Stage::Clone => "make its process".to_owned(),
        Stage::WorkingDirectory => format!("enter {}", task.spec.working_directory.display()),
        Stage::Arrange => "arrange its descriptors".to_owned(),
        Stage::Exec => match &task.spec.command {
            Command::Argv(argv) => format!("execute {}", argv.first().map_or("", String::as_str)),
            Command::Shell { .. } => "execute its shell".to_owned(),
        },
    };
    SpawnFailure {
        operation,
        message: errno_text(errno).to_owned(),
        errno,
    }
}
