//! What an actor does when it has no link to its shim: after a crash of an earlier server, and
//! whenever a link breaks. It looks, asks which case it is, and acts; it may be killed at any point
//! and begin again, for whatever it has done by then only makes the next look simpler.

use std::{
    io,
    time::{Duration, Instant},
};

use super::{
    actor::{KILL_WITHIN, Patience, TaskActor},
    case::{Birth, Boot, Case, Hindrance, Lock, Loss, Remains, Seen, Trace, classify},
    lifecycle::{Input, StopOrder},
    observe::leader_end,
};
use crate::{
    crash,
    process::{
        BootId, boot_time, containment,
        shim::ShimLink,
        task_file::{CgroupPath, FileState, LeaderExit, Records, Start, TaskFile},
        tree::sweep::{LeaderId, SweepTarget, Swept},
    },
    task::{LeaderEnd, Outcome, Placement, ProofMethod, SpawnFailure, Survivor, Timestamp},
};

/// How long a sweep goes on before the actor hears others again; then it goes on.
const SWEEP_ROUND: Duration = Duration::from_secs(1);

/// What was seen, and what it means.
struct Finding {
    case: Case,
    sweep: SweepTarget,
    records: Box<Records>,
    output_bytes: u64,
}

impl TaskActor {
    /// There is no link: the shim has ended, was killed, has dropped us for being slow, or has not
    /// been called yet.
    pub(super) async fn shim_gone(&mut self) {
        self.link = None;
        self.unreachable = false;
        if !self.life.task.is_live() || self.life.is_over() {
            return;
        }
        match self.find_out().await {
            Ok(finding) => self.act(finding).await,
            Err(error) => self.look_again(&error),
        }
    }

    /// Every case there is, and what is done about it.
    async fn act(&mut self, finding: Finding) {
        if let Some(identity) = finding.records.identity.whole() {
            self.shim_pid = Some(identity.shim_pid);
        }
        if let Some(start @ Start::Running { .. }) = finding.records.start.whole() {
            self.learn_start(start).await;
        }
        let output_bytes = finding.output_bytes;
        match finding.case {
            Case::Ended { end, leader } => self.learn_end(end, leader).await,
            Case::StartFailed { stage, errno } => self.cannot_start(stage, errno).await,
            Case::ShimAlive => self.call().await,
            Case::NeverBegan(Hindrance::Forestalled) if std::mem::take(&mut self.unlaunched) => {
                self.launch_again().await;
            }
            Case::NeverBegan(hindrance) => {
                self.learn(Input::SpawnFailed(not_begun(hindrance))).await;
            }
            Case::TreeAlive { leader, loss } => {
                self.stop_unwatched(&finding.sweep, leader, loss, output_bytes)
                    .await;
            }
            Case::NothingLeft { leader, loss } => {
                if let Some(cgroup) = &finding.sweep.cgroup {
                    containment::remove_tree(cgroup);
                }
                let lost = lost(loss, "and left no record of the end");
                self.end_unseen(leader, lost, ProofMethod::Sweep, output_bytes)
                    .await;
            }
            Case::AnotherBoot { leader } => {
                let lost = "the machine was restarted while it ran".to_owned();
                self.end_unseen(leader, lost, ProofMethod::Reboot, output_bytes)
                    .await;
            }
        }
    }

    /// Whether the shim lives is asked before what it wrote: a dead one writes no more. Processes
    /// are looked at only where the records do not say enough.
    async fn find_out(&mut self) -> io::Result<Finding> {
        let task = &self.life.task;
        let birth = match task.started {
            Some(_) => Birth::Known,
            None => Birth::Unknown,
        };
        let (file, output_bytes) = self.trace()?;
        let records = match &file {
            Trace::Own { records, .. } => records.clone(),
            Trace::NotAFile | Trace::AnotherTasks => Box::default(),
        };
        self.tell_damage(&records);
        let sweep = self.remains(&file);
        let mut seen = Seen {
            file,
            tree: Remains::Unsought,
        };
        let case = loop {
            if let Some(case) = classify(birth, &seen) {
                break case;
            }
            seen.tree = match self.shared.sweeper.count(&sweep).await? {
                0 => Remains::Nobody,
                _ => Remains::Somebody,
            };
        };
        Ok(Finding {
            case,
            sweep,
            records,
            output_bytes,
        })
    }

    /// What is where the task file should be, and how much output it has. An empty place is taken,
    /// so that a shim which is only about to begin starts nothing.
    fn trace(&self) -> io::Result<(Trace, u64)> {
        let (lock, file): (Lock, TaskFile) =
            match self.shared.parts.task_dir.claim(&self.life.task.id)? {
                FileState::Locked(file) => (Lock::Held, file),
                FileState::Unlocked(file) => (Lock::Free, file),
                FileState::NotAFile => return Ok((Trace::NotAFile, 0)),
            };
        let records = Box::new(file.records()?);
        let own = self.life.task.uid.as_bytes();
        if records
            .identity
            .whole()
            .is_some_and(|identity| identity.task_uid != *own)
        {
            return Ok((Trace::AnotherTasks, 0));
        }
        let output_bytes = match lock {
            Lock::Held => 0,
            Lock::Free => file.tail(0)?.end,
        };
        let boot = match Boot::of(&records, BootId::current()?) {
            // A file that a power cut has emptied does not say so; the task's own time does.
            Boot::Unknown if self.begun_by() < boot_time() => Boot::Another,
            boot @ (Boot::This | Boot::Another | Boot::Unknown) => boot,
        };
        let own = Trace::Own {
            lock,
            boot,
            records,
        };
        Ok((own, output_bytes))
    }

    /// Before this, it cannot have begun.
    fn begun_by(&self) -> Timestamp {
        let task = &self.life.task;
        let queued = task.queued.as_ref();
        queued
            .and_then(|queued| queued.admitted)
            .unwrap_or(task.created)
    }

    /// Where the processes of the task would be. Numbers are of use within one boot only; names are
    /// the task's own in any.
    fn remains(&self, file: &Trace) -> SweepTarget {
        let task = &self.life.task;
        let (cgroup, boot, start) = match file {
            Trace::Own { boot, records, .. } => {
                let start = records.start.whole();
                let cgroup = records.identity.whole().map(|identity| match start {
                    Some(Start::Running {
                        in_cgroup: false, ..
                    }) => CgroupPath::NONE,
                    Some(_) | None => identity.cgroup,
                });
                (cgroup, *boot, start)
            }
            Trace::NotAFile | Trace::AnotherTasks => (None, Boot::Unknown, None),
        };
        let recorded = match start {
            Some(Start::Running {
                pid, start_ticks, ..
            }) => Some(LeaderId { pid, start_ticks }),
            Some(Start::Failed { .. }) | None => None,
        };
        let known = task.started.as_ref().map(|started| LeaderId {
            pid: started.pid,
            start_ticks: started.start_ticks,
        });
        SweepTarget {
            uid: task.uid,
            cgroup: match cgroup {
                Some(cgroup) => super::observe::cgroup_path(&cgroup),
                None => self.shared.parts.containment.leaf(&task.id),
            },
            leader: recorded.or(known).filter(|_| boot == Boot::This),
            spared: None,
        }
    }

    async fn call(&mut self) {
        match ShimLink::connect(self.life.task.uid) {
            Ok(link) => {
                self.reached(link);
                self.order_again().await;
            }
            // It is about to listen, or about to end; or it cannot be reached from here.
            Err(_) => self.unreachable = true,
        }
    }

    /// What went to a link that broke, or was ordered by a server that is gone, may not have been
    /// heard.
    async fn order_again(&mut self) {
        match self.life.order() {
            Some(StopOrder::Ask(signal)) => self.signal(signal).await,
            Some(StopOrder::Kill) => self.kill().await,
            Some(StopOrder::Abandon) => self.abandon_orphans().await,
            None => {}
        }
        let task = &self.life.task;
        if task.spec.rules.foreground.is_some() && task.placement() == Placement::Background {
            self.spill().await;
        }
        if self.life.task.stale.is_some() {
            self.listen().await;
        }
    }

    /// A tree without its shim is stopped: its output goes nowhere, and nobody would see its end.
    /// How its leader ends after that is our doing, and says nothing of the task.
    async fn stop_unwatched(
        &mut self,
        sweep: &SweepTarget,
        leader: Option<LeaderExit>,
        loss: Loss,
        output_bytes: u64,
    ) {
        if let Some(exit) = leader {
            let end = leader_end(exit);
            let output_bytes = exit.output_end;
            self.learn(Input::LeaderExited {
                end,
                output_bytes,
                others: Vec::new(),
            })
            .await;
        }
        match self.shared.sweeper.sweep(sweep, SWEEP_ROUND).await {
            Ok(Swept::Gone { found }) => {
                let then = format!("and {found} of its processes, which lived on, were killed");
                self.end_unseen(leader, lost(loss, &then), ProofMethod::Sweep, output_bytes)
                    .await;
            }
            Ok(Swept::NotGone(survivors)) => self.not_gone_yet(survivors).await,
            Err(error) => self.look_again(&error),
        }
    }

    /// A task is not over while it is known to live. It is tried again, and told when that takes too
    /// long.
    pub(super) async fn not_gone_yet(&mut self, survivors: Vec<Survivor>) {
        self.unreachable = true;
        let since = match self.patience {
            Patience::Whole => Instant::now(),
            Patience::Since(since) => since,
            Patience::Over => return,
        };
        self.patience = Patience::Since(since);
        if since.elapsed() >= KILL_WITHIN {
            self.patience = Patience::Over;
            tracing::error!(task = %self.life.task.id, ?survivors, "cannot be killed yet");
            self.learn(Input::KillOverdue(survivors)).await;
        }
    }

    async fn end_unseen(
        &mut self,
        leader: Option<LeaderExit>,
        lost: String,
        method: ProofMethod,
        output_bytes: u64,
    ) {
        crash::point("end.swept");
        let unknown = || LeaderEnd {
            outcome: Outcome::Unknown(lost),
            at: Timestamp::now(),
        };
        let end = leader.map_or_else(unknown, leader_end);
        self.learn(Input::Unseen {
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
        Loss::FileOfAnother => "its task file was another task's",
        Loss::NoFile => "its task file was replaced by something else",
    };
    format!("{what}, {then}")
}

fn not_begun(hindrance: Hindrance) -> SpawnFailure {
    let (operation, message) = match hindrance {
        Hindrance::Forestalled => ("start its shim", "the shim ended before it began"),
        Hindrance::PlaceTaken => ("make its task file", "something else is in its place"),
    };
    SpawnFailure {
        operation: operation.to_owned(),
        message: message.to_owned(),
        errno: 0,
    }
}
