//! A running task, up to the end of its tree, or of its leader if the orphans are abandoned.
//!
//! The loop waits for five descriptors, handles each that is ready, and then settles the new facts:
//! output first, then wait statuses, then records, then reports.

use heeler_shim::{
    record::{LeaderExit, TreeEnd},
    wire::{AfterTask, Order, Report},
};

use super::{
    cgroup::Cgroup,
    connection::Connection,
    leader::Leader,
    task_file::{Fact, TaskFile},
};
use crate::program::{
    clock::{self, Moment},
    output::{capture::Capture, limits::News},
    sys::{
        Fd, file,
        signals::{self, Poll, Timeout},
    },
    tree::{
        kill::Kill,
        pace::{Pace, STORM},
        reaper::Reaper,
        signal,
    },
};

/// The silence after which the memory of a burst of output is given back.
const IDLE_MILLIS: u64 = 1000;
/// The pause before a record that the disk refused is tried again.
const RETRY_MILLIS: u64 = 1000;
/// The interval of looks for the end of the tree while the kernel reaps and sends no signal.
const UNSIGNALLED_MILLIS: u64 = 10;
/// The number of checks, a millisecond apart, of a cgroup that should be empty and is not: a member may
/// count for a moment after it was reaped.
const CGROUP_CHECKS: u32 = 20;
/// The most orders handled in one wake-up.
const ORDERS: usize = 8;
/// The time after which a kill for the output's limit is overdue.
const KILL_MILLIS: u64 = 10_000;

/// The supervision of a task whose leader was started.
pub(super) struct Supervision<'a> {
    child_signals: &'a Fd,
    connection: &'a mut Connection,
    file: TaskFile,
    capture: Capture<'a>,
    tree: Reaper,
    cgroup: Option<Cgroup<'a>>,
    /// The number of times the cgroup was populated after the last child was reaped.
    cgroup_checks: u32,
    /// The time from which on a record that the disk refuses is reported again.
    next_refusal: Moment,
    /// There may be children to reap.
    child_ended: bool,
    kill: Option<Kill>,
    orphans: Orphans,
    pace: Pace,
}

/// The treatment of processes that outlive the leader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Orphans {
    /// The end waits for them.
    Awaited,
    /// The task ends with its leader.
    Abandoned,
}

/// The way in which a task has ended.
#[derive(Clone, Copy)]
enum Finish {
    /// No process is left.
    Empty,
    /// The leader has exited, and the orphans are abandoned.
    Abandoned,
}

/// The result of a supervision.
pub(super) struct End {
    /// The shim's next step, as reported to the server.
    pub(super) after: AfterTask,
    /// CPU time of all reaped processes.
    pub(super) cpu_micros: u64,
}

impl<'a> Supervision<'a> {
    pub(super) fn new(
        child_signals: &'a Fd,
        connection: &'a mut Connection,
        file: TaskFile,
        leader: Leader<'a>,
        capture: Capture<'a>,
    ) -> Self {
        Self {
            child_signals,
            connection,
            file,
            capture,
            tree: Reaper::new(leader.pid),
            cgroup: leader.cgroup,
            cgroup_checks: 0,
            next_refusal: Moment::now(),
            child_ended: false,
            kill: None,
            orphans: Orphans::Awaited,
            pace: Pace::Normal,
        }
    }

    /// Runs until the task has ended.
    pub(super) fn run(mut self) -> End {
        let mut timeout = Timeout::Never;
        loop {
            let after = self.settle();
            if self.file.tree_end.is_written() {
                let cpu_micros = self.tree.cpu_micros();
                return End { after, cpu_micros };
            }
            let idle = self.timeout();
            self.wait(timeout.min(idle).min(self.connection.timeout()));
            timeout = self.reap_or_kill();
        }
    }

    /// The longest wait that misses nothing.
    fn timeout(&mut self) -> Timeout {
        let is_end_unknown = self.file.tree_end.is_unknown();
        if self.tree.awaits_status() || (self.tree.is_empty() && is_end_unknown) {
            Timeout::Millis(1)
        } else if self.tree.has_more() {
            Timeout::Millis(0)
        } else if self.tree.is_left_to_kernel() {
            Timeout::Millis(UNSIGNALLED_MILLIS)
        } else if self.file.is_due() || self.capture.is_due_on_disk() {
            Timeout::Millis(RETRY_MILLIS)
        } else if self.has_idle_work() || self.pace.is_hurried() {
            Timeout::Millis(IDLE_MILLIS)
        } else {
            Timeout::Never
        }
    }

    /// Waits for events and handles them.
    fn wait(&mut self, timeout: Timeout) {
        let [stdout, stderr] = self.capture.polls();
        let [next_server, order] = self.connection.polls();
        let child = Poll::new(Some(self.child_signals));
        let mut polls = [child, stdout, stderr, next_server, order];
        if !signals::poll(&mut polls, timeout) {
            if timeout >= Timeout::Millis(IDLE_MILLIS) {
                self.capture.release_memory();
                self.capture.writer().settle(self.file.fd());
            }
            return;
        }
        let [child, stdout, stderr, next_server, order] = polls;
        self.capture.read_ready(&[stdout, stderr], self.file.fd());
        self.report_output();
        if child.is_ready() {
            // One signal stands for any number of ended children.
            let _ = file::read(self.child_signals, &mut [0; 128]);
            self.child_ended = true;
        }
        if order.is_ready() {
            self.obey();
        }
        if next_server.is_ready() {
            self.connection.accept(self.file.hints());
        }
    }

    fn obey(&mut self) {
        for _ in 0..ORDERS {
            let Some(order) = self.connection.receive() else {
                return;
            };
            match order {
                // There is a task already, and the bytes behind a Begin are not orders.
                Order::Begin { .. } => self.connection.close(),
                Order::Signal { number } => {
                    self.await_orphans();
                    self.signal(number);
                }
                Order::Kill { within_millis } => self.begin_kill(within_millis),
                Order::Follow { beyond } => {
                    self.connection.follow(beyond);
                    self.connection.report_output(self.capture.end());
                }
                Order::Spill => self.capture.writer().spill(self.file.fd()),
                Order::Abandon => self.abandon_orphans(),
                Order::LimitOutput { bytes } => self.limit_output(bytes),
            }
        }
    }

    fn begin_kill(&mut self, within_millis: u64) {
        self.await_orphans();
        let cgroup = self.cgroup.as_ref();
        self.kill = Some(Kill::begin(within_millis, cgroup, &self.tree, &self.pace));
    }

    /// Reports new output, and acts on its limit: the kill needs no server.
    fn report_output(&mut self) {
        self.connection.report_output(self.capture.end());
        match self.capture.writer().take_news() {
            News::None => {}
            News::LimitReached => self.connection.send([Some(Report::OutputLimit)]),
            News::KillDue => {
                self.connection.send([Some(Report::OutputLimit)]);
                if self.kill.is_none() {
                    self.begin_kill(KILL_MILLIS);
                }
            }
        }
        self.connection
            .report_stored(self.capture.writer().stored());
    }

    fn limit_output(&mut self, bytes: u64) {
        self.capture.writer().limit(bytes, self.file.fd());
        self.connection.forget_stored();
        self.report_output();
    }

    /// Returns whether there is work for a silence.
    fn has_idle_work(&mut self) -> bool {
        self.capture.has_memory_to_release() || self.capture.writer().is_behind()
    }

    /// A task that is being stopped does not abandon its orphans, unless it already has.
    fn await_orphans(&mut self) {
        if self.file.tree_end.is_unknown() {
            self.orphans = Orphans::Awaited;
        }
    }

    fn abandon_orphans(&mut self) {
        if self.kill.is_none() {
            self.orphans = Orphans::Abandoned;
        }
    }

    fn signal(&mut self, number: i32) {
        let processes = signal::send(number, &self.tree, self.capture.scratch());
        let time_micros = clock::stamp().wall_micros;
        self.connection.send([Some(Report::Signalled {
            number,
            processes,
            time_micros,
        })]);
    }

    /// Reaps children and continues a kill; returns when the kill wants to continue.
    fn reap_or_kill(&mut self) -> Timeout {
        let Some(kill) = &mut self.kill else {
            if self.child_ended || self.tree.has_more() || self.tree.is_left_to_kernel() {
                self.child_ended = false;
                if self.tree.reap(drop) >= STORM {
                    self.begin_storm();
                }
            }
            if self.pace.is_storm_over() {
                self.pace.relax();
                // If the storm goes on, this shows it.
                self.tree.take_back();
            }
            return Timeout::Never;
        };
        let timeout = kill.proceed(&mut self.tree, &mut self.pace, self.capture.scratch());
        if kill.take_overdue() {
            self.connection.send([Some(Report::Overdue)]);
        }
        timeout
    }

    fn begin_storm(&mut self) {
        self.pace.hurry();
        self.tree.leave_to_kernel();
        self.connection.send([Some(Report::Storm)]);
    }

    /// Records and reports the new facts; returns the shim's next step if the task has ended.
    fn settle(&mut self) -> AfterTask {
        let exited = self
            .tree
            .leader_exit()
            .filter(|_| self.file.leader_exit.is_unknown());
        let finish = self.finish();
        if exited.is_some() || finish.is_some() {
            self.capture.drain(self.file.fd());
            self.capture.writer().settle(self.file.fd());
            self.report_output();
        }
        if self.capture.is_due_on_disk() {
            self.capture.writer().spill(self.file.fd());
        }
        if let Some((exit, time)) = exited {
            let output_end = self.capture.end();
            self.file.leader_exit = Fact::Due(LeaderExit {
                exit,
                time,
                output_end,
            });
        }
        if let Some(end) = finish.and_then(|finish| self.tree_end(finish)) {
            self.file.tree_end = Fact::Due(end);
            if let Some(cgroup) = &self.cgroup {
                cgroup.remove();
            }
        }
        let after = self.after_task();
        self.file.settle(self.connection, after);
        self.report_refusal();
        after
    }

    /// Tells the server, which would take the shim for a stopped one, that the disk is what fails.
    fn report_refusal(&mut self) {
        let now = Moment::now();
        if self.file.is_due() && self.next_refusal <= now {
            self.next_refusal = now.after(RETRY_MILLIS);
            self.connection.send([Some(Report::RecordRefused)]);
        }
    }

    /// Only a shim that had nothing unusual to do takes another task.
    fn after_task(&self) -> AfterTask {
        match (&self.kill, self.pace, self.orphans) {
            (None, Pace::Normal, Orphans::Awaited) => self.connection.after_task(),
            (None | Some(_), Pace::Normal | Pace::Hurried { .. }, _) => AfterTask::Ends,
        }
    }

    /// Returns the way in which the task has ended, if it has and that is not recorded yet.
    fn finish(&self) -> Option<Finish> {
        let abandons = self.orphans == Orphans::Abandoned && self.kill.is_none();
        if !self.file.tree_end.is_unknown() {
            None
        } else if self.tree.is_empty() {
            Some(Finish::Empty)
        } else if abandons && self.tree.leader_exit().is_some() {
            Some(Finish::Abandoned)
        } else {
            None
        }
    }

    /// Returns whether the cgroup is empty too; `None` if it must be checked again.
    fn cgroup_is_empty(&mut self) -> Option<bool> {
        let Some(cgroup) = &self.cgroup else {
            return Some(false);
        };
        if cgroup.is_empty() {
            return Some(true);
        }
        // A process outside the tree was moved into the cgroup. A kill ends it; else it is ignored.
        let again = match &self.kill {
            Some(kill) => !kill.is_overdue() && cgroup.kill().is_ok(),
            None => self.cgroup_checks < CGROUP_CHECKS,
        };
        self.cgroup_checks += 1;
        if again { None } else { Some(false) }
    }

    /// CPU time of all processes. Those that the kernel has reaped are counted by their cgroup alone.
    fn cpu_micros(&self) -> u64 {
        let cgroup = self.cgroup.as_ref();
        let cgroup = cgroup.filter(|_| self.tree.is_incomplete());
        let counted = cgroup.and_then(Cgroup::cpu_micros);
        self.tree.cpu_micros().max(counted.unwrap_or(0))
    }

    /// Returns the record of the end; `None` if the cgroup must be checked again.
    fn tree_end(&mut self, finish: Finish) -> Option<TreeEnd> {
        let (cgroup_empty, abandoned) = match finish {
            Finish::Empty => (self.cgroup_is_empty()?, false),
            Finish::Abandoned => (false, true),
        };
        self.capture.writer().finish(self.file.fd());
        let loss = self.capture.loss();
        Some(TreeEnd {
            time: clock::stamp(),
            output_end: self.capture.end(),
            cgroup_empty,
            cpu_micros: self.cpu_micros(),
            max_memory: self.tree.max_memory(),
            capture_errno: loss.errno,
            discarded: loss.bytes,
            abandoned,
        })
    }
}
