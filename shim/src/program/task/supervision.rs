//! A running task, up to the end of its tree, or of its leader if the orphans are abandoned. A task that is kept
//! after a failure goes on with the next attempt (`attempt`).
//!
//! The loop waits for ten descriptors, handles each that is ready, and then settles the new facts:
//! output first, then wait statuses, then records, then reports.

mod input;
mod orders;

use heeler_shim::{
    record::{Exit, LeaderExit, TreeEnd},
    wire::{AfterTask, Report},
};

use super::{
    assignment::Task,
    attempt::Attempts,
    cgroup::Cgroup,
    connection::Connection,
    failed,
    input::Input,
    leader::Leader,
    relay::Relay,
    running,
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
        pace::{Due, Pace},
        reaper::Reaper,
    },
};

/// The silence after which the memory of a burst of output is given back.
const IDLE_MILLIS: u64 = 1000;
/// The pause before a record that the disk refused is tried again.
const RETRY_MILLIS: u64 = 1000;
/// The interval of looks for the end of the tree while the kernel reaps and sends no signal.
const UNSIGNALLED_MILLIS: u64 = 10;
/// The time for which a look for a storm stays awake.
const AWAKE_MILLIS: u64 = 5;
/// The number of checks, a millisecond apart, of a cgroup that should be empty and is not: a member may
/// count for a moment after it was reaped.
const CGROUP_CHECKS: u32 = 20;
/// The time after which a kill for the output's limit is overdue.
const KILL_MILLIS: u64 = 10_000;

/// The supervision of a task whose leader was started.
pub(super) struct Supervision<'a> {
    child_signals: &'a Fd,
    connection: &'a mut Connection,
    file: TaskFile,
    capture: Capture<'a>,
    input: Input,
    relay: Relay,
    /// The relay, as it was reported.
    is_relayed: bool,
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
    attempts: Attempts<'a>,
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
        (task, leader): (Task<'a>, Leader<'a>),
        (capture, input): (Capture<'a>, Input),
    ) -> Self {
        let relay = match input.is_pipe() {
            true => Relay::listen(&task.uid),
            false => Relay::none(),
        };
        Self {
            child_signals,
            connection,
            file,
            capture,
            input,
            relay,
            is_relayed: false,
            tree: Reaper::new(leader.pid),
            cgroup: leader.cgroup,
            cgroup_checks: 0,
            next_refusal: Moment::now(),
            child_ended: false,
            kill: None,
            orphans: Orphans::Awaited,
            pace: Pace::Normal,
            attempts: Attempts::new(task),
        }
    }

    /// Runs until the task has ended.
    pub(super) fn run(mut self) -> End {
        let mut timeout = Timeout::Never;
        loop {
            let after = self.settle();
            if self.file.tree_end.is_written() {
                if after != AfterTask::Keeps {
                    let cpu_micros = self.attempts.total_cpu(self.tree.cpu_micros());
                    return End { after, cpu_micros };
                }
                if self.begin_attempt() {
                    continue;
                }
            }
            let idle = self.timeout().min(self.relay.timeout());
            self.wait(timeout.min(idle).min(self.connection.timeout()));
            timeout = match self.file.tree_end.is_written() {
                // Between two attempts there is no process.
                true => Timeout::Never,
                false => self.reap_or_kill(),
            };
        }
    }

    /// Starts the leader again, if that was ordered; returns whether there is something to record.
    fn begin_attempt(&mut self) -> bool {
        if !self.attempts.is_ordered() {
            return false;
        }
        // Before the leader starts, whose wait status the kernel would drop.
        self.tree.take_back();
        self.pace.relax();
        let output_begin = self.capture.end();
        let Some(started) = self.attempts.begin(&mut self.file, output_begin) else {
            return false;
        };
        self.attempts
            .count(self.cpu_micros(), self.tree.max_memory());
        (self.kill, self.orphans, self.cgroup_checks) = (None, Orphans::Awaited, 0);
        match started {
            Ok((leader, sources, input, _)) => {
                self.file.start = Fact::Due(running(&leader));
                self.tree = Reaper::new(leader.pid);
                self.cgroup = leader.cgroup;
                self.child_ended = true;
                self.capture.read_from(sources);
                self.input = input;
            }
            Err(failure) => {
                self.tree = Reaper::without_leader();
                self.cgroup = None;
                self.file.start = Fact::Due(failed(failure));
                self.file.tree_end = self
                    .tree_end(Finish::Empty)
                    .map_or(Fact::Unknown, Fact::Due);
            }
        }
        true
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
        } else if self.file.is_due() || self.capture.is_due_on_disk() || self.attempts.is_ordered()
        {
            Timeout::Millis(RETRY_MILLIS)
        } else if self.has_idle_work() || self.pace.is_hurried() {
            Timeout::Millis(IDLE_MILLIS)
        } else {
            Timeout::Never
        }
    }

    /// Waits for events and handles them.
    fn wait(&mut self, timeout: Timeout) {
        let [stdout, stderr] = match self.relay.takes_output() {
            true => self.capture.polls(),
            false => [Poll::new(None); 2],
        };
        let [next_server, order] = self.connection.polls();
        let child = Poll::new(Some(self.child_signals));
        let [client, message, stdin, room] = self.relay.polls(&self.input);
        let mut polls = [
            child,
            stdout,
            stderr,
            next_server,
            order,
            self.input.poll(),
            client,
            message,
            stdin,
            room,
        ];
        if !signals::poll(&mut polls, timeout) {
            self.attend_relay(&[Poll::new(None); 4]);
            if timeout >= Timeout::Millis(IDLE_MILLIS) {
                self.capture.release_memory();
                self.input.release_memory();
                self.capture.writer().settle(self.file.fd());
            }
            return;
        }
        let [child, stdout, stderr, next_server, order, input, relay @ ..] = polls;
        let disk = self.file.fd();
        self.capture
            .read_ready(&[stdout, stderr], disk, &mut self.relay);
        self.report_output();
        if child.is_ready() {
            // One signal stands for any number of ended children.
            let _ = file::read(self.child_signals, &mut [0; 128]);
            self.child_ended = true;
        }
        if input.is_ready() {
            self.input.attend(input);
        }
        // The note of a client's claim comes before that client's descriptors, also if this poll has missed it.
        let [_, message, ..] = &relay;
        if order.is_ready() || (self.relay.is_new() && message.is_ready()) {
            self.obey();
        }
        self.attend_relay(&relay);
        if next_server.is_ready() && self.connection.accept(self.file.hints()) {
            self.input.forget_questions();
        }
        self.report_input();
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

    /// Returns whether there is work for a silence.
    fn has_idle_work(&mut self) -> bool {
        self.capture.has_memory_to_release()
            || self.input.has_memory_to_release()
            || self.capture.writer().is_behind()
    }

    /// A task that is being stopped does not abandon its orphans, unless it already has.
    fn await_orphans(&mut self) {
        if self.file.tree_end.is_unknown() {
            self.orphans = Orphans::Awaited;
        }
    }

    /// Reaps children and continues a kill; returns when the kill wants to continue.
    fn reap_or_kill(&mut self) -> Timeout {
        let Some(kill) = &mut self.kill else {
            if self.child_ended || self.tree.has_more() || self.tree.is_left_to_kernel() {
                self.child_ended = false;
                let ended = self.tree.reap(drop);
                if self.pace.is_storm(ended) {
                    self.begin_storm();
                }
            }
            match self.pace.due() {
                Due::Nothing => {}
                Due::Look => self.look_for_storm(),
                Due::Relax => self.pace.relax(),
            }
            return Timeout::Never;
        };
        let timeout = kill.proceed(&mut self.tree, &mut self.pace, self.capture.scratch());
        if kill.take_overdue() {
            self.connection.send([Some(Report::Overdue)]);
        }
        timeout
    }

    /// Reaps again, and sees whether the storm goes on. At first without a sleep: among processes that fork without
    /// pause the shim might not run again for long, and thousands of zombies would wait for it.
    fn look_for_storm(&mut self) {
        self.tree.take_back();
        let end = Moment::now().after(AWAKE_MILLIS);
        while Moment::now() < end {
            let ended = self.tree.reap(drop);
            if self.pace.is_storm(ended) {
                return self.begin_storm();
            }
        }
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
            self.capture.drain(self.file.fd(), &mut self.relay);
            self.end_relay();
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
        if self.file.is_due() && self.next_refusal <= Moment::now() {
            self.next_refusal = Moment::now().after(RETRY_MILLIS);
            self.connection.send([Some(Report::RecordRefused)]);
        }
    }

    /// Only a shim that had nothing unusual to do takes another task.
    fn after_task(&self) -> AfterTask {
        let has_succeeded = matches!(self.tree.leader_exit(), Some((Exit::Code(0), _)));
        if self.attempts.are_kept() && !has_succeeded && self.orphans == Orphans::Awaited {
            return AfterTask::Keeps;
        }
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
            cpu_micros: self.attempts.total_cpu(self.cpu_micros()),
            max_memory: self.attempts.most_memory(self.tree.max_memory()),
            capture_errno: loss.errno,
            discarded: loss.bytes,
            abandoned,
        })
    }
}
