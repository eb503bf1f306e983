//! The orders of the server to a task that runs.

use heeler_shim::wire::{Order, Report};

use super::{Orphans, Supervision};
use crate::program::{clock, tree::signal};

/// The most orders handled in one wake-up.
const ORDERS: usize = 8;

impl Supervision<'_> {
    pub(super) fn obey(&mut self) {
        for _ in 0..ORDERS {
            if self.connection.awaits_payload() {
                match self.connection.receive_payload(self.input.space()) {
                    Some(len) => self.take_input(len),
                    None => return,
                }
                continue;
            }
            let Some(order) = self.connection.receive() else {
                return;
            };
            match order {
                // There is a task already, and the bytes behind a Begin are not orders.
                Order::Begin { .. } => self.connection.close(),
                Order::KeepForRestart => {}
                Order::Restart { attempt } => {
                    if self.file.tree_end.is_written() {
                        self.attempts.order(attempt);
                    }
                }
                Order::GiveUp => self.attempts.give_up(),
                // Between two attempts there is nothing to signal or to kill. An order to kill the orphans of the
                // last attempt may come after their end.
                Order::Signal { .. } | Order::Abandon | Order::Kill { .. }
                    if self.file.tree_end.is_written() => {}
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
                Order::Input {
                    offset,
                    bytes,
                    close,
                } => self.expect_input(offset, bytes, close),
                Order::AskInput { room } => self.input.ask(room),
                Order::FollowInput => self.input.follow(),
                Order::Note { part, bytes } => self.take_note(part, bytes),
                Order::Resize { size } => {
                    self.input.resize(size);
                    self.connection.send([Some(Report::Resized)]);
                }
            }
        }
    }

    fn limit_output(&mut self, bytes: u64) {
        self.capture.writer().limit(bytes, self.file.fd());
        self.connection.forget_stored();
        self.report_output();
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
}
