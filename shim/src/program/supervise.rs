//! A running task, to the end of its tree, or to that of its leader if the others are to be let go.
//!
//! The loop waits for one of five descriptors, does what each asks for, and then settles what has
//! become true: output first, then statuses, then records, then reports.

use heeler_shim::{
    record::{LeaderExit, TreeEnd},
    wire::{After, Order, Report},
};

use super::{
    capture::Capture,
    cgroup::Cgroup,
    clock,
    control::Control,
    kill::Kill,
    leader::Leader,
    pace::{Pace, STORM},
    signal,
    sys::{
        Fd, file,
        signals::{self, Patience, Poll},
    },
    task_file::{Fact, TaskFile},
    tree::Tree,
};

/// How long there must be no output before the memory that it took is given back.
const REST_MILLIS: u64 = 1000;
/// How soon a record that the disk refused is tried again.
const RETRY_MILLIS: u64 = 1000;
/// How often, a millisecond apart, a cgroup is looked at that should be empty and is not: a member
/// may count for a moment after its status is taken.
const CGROUP_LOOKS: u32 = 20;
/// How many orders are carried out at a turn.
const ORDERS: usize = 8;

/// A task whose leader was started.
pub(super) struct Supervision<'a> {
    child_signals: &'a Fd,
    control: &'a mut Control,
    file: TaskFile,
    capture: Capture<'a>,
    tree: Tree,
    cgroup: Option<Cgroup<'a>>,
    /// How often the cgroup was seen populated after the last child had gone.
    looks: u32,
    /// Whether there are statuses to take.
    child_ended: bool,
    kill: Option<Kill>,
    orphan_policy: OrphanPolicy,
    pace: Pace,
}

/// What becomes of those who outlive the leader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OrphanPolicy {
    /// The end waits for them.
    Awaited,
    /// They are let go.
    Released,
}

/// How it is over.
#[derive(Clone, Copy)]
enum Over {
    /// Nobody is left.
    Empty,
    /// The leader is gone, and others are let go.
    Released,
}

/// What is left when it is over.
pub(super) struct End {
    /// What becomes of us, as the server was told.
    pub(super) after: After,
    /// CPU time of all that have ended.
    pub(super) cpu_micros: u64,
}

impl<'a> Supervision<'a> {
    /// Of a leader that has just been started.
    pub(super) fn new(
        child_signals: &'a Fd,
        control: &'a mut Control,
        file: TaskFile,
        leader: Leader<'a>,
        capture: Capture<'a>,
    ) -> Self {
        Self {
            child_signals,
            control,
            file,
            capture,
            tree: Tree::new(leader.pid),
            cgroup: leader.cgroup,
            looks: 0,
            child_ended: false,
            kill: None,
            orphan_policy: OrphanPolicy::Awaited,
            pace: Pace::Normal,
        }
    }

    /// Until nobody of the tree is left, or is to be waited for.
    pub(super) fn run(mut self) -> End {
        let mut patience = Patience::Endless;
        loop {
            let after = self.settle();
            if self.file.tree_end.is_written() {
                let cpu_micros = self.tree.cpu_micros();
                return End { after, cpu_micros };
            }
            self.wait(patience.min(self.patience()));
            patience = self.pursue();
        }
    }

    /// The longest that can be waited without missing something.
    fn patience(&self) -> Patience {
        if self.tree.is_empty() && self.file.tree_end.is_unknown() {
            Patience::Millis(1)
        } else if self.tree.has_more() {
            Patience::Millis(0)
        } else if self.file.is_due() || self.capture.is_due_on_disk() {
            Patience::Millis(RETRY_MILLIS)
        } else if self.capture.is_restless() || self.pace.is_hurried() {
            Patience::Millis(REST_MILLIS)
        } else {
            Patience::Endless
        }
    }

    /// Waits for something to happen, and deals with it.
    fn wait(&mut self, patience: Patience) {
        let [stdout, stderr] = self.capture.polls();
        let [knock, order] = self.control.polls();
        let child = Poll::new(Some(self.child_signals));
        let mut polls = [child, stdout, stderr, knock, order];
        if !signals::poll(&mut polls, patience) {
            if patience >= Patience::Millis(REST_MILLIS) {
                self.capture.rest();
            }
            return;
        }
        let [child, stdout, stderr, knock, order] = polls;
        self.capture.read_ready(&[stdout, stderr], self.file.fd());
        self.control.output_is_at(self.capture.end());
        if child.is_ready() {
            // One signal stands for any number of children.
            let _ = file::read(self.child_signals, &mut [0; 128]);
            self.child_ended = true;
        }
        if order.is_ready() {
            self.obey();
        }
        if knock.is_ready() {
            self.control.welcome(self.file.hints());
        }
    }

    fn obey(&mut self) {
        for _ in 0..ORDERS {
            let Some(order) = self.control.receive() else {
                return;
            };
            match order {
                // We have one; and what comes behind it is no order.
                Order::Begin { .. } => self.control.hang_up(),
                Order::Signal { number } => {
                    self.hold();
                    self.signal(number);
                }
                Order::Kill { within_millis } => {
                    self.hold();
                    let kill = Kill::begin(within_millis, self.cgroup.as_ref(), self.pace);
                    self.kill = Some(kill);
                }
                Order::Follow { beyond } => {
                    self.control.follow(beyond);
                    self.control.output_is_at(self.capture.end());
                }
                Order::Spill => self.capture.output().spill(self.file.fd()),
                Order::Abandon => self.release(),
            }
        }
    }

    /// Whoever is to be stopped is not let go, unless that has happened.
    fn hold(&mut self) {
        if self.file.tree_end.is_unknown() {
            self.orphan_policy = OrphanPolicy::Awaited;
        }
    }

    fn release(&mut self) {
        if self.kill.is_none() {
            self.orphan_policy = OrphanPolicy::Released;
        }
    }

    fn signal(&mut self, number: i32) {
        let processes = signal::send(number, self.tree.leader(), self.capture.scratch());
        let time_micros = clock::now_micros();
        self.control.send([Some(Report::Signalled {
            number,
            processes,
            time_micros,
        })]);
    }

    /// Takes statuses, and goes on with a kill; how soon it wants to.
    fn pursue(&mut self) -> Patience {
        let Some(kill) = &mut self.kill else {
            if self.child_ended || self.tree.has_more() {
                self.child_ended = false;
                if self.tree.reap(drop) >= STORM {
                    self.pace.hurry();
                }
            }
            self.pace.calm();
            return Patience::Endless;
        };
        let patience = kill.turn(&mut self.tree, &mut self.pace, self.capture.scratch());
        if kill.is_overdue_news() {
            self.control.send([Some(Report::Overdue)]);
        }
        patience
    }

    /// Records and reports what has become true; what becomes of us if that was all.
    fn settle(&mut self) -> After {
        let exited = self
            .tree
            .leader_exit()
            .filter(|_| self.file.leader_exit.is_unknown());
        let over = self.over();
        if exited.is_some() || over.is_some() {
            self.capture.drain(self.file.fd());
            self.control.output_is_at(self.capture.end());
        }
        if self.capture.is_due_on_disk() {
            self.capture.output().spill(self.file.fd());
        }
        if let Some((exit, time_micros)) = exited {
            let output_end = self.capture.end();
            self.file.leader_exit = Fact::Due(LeaderExit {
                exit,
                time_micros,
                output_end,
            });
        }
        if let Some(end) = over.and_then(|over| self.tree_end(over)) {
            self.file.tree_end = Fact::Due(end);
            if let Some(cgroup) = &self.cgroup {
                cgroup.remove();
            }
        }
        let after = self.after();
        self.file.settle(self.control, after);
        after
    }

    /// Another task gets a shim that has been through nothing out of the ordinary.
    fn after(&self) -> After {
        match (&self.kill, self.pace, self.orphan_policy) {
            (None, Pace::Normal, OrphanPolicy::Awaited) => self.control.after(),
            (None | Some(_), _, _) => After::Ends,
        }
    }

    /// How it is over, if it is and the file is not to say so yet.
    fn over(&self) -> Option<Over> {
        let lets_go = self.orphan_policy == OrphanPolicy::Released && self.kill.is_none();
        if !self.file.tree_end.is_unknown() {
            None
        } else if self.tree.is_empty() {
            Some(Over::Empty)
        } else if lets_go && self.tree.leader_exit().is_some() {
            Some(Over::Released)
        } else {
            None
        }
    }

    /// Whether the cgroup is empty too; `None` if it should be looked at again.
    fn cgroup_is_empty(&mut self) -> Option<bool> {
        let Some(cgroup) = &self.cgroup else {
            return Some(false);
        };
        if cgroup.is_empty() {
            return Some(true);
        }
        // Somebody who is not of the tree was put there. That is for a kill to end, and else not
        // our business.
        let again = match &self.kill {
            Some(kill) => !kill.is_overdue() && cgroup.kill().is_ok(),
            None => self.looks < CGROUP_LOOKS,
        };
        self.looks += 1;
        if again { None } else { Some(false) }
    }

    /// The record of it; `None` if the cgroup should be looked at again.
    fn tree_end(&mut self, over: Over) -> Option<TreeEnd> {
        let (cgroup_empty, abandoned) = match over {
            Over::Empty => (self.cgroup_is_empty()?, false),
            Over::Released => (false, true),
        };
        self.capture.output().finish(self.file.fd());
        let loss = self.capture.loss();
        Some(TreeEnd {
            time_micros: clock::now_micros(),
            output_end: self.capture.end(),
            cgroup_empty,
            cpu_micros: self.tree.cpu_micros(),
            max_memory: self.tree.max_memory(),
            capture_errno: loss.errno,
            discarded: loss.bytes,
            abandoned,
        })
    }
}
