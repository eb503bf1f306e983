//! Facts from the task file, which the shim writes.

use std::{io, path::PathBuf, time::Duration};

use super::{TaskActor, reconcile::SWEEP_ROUND};
use crate::{
    crash,
    process::{
        errno_text,
        task_file::{
            CgroupPath, Exit, Identity, LeaderExit, Limit, LimitCause, Records, Stage, Start,
            TreeEnd,
        },
        tree::{
            self,
            sweep::{SearchedMarks, SweepTarget, Swept},
        },
    },
    supervisor::lifecycle::{Input, TreeEnded},
    task::{
        Command, Containment, Leader, LeaderEnd, Moment, OrphanPolicy, Outcome, OutputLimit,
        OutputLimitCause, Proof, ProofMethod, ProofResult, Signal, SpawnFailure, SpawnStage,
        Started, StartedBy, Survivor, Task, Timestamp,
    },
};

/// The meaning of a leader's exit record without a record of the tree's end. The shim may write the
/// two in one go, where the leader was alone. A living shim reports which case it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaderExitRecord {
    /// Orphans remain: the shim has reported so, or will report nothing any more.
    Apply,
    /// The shim is about to report.
    AwaitReport,
}

/// The shim's word that it has no child left, without which a sweep looks twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Childless {
    Yes,
    No,
}

impl TaskActor {
    /// Applies every record of the task file that the task does not know yet.
    pub(super) async fn read_records(&mut self, leader_exit: LeaderExitRecord) {
        match self.records() {
            Ok(records) => self.apply_records(records, leader_exit).await,
            Err(error) => self.retry_later(&error),
        }
    }

    async fn apply_records(&mut self, records: Records, leader_exit: LeaderExitRecord) {
        self.warn_of_damage(&records);
        if let Some(start) = records
            .start
            .whole()
            .filter(|_| self.life.is_start_awaited())
        {
            self.apply_start(start).await;
            // The other records are those of an attempt that is over.
            if self.life.is_between_attempts() {
                return;
            }
        }
        self.apply_output_limit(&records).await;
        let identity = records.identity.whole();
        match (records.tree_end.whole(), records.leader_exit.whole()) {
            (Some(end), leader) => self.apply_tree_end(end, leader).await,
            (None, Some(exit))
                if leader_exit == LeaderExitRecord::Apply && has_orphans(identity) =>
            {
                crash::point("end.leader-seen");
                let orphans = self.orphans_to_abandon().await;
                self.apply(Input::LeaderExited {
                    end: leader_end(exit),
                    output_bytes: exit.output_end,
                    orphans,
                })
                .await;
            }
            (None, Some(_) | None) => {}
        }
    }

    /// The orphans, where the policy is to abandon them.
    async fn orphans_to_abandon(&self) -> Vec<Survivor> {
        match self.life.task.spec.orphan_policy {
            OrphanPolicy::Abandon => self.processes_below_shim().await,
            OrphanPolicy::Track | OrphanPolicy::Kill => Vec::new(),
        }
    }

    /// Logs the damaged records, once.
    pub(super) fn warn_of_damage(&mut self, records: &Records) {
        let records = records.unreadable();
        if !records.is_empty() && !self.is_damage_logged {
            self.is_damage_logged = true;
            let file = self.shared.parts.task_dir.path(&self.life.task.id);
            let (task, file) = (&self.life.task.id, file.display());
            tracing::warn!(%task, %file, ?records, "records of the task file cannot be read");
        }
    }

    pub(super) fn retry_later(&mut self, error: &io::Error) {
        tracing::error!(task = %self.life.task.id, %error, "cannot use the task file; will retry");
        self.shim.set_unreachable();
    }

    pub(super) async fn start_failed(&mut self, stage: Stage, errno: i32) {
        let failure = spawn_failure(&self.life.task, stage, errno);
        self.apply(Input::SpawnFailed(failure)).await;
    }

    pub(super) fn records(&self) -> io::Result<Records> {
        match self.shared.parts.task_dir.open(&self.life.task.id)? {
            Some(file) => Ok(file.records()?.of_attempt(self.life.task.attempt())),
            None => Ok(Records::default()),
        }
    }

    pub(super) async fn apply_start(&mut self, start: Start) {
        crash::point("spawn.start-seen");
        match start {
            Start::Running {
                pid,
                start_ticks,
                time,
                in_cgroup,
            } => {
                let leader = Leader {
                    pid,
                    start_ticks,
                    containment: match in_cgroup {
                        true => Containment::Cgroup,
                        false => Containment::Subreaper,
                    },
                };
                let started = Started {
                    at: time.into(),
                    by: StartedBy::Leader(leader),
                };
                self.apply(Input::Started(started)).await;
            }
            Start::Failed { stage, errno } => self.start_failed(stage, errno).await,
        }
    }

    /// Applies the limit of the output, if it was reached.
    pub(super) async fn apply_output_limit(&mut self, records: &Records) {
        let limit = records.output.whole().and_then(|state| state.limit);
        if let Some(limit) = limit {
            crash::point("limit.seen");
            self.apply(Input::OutputLimited(output_limit(&limit))).await;
            // The events are recorded one after the other: each has the task as it is after it.
            if limit.kills {
                self.apply(Input::OutputKill).await;
            }
        }
    }

    pub(super) async fn apply_tree_end(&mut self, end: TreeEnd, leader: Option<LeaderExit>) {
        if self.life.is_tree_gone() {
            return;
        }
        let leader = leader.map_or_else(lost_leader, leader_end);
        let is_restarted = self.life.is_restarted_after(&leader, Moment::now());
        let is_stopped = self.life.task.stop.is_some();
        let method = match (end.cgroup_empty, end.abandoned && is_stopped) {
            (true, _) => ProofMethod::CgroupEmpty,
            // The orphans were abandoned before the shim got the stop.
            (false, true) => ProofMethod::Sweep,
            (false, false) => ProofMethod::NoChildren,
        };
        // A stop also looks for processes with the task's marks that are not the shim's descendants: an
        // orphan in a PID namespace that was there before belongs to that one's first process. Orphans
        // of a task that is not being stopped stay alone, unless it is restarted.
        if is_stopped || is_restarted {
            let marks = match end.cgroup_empty {
                true => SearchedMarks::LimitTag,
                false => SearchedMarks::Both,
            };
            let childless = match end.abandoned {
                true => Childless::No,
                false => Childless::Yes,
            };
            match self.sweep_after_shim(marks, childless).await {
                Ok(Swept::Gone { .. }) => {}
                Ok(Swept::NotGone(survivors)) => return self.retry_sweep(survivors).await,
                Err(error) => return self.retry_later(&error),
            }
        }
        self.finish_matching(end.output_end).await;
        crash::point("end.seen");
        let ended = TreeEnded {
            leader: Some(leader),
            at: Moment::from(end.time).wall,
            proof: ProofResult::Proven(method),
            output_bytes: end.output_end,
            capture_error: capture_error(&end),
            abandoned: end.abandoned,
            cpu: Duration::from_micros(end.cpu_micros),
            max_memory: end.max_memory,
        };
        self.apply(Input::TreeEnded(ended)).await;
    }

    /// The proof that the tree is gone, while a living shim cannot record it; none if it is not gone.
    pub(super) async fn proof_without_record(&self) -> Option<Proof> {
        // A shim without a child may be about to start the leader.
        self.life.task.started.as_ref()?;
        let shim = self.shim_process().filter(|_| self.shim.is_connected())?;
        if !shim.is_childless() {
            return None;
        }
        match self
            .sweep_after_shim(SearchedMarks::Both, Childless::Yes)
            .await
        {
            Ok(Swept::Gone { .. }) if shim.is_childless() => {
                Some(Proof::proven(ProofMethod::NoChildren, Timestamp::now()))
            }
            Ok(Swept::Gone { .. } | Swept::NotGone(_)) | Err(_) => None,
        }
    }

    /// Kills marked processes that the shim cannot know.
    async fn sweep_after_shim(
        &self,
        marks: SearchedMarks,
        childless: Childless,
    ) -> io::Result<Swept> {
        let identity = self.records()?.identity.whole();
        let spared = match childless {
            Childless::Yes => identity.map(|identity| identity.shim_pid),
            Childless::No => None,
        };
        let sweep = SweepTarget {
            uid: self.life.task.uid,
            cgroup: identity.and_then(|identity| cgroup_path(&identity.cgroup)),
            leader: None,
            spared,
        };
        let sweeper = &self.shared.sweeper;
        sweeper.sweep_by(&sweep, marks, SWEEP_ROUND).await
    }
}

/// False if the shim has no child: a cgroup may count a process for a moment after its end, and the
/// shim waits for that before it records the tree's end.
fn has_orphans(shim: Option<Identity>) -> bool {
    shim.is_none_or(|shim| tree::has_children(shim.shim_pid as i32))
}

/// The cgroup of a record; `None` if there was none.
pub(in crate::supervisor) fn cgroup_path(cgroup: &CgroupPath) -> Option<PathBuf> {
    let path = str::from_utf8(cgroup.as_bytes()).ok()?;
    (!path.is_empty()).then(|| path.into())
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
        at: exit.time.into(),
    }
}

/// The end of a leader whose exit record is damaged, while that of the tree's end is not.
fn lost_leader() -> LeaderEnd {
    let outcome = Outcome::Unknown("the record of its exit cannot be read".to_owned());
    LeaderEnd {
        outcome,
        at: Moment::now(),
    }
}

fn output_limit(limit: &Limit) -> OutputLimit {
    OutputLimit {
        cause: match limit.cause {
            LimitCause::Policy => OutputLimitCause::Policy,
            LimitCause::ServerBudget => OutputLimitCause::ServerBudget,
        },
        at: Moment::from(limit.time).wall,
        offset: limit.offset,
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
    let no_path = String::new;
    let (stage, path) = match stage {
        Stage::TaskFile => (SpawnStage::TaskFile, no_path()),
        Stage::Prepare => (SpawnStage::Pipes, no_path()),
        Stage::Clone => (SpawnStage::Process, no_path()),
        Stage::WorkingDirectory => {
            let directory = task.spec.working_directory.display();
            (SpawnStage::WorkingDirectory, directory.to_string())
        }
        Stage::Arrange => (SpawnStage::Descriptors, no_path()),
        Stage::Exec => (SpawnStage::Exec, program(&task.spec.command)),
    };
    SpawnFailure {
        stage,
        path,
        message: errno_text(errno).to_owned(),
        errno,
    }
}

/// The program that a command names; empty for the default shell.
fn program(command: &Command) -> String {
    match command {
        Command::Argv(argv) => argv.first().cloned().unwrap_or_default(),
        Command::Shell { program, .. } => {
            let program = program.as_ref().map(|path| path.display().to_string());
            program.unwrap_or_default()
        }
        Command::Hosted { .. } => String::new(),
    }
}
