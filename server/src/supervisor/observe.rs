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
    /// Takes in whatever the task file has recorded and the task does not know yet.
    pub(super) async fn catch_up(&mut self) {
        let records = match self.records() {
            Ok(records) => records,
            Err(error) => {
                tracing::error!(task = %self.life.task.id, %error, "its task file cannot be read");
                return;
            }
        };
        if let Some(identity) = records.identity {
            self.shim_pid = Some(identity.shim_pid);
        }
        if let (None, Some(start)) = (&self.life.task.started, records.start) {
            self.learn_start(start).await;
        }
        match (records.tree_end, records.leader_exit) {
            (Some(end), leader) => self.learn_end(end, leader).await,
            (None, Some(leader)) if self.life.task.leader_end.is_none() => {
                let output_bytes = leader.output_end;
                self.learn(Input::LeaderExited {
                    end: leader_end(leader),
                    output_bytes,
                })
                .await;
            }
            (None, Some(_) | None) => {}
        }
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
        let shim = self.shim_state();
        self.catch_up().await;
        if !self.life.task.is_live() || self.life.is_over() {
            return;
        }
        match shim {
            ShimState::Alive => match Link::connect(self.life.task.uid) {
                Ok(link) => {
                    self.link = Some(link);
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
    fn shim_state(&self) -> ShimState {
        let task_dir = &self.shared.parts.task_dir;
        let id = &self.life.task.id;
        let state =
            match task_dir.open(id) {
                Ok(Some(file)) => file.is_held().map(|held| match held {
                    true => ShimState::Alive,
                    false => ShimState::Dead,
                }),
                Ok(None) => TaskFile::forestall(&task_dir.path(id)).map(|forestalled| {
                    match forestalled && self.life.task.started.is_none() {
                        true => ShimState::NeverWas,
                        false => ShimState::Dead,
                    }
                }),
                Err(error) => Err(error),
            };
        state.unwrap_or_else(|error| {
            tracing::error!(task = %id, %error, "its task file cannot be used");
            ShimState::Dead
        })
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
            true => self.sweep().await,
            false => Vec::new(),
        };
        let ended = TreeEnded {
            leader: leader.map(leader_end),
            method,
            survivors,
            output_bytes: end.output_end,
            capture_error: capture_error(&end),
            cpu: Duration::from_micros(end.cpu_micros),
            max_memory: end.max_memory,
        };
        self.learn(Input::TreeEnded(ended)).await;
    }

    /// Nobody is left to say how the task ends, so it is ended here.
    async fn sweep_away(&mut self) {
        let survivors = self.sweep().await;
        let end = self
            .shared
            .parts
            .task_dir
            .open(&self.life.task.id)
            .ok()
            .flatten();
        let output_bytes = end
            .and_then(|file| file.tail(0).ok())
            .map_or(0, |tail| tail.end);
        let detail = "its shim was gone, and left no record of the end".to_owned();
        self.learn(Input::Swept {
            survivors,
            detail,
            output_bytes,
        })
        .await;
    }

    async fn sweep(&self) -> Vec<Survivor> {
        let identity = self.records().ok().and_then(|records| records.identity);
        let sweep = Sweep {
            uid: self.life.task.uid,
            cgroup: identity.and_then(|identity| {
                let path = str::from_utf8(identity.cgroup.as_bytes()).ok()?;
                (!path.is_empty()).then(|| path.into())
            }),
            shim_pid: self.shim_pid,
        };
        // The sweep has no way to fail but by a panic, and then nobody is known to be left.
        let swept = tokio::task::spawn_blocking(move || sweep.run(SWEEP_WITHIN)).await;
        swept.unwrap_or_default()
    }
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
