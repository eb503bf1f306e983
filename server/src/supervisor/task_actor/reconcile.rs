//! A task without a connection to its shim, after a crash of an earlier server or a broken connection:
//! the actor looks at the task file and the processes, lets `case` decide what is true, and acts.
//!
//! It may be killed at any point and start again: every step it has taken makes the next look simpler.

use std::{
    io,
    time::{Duration, Instant},
};

use super::{TaskActor, cgroup_path, is_admitted_and_not_started, records::leader_end};
use crate::{
    crash,
    process::{
        BootId, boot_time, containment,
        shim::ShimLink,
        task_file::{CgroupPath, FileState, LeaderExit, Records, Start},
        tree::sweep::{LeaderId, SweepTarget, Swept},
    },
    supervisor::{
        lifecycle::case::{
            Boot, Case, FileSeen, Lock, Loss, NotStarted, Seen, StartKnown, Tree, classify,
        },
        lifecycle::{Input, KILL_DEADLINE},
    },
    task::{
        LeaderEnd, Moment, Outcome, ProofMethod, SpawnFailure, SpawnStage, Started, Survivor,
        Timestamp,
    },
};

/// The longest sweep before the actor handles other events again.
pub(super) const SWEEP_ROUND: Duration = Duration::from_secs(1);

const NO_RECORD: &str = "and left no record of the end";

/// The kill deadline of a sweep, which may take many rounds.
#[derive(Debug, Clone, Copy)]
pub(super) enum SweepDeadline {
    NotStarted,
    At(Instant),
    /// The deadline has passed and the survivors were named.
    Reported,
}

/// A case, with the facts that it was decided by.
struct Finding {
    case: Case,
    sweep: SweepTarget,
    records: Box<Records>,
    output_bytes: u64,
}

impl TaskActor {
    /// Takes over a task of an earlier server.
    pub(super) async fn take_over(&mut self) {
        if self.life.task.is_waiting() {
            // The tasks that it replaces may not have been asked to stop.
            self.stop_replaced_tasks();
        } else if self.life.task.is_hosted() {
            self.take_over_hosted().await;
        } else {
            self.is_launch_uncertain =
                self.prepared.is_some() || is_admitted_and_not_started(&self.life.task);
            self.reconcile().await;
        }
        if self.life.awaits_children() {
            self.stop_children();
        }
    }

    /// Finds out what became of the task, and acts on it.
    pub(super) async fn reconcile(&mut self) {
        if self.shim.is_connected() {
            drop(self.shim.close());
        }
        if !self.life.is_tree_gone() {
            match self.look().await {
                Ok(finding) => self.act_on(finding).await,
                Err(error) => self.retry_later(&error),
            }
        }
        if self.life.is_tree_gone() {
            drop(self.shim.close());
        }
    }

    async fn act_on(&mut self, finding: Finding) {
        if let Some(start @ Start::Running { .. }) = finding.records.start.whole() {
            self.apply_start(start).await;
        }
        self.apply_output_limit(&finding.records).await;
        let output_bytes = finding.output_bytes;
        match finding.case {
            Case::Ended { end, leader } => {
                self.apply_tree_end(end, leader).await;
                self.find_kept_shim();
            }
            Case::StartFailed { stage, errno } => {
                self.start_failed(stage, errno).await;
                self.find_kept_shim();
            }
            Case::ShimAlive => {
                self.is_of_this_boot = true;
                let stored = self.stored_output();
                self.shared.output_budget.set(&self.life.task.id, stored);
                self.connect().await;
            }
            Case::NeverStarted(NotStarted::Prevented)
                if self.is_launch_uncertain && self.life.task.stop.is_none() =>
            {
                self.launch_once_more().await;
            }
            Case::NeverStarted(reason) => {
                self.kill_late_shim();
                self.apply(Input::SpawnFailed(not_started(reason))).await;
            }
            Case::TreeAlive { leader, loss } => {
                self.is_of_this_boot = true;
                self.stop_unwatched(&finding.sweep, leader, loss, output_bytes)
                    .await;
            }
            Case::NothingLeft { leader, loss } => {
                if let Some(cgroup) = &finding.sweep.cgroup {
                    containment::remove_tree(cgroup);
                }
                let lost = lost(loss, NO_RECORD);
                self.end_unobserved(leader, lost, ProofMethod::Sweep, output_bytes)
                    .await;
            }
            Case::AnotherBoot { leader } => {
                let lost = "the machine was restarted while it ran".to_owned();
                self.end_unobserved(leader, lost, ProofMethod::Reboot, output_bytes)
                    .await;
            }
        }
    }

    /// Looks at a task again whose attempt was found to be over: its shim keeps it, or is gone.
    fn find_kept_shim(&mut self) {
        if self.life.is_between_attempts() && !self.shim.is_connected() {
            self.shim.set_unreachable();
        }
    }

    /// The lock is looked at before the records: a dead shim writes no more. Processes are looked for
    /// only where the records do not decide the case.
    async fn look(&mut self) -> io::Result<Finding> {
        let start = match self.life.task.started {
            Some(_) => StartKnown::Yes,
            None => StartKnown::No,
        };
        let (file, output_bytes) = self.file_state()?;
        let records = match &file {
            FileSeen::Own { records, .. } => records.clone(),
            FileSeen::NotAFile | FileSeen::OfAnotherTask => Box::default(),
        };
        self.warn_of_damage(&records);
        let sweep = self.sweep_for(&file);
        self.cgroup.clone_from(&sweep.cgroup);
        self.note_shim(&file);
        let mut seen = Seen {
            file,
            tree: Tree::NotLookedFor,
        };
        let case = loop {
            if let Some(case) = classify(start, &seen) {
                break case;
            }
            seen.tree = Tree::of_size(self.shared.sweeper.count(&sweep).await?);
        };
        Ok(Finding {
            case,
            sweep,
            records,
            output_bytes,
        })
    }

    /// The state of the task file, and the size of its output. An empty place is claimed, so that a
    /// shim that is about to start finds it taken and starts nothing.
    fn file_state(&self) -> io::Result<(FileSeen, u64)> {
        let task = &self.life.task;
        let claimed = match self.shared.parts.task_dir.claim(&task.id) {
            // The whole directory was removed. A shim may have made the file before, so without a known
            // start the processes decide.
            Err(error) if error.kind() == io::ErrorKind::NotFound => match task.started {
                Some(_) => None,
                None => return Ok((FileSeen::NotAFile, 0)),
            },
            claimed => Some(claimed?),
        };
        let (lock, file) = match claimed {
            Some(FileState::Locked(file)) => (Lock::Held, Some(file)),
            Some(FileState::Unlocked(file)) => (Lock::Free, Some(file)),
            Some(FileState::NotAFile) => return Ok((FileSeen::NotAFile, 0)),
            None => (Lock::Free, None),
        };
        let records = match &file {
            Some(file) => Box::new(file.records()?.of_attempt(task.attempt())),
            None => Box::default(),
        };
        let identity = records.identity.whole();
        if identity.is_some_and(|identity| identity.task_uid != *task.uid.as_bytes()) {
            return Ok((FileSeen::OfAnotherTask, 0));
        }
        let output_bytes = match (lock, file) {
            (Lock::Free, Some(file)) => file.tail(0)?.end,
            (Lock::Held, _) | (Lock::Free, None) => 0,
        };
        let boot = match Boot::of(&records, BootId::current()?) {
            // A power cut may have emptied the file; the task's own time still tells.
            Boot::Unknown if self.earliest_start() < boot_time() => Boot::Another,
            boot @ (Boot::This | Boot::Another | Boot::Unknown) => boot,
        };
        let own = FileSeen::Own {
            lock,
            boot,
            records,
        };
        Ok((own, output_bytes))
    }

    /// Notes the process of the shim. One that has had the task and released its file may have another
    /// task by now; one that has not identified itself is known from its launch.
    fn note_shim(&mut self, file: &FileSeen) {
        let FileSeen::Own { lock, records, .. } = file else {
            return;
        };
        match (lock, records.identity.whole()) {
            (Lock::Held, Some(identity)) => self.set_shim_process(Some(identity.into())),
            (Lock::Free, Some(_)) => self.set_shim_process(None),
            (Lock::Held | Lock::Free, None) => {}
        }
    }

    /// The time before which the task cannot have started.
    fn earliest_start(&self) -> Timestamp {
        let task = &self.life.task;
        let queued = task.queued.as_ref();
        queued
            .and_then(|queued| queued.admitted)
            .unwrap_or(task.created)
    }

    /// The places to look for processes of the task. Pids are valid within one boot only.
    fn sweep_for(&self, file: &FileSeen) -> SweepTarget {
        let task = &self.life.task;
        let (cgroup, boot, start) = match file {
            FileSeen::Own { boot, records, .. } => {
                let start = records.start.whole();
                let cgroup = records.identity.whole().map(|identity| match start {
                    Some(Start::Running {
                        in_cgroup: false, ..
                    }) => CgroupPath::NONE,
                    Some(_) | None => identity.cgroup,
                });
                (cgroup, *boot, start)
            }
            FileSeen::NotAFile | FileSeen::OfAnotherTask => (None, Boot::Unknown, None),
        };
        let recorded = match start {
            Some(Start::Running {
                pid, start_ticks, ..
            }) => Some(LeaderId { pid, start_ticks }),
            Some(Start::Failed { .. }) | None => None,
        };
        let known = task.started.as_ref().and_then(Started::leader);
        let known = known.map(|leader| LeaderId {
            pid: leader.pid,
            start_ticks: leader.start_ticks,
        });
        SweepTarget {
            uid: task.uid,
            cgroup: match cgroup {
                Some(cgroup) => cgroup_path(&cgroup),
                None => self.shared.parts.containment.leaf(&task.id),
            },
            leader: recorded.or(known).filter(|_| boot == Boot::This),
            spared: None,
        }
    }

    async fn connect(&mut self) {
        match ShimLink::connect(self.life.task.uid).await {
            Ok(link) => {
                self.use_link(link).await;
                self.resend_orders().await;
            }
            // The shim is about to listen, about to exit, or in another network namespace.
            Err(_) => self.shim.set_unreachable(),
        }
    }

    /// Kills a tree that has lost its shim: its output is captured no more, and its end would not be
    /// seen. The kill says nothing about the task, so the leader's outcome is unknown.
    async fn stop_unwatched(
        &mut self,
        sweep: &SweepTarget,
        leader: Option<LeaderExit>,
        loss: Loss,
        output_bytes: u64,
    ) {
        if let Some(exit) = leader {
            self.apply(Input::LeaderExited {
                end: leader_end(exit),
                output_bytes: exit.output_end,
                orphans: Vec::new(),
            })
            .await;
        }
        match self.shared.sweeper.sweep(sweep, SWEEP_ROUND).await {
            Ok(Swept::Gone { found }) => {
                let then = match found {
                    0 => NO_RECORD.to_owned(),
                    1 => "and 1 of its processes, which lived on, was killed".to_owned(),
                    _ => format!("and {found} of its processes, which lived on, were killed"),
                };
                self.end_unobserved(leader, lost(loss, &then), ProofMethod::Sweep, output_bytes)
                    .await;
            }
            Ok(Swept::NotGone(survivors)) => self.retry_sweep(survivors).await,
            Err(error) => self.retry_later(&error),
        }
    }

    /// Schedules another sweep of a tree that is not empty, and names the survivors at the deadline.
    pub(super) async fn retry_sweep(&mut self, survivors: Vec<Survivor>) {
        self.shim.set_unreachable();
        let now = Instant::now();
        match self.sweep_deadline {
            SweepDeadline::NotStarted => {
                // The first round is over.
                self.sweep_deadline = SweepDeadline::At(now + KILL_DEADLINE - SWEEP_ROUND);
            }
            SweepDeadline::At(deadline) if now >= deadline => {
                self.sweep_deadline = SweepDeadline::Reported;
                let task = &self.life.task.id;
                tracing::error!(%task, ?survivors, "kill is overdue; still trying");
                self.apply(Input::KillOverdue(survivors)).await;
            }
            SweepDeadline::At(_) | SweepDeadline::Reported => {}
        }
    }

    async fn end_unobserved(
        &mut self,
        leader: Option<LeaderExit>,
        lost: String,
        method: ProofMethod,
        output_bytes: u64,
    ) {
        self.finish_matching(output_bytes).await;
        crash::point("end.swept");
        let unknown = || LeaderEnd {
            outcome: Outcome::Unknown(lost),
            at: Moment::now(),
        };
        let end = leader.map_or_else(unknown, leader_end);
        self.apply(Input::EndedUnobserved {
            end,
            method,
            output_bytes,
        })
        .await;
    }
}

fn lost(loss: Loss, then: &str) -> String {
    let what = match loss {
        Loss::ShimDied => "its shim was gone",
        Loss::FileGone => "its task file was gone",
        Loss::FileOfAnotherTask => "its task file was another task's",
        Loss::NotAFile => "its task file was replaced by something else",
    };
    format!("{what}, {then}")
}

fn not_started(reason: NotStarted) -> SpawnFailure {
    let (stage, message) = match reason {
        NotStarted::Prevented => (
            SpawnStage::Shim,
            "the shim exited before it started the leader",
        ),
        NotStarted::PlaceTaken => (
            SpawnStage::TaskFile,
            "another file is at the path of the task file",
        ),
    };
    SpawnFailure {
        stage,
        path: String::new(),
        message: message.to_owned(),
        errno: 0,
    }
}
