//! What an actor learns from its task file, and what it does when the shim is gone.

use std::{io, time::Duration};

use heeler_shim::record::{Exit, LeaderExit, Stage, Start, TreeEnd};

use super::{
    actor::TaskActor,
    lifecycle::{Input, StopOrder, TreeEnded},
};
use crate::{
    process::{
        errno_text,
        link::Link,
        sweep::Sweep,
        task_file::{Records, TaskFile},
    },
    task::{
        Command, Containment, LeaderEnd, Outcome, ProofMethod, Signal, SpawnFailure, Started,
        Survivor, Task, Timestamp,
    },
};

/// How long a sweep may take before the survivors are named.
const SWEEP_WITHIN: Duration = Duration::from_secs(5);

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
        if let Some(identity) = records.identity {
            self.shim_pid = Some(identity.shim_pid);
        }
        if let (None, Some(start)) = (&self.life.task.started, records.start) {
            self.learn_start(start).await;
        }
        match (records.tree_end, records.leader_exit) {
            (Some(end), leader) => self.learn_end(end, leader).await,
            (None, Some(exit)) if leader == LeaderExits::Count => {
                let output_bytes = exit.output_end;
                let end = leader_end(exit);
                self.learn(Input::LeaderExited { end, output_bytes }).await;
            }
            (None, Some(_) | None) => {}
        }
    }

    fn look_again(&mut self, error: &io::Error) {
        tracing::error!(task = %self.life.task.id, %error, "its task file cannot be used now");
        self.unreachable = true;
    }

    /// The shim could not even make its file.
    pub(super) async fn cannot_start(&mut self, stage: Stage, errno: i32) {
        let failure = spawn_failure(&self.life.task, stage, errno);
        self.learn(Input::SpawnFailed(failure)).await;
    }

    /// There is no link: the shim has ended, was killed, has dropped us for being slow, or has not
    /// been called yet.
    pub(super) async fn shim_gone(&mut self) {
        self.link = None;
        self.unreachable = false;
        // Whether it lives is asked before what it wrote: a dead shim writes no more.
        let observed = self
            .shim_state()
            .and_then(|shim| Ok((shim, self.records()?)));
        let (shim, records) = match observed {
            Ok(observed) => observed,
            Err(error) => return self.look_again(&error),
        };
        let leader = match shim {
            ShimState::Alive => LeaderExits::AwaitWord,
            ShimState::Dead | ShimState::NeverWas => LeaderExits::Count,
        };
        self.take_in(records, leader).await;
        if !self.life.task.is_live() || self.life.is_over() {
            return;
        }
        match shim {
            ShimState::Alive => match Link::connect(self.life.task.uid) {
                Ok(link) => {
                    self.reached(link);
                    self.order_again().await;
                }
                // It is about to listen, or about to end; or it cannot be reached from here.
                Err(_) => self.unreachable = true,
            },
            ShimState::Dead => self.sweep_away().await,
            ShimState::NeverWas => {
                let failure = SpawnFailure {
                    operation: "start its shim".to_owned(),
                    message: "the shim ended before it began".to_owned(),
                    errno: 0,
                };
                self.learn(Input::SpawnFailed(failure)).await;
            }
        }
    }

    /// What went to a link that broke, or was ordered by a server that is gone, may not have been
    /// heard.
    async fn order_again(&mut self) {
        match self.life.order() {
            Some(StopOrder::Ask(signal)) => self.signal(signal).await,
            Some(StopOrder::Kill) => self.kill().await,
            None => {}
        }
    }

    /// Looks at the task file's lock. A file that is not there is made, so that a shim which is
    /// only about to begin finds its place taken and starts nothing.
    fn shim_state(&self) -> io::Result<ShimState> {
        let task_dir = &self.shared.parts.task_dir;
        let id = &self.life.task.id;
        match task_dir.open(id)? {
            Some(file) => Ok(match file.is_held()? {
                true => ShimState::Alive,
                false => ShimState::Dead,
            }),
            None => {
                let forestalled = TaskFile::forestall(&task_dir.path(id))?;
                Ok(match forestalled && self.life.task.started.is_none() {
                    true => ShimState::NeverWas,
                    false => ShimState::Dead,
                })
            }
        }
    }

    fn records(&self) -> io::Result<Records> {
        match self.shared.parts.task_dir.open(&self.life.task.id)? {
            Some(file) => file.records(),
            None => Ok(Records::default()),
        }
    }

    async fn learn_start(&mut self, start: Start) {
        let input = match start {
            Start::Running {
                pid,
                start_ticks,
                time_micros,
                in_cgroup,
            } => Input::Started(Started {
                pid,
                start_ticks,
                at: Timestamp(time_micros),
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

    async fn learn_end(&mut self, end: TreeEnd, leader: Option<LeaderExit>) {
        if !self.life.task.is_live() || self.life.is_over() {
            return;
        }
        let method = match end.cgroup_empty {
            true => ProofMethod::CgroupEmpty,
            false => ProofMethod::NoChildren,
        };
        // A cancel on the lower rung also looks for whatever a process of the tree may have had
        // started for it elsewhere, with the task's mark.
        let wants_sweep = self.life.task.stop.is_some() && method == ProofMethod::NoChildren;
        let survivors = match wants_sweep {
            // The shim, which carries the mark too, is about to end by itself.
            true => match self.sweep(self.shim_pid).await {
                Ok(survivors) => survivors,
                Err(error) => return self.look_again(&error),
            },
            false => Vec::new(),
        };
        let ended = TreeEnded {
            leader: Some(leader.map_or_else(lost_leader, leader_end)),
            at: Timestamp(end.time_micros),
            method,
            survivors,
            output_bytes: end.output_end,
            capture_error: capture_error(&end),
            cpu: Duration::from_micros(end.cpu_micros),
            max_memory: end.max_memory,
        };
        self.learn(Input::TreeEnded(ended)).await;
    }

    /// Nobody is left to say how the task ends, so it is ended here. A shim that had only just begun
    /// is swept away with the rest.
    async fn sweep_away(&mut self) {
        let file = self.shared.parts.task_dir.open(&self.life.task.id);
        let output_bytes = file.and_then(|file| file.map_or(Ok(0), |file| Ok(file.tail(0)?.end)));
        match (self.sweep(None).await, output_bytes) {
            (Ok(survivors), Ok(output_bytes)) => {
                let detail = "its shim was gone, and left no record of the end".to_owned();
                self.learn(Input::Swept {
                    survivors,
                    detail,
                    output_bytes,
                })
                .await;
            }
            (Err(error), _) | (_, Err(error)) => self.look_again(&error),
        }
    }

    async fn sweep(&self, shim_pid: Option<u32>) -> io::Result<Vec<Survivor>> {
        let cgroup = self.records()?.identity.and_then(|identity| {
            let path = str::from_utf8(identity.cgroup.as_bytes()).ok()?;
            (!path.is_empty()).then(|| path.into())
        });
        let sweep = Sweep {
            uid: self.life.task.uid,
            cgroup,
            shim_pid,
        };
        tokio::task::spawn_blocking(move || sweep.run(SWEEP_WITHIN)).await?
    }
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

/// What a task file's lock says.
enum ShimState {
    Alive,
    Dead,
    NeverWas,
}

fn leader_end(exit: LeaderExit) -> LeaderEnd {
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
        at: Timestamp(exit.time_micros),
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
