//! The orders of the server to a task that runs, and the bytes of its input that follow some of them.

use heeler_shim::wire::{Order, Report};

use super::{Orphans, Supervision};
use crate::program::{clock, task::input::OutOfStep, tree::signal};

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
                Order::Note { part, bytes } => {
                    // Another writer may have the input now, unless this is the note of the client itself.
                    if !self.relay.is_new() {
                        self.end_relay();
                    }
                    self.input.set_note(part, bytes);
                }
                Order::Resize { size } => {
                    self.input.resize(size);
                    self.connection.send([Some(Report::Resized)]);
                }
            }
        }
    }

    fn expect_input(&mut self, offset: u64, bytes: u64, close: bool) {
        match self.input.expect(offset, bytes, close) {
            Ok(()) => {
                self.connection.await_payload(bytes);
                self.take_input(0);
            }
            Err(OutOfStep) => self.connection.close(),
        }
    }

    /// Takes bytes of an order, and answers it once all of them have arrived.
    fn take_input(&mut self, len: usize) {
        self.input.take(len);
        if !self.connection.awaits_payload() {
            self.input.complete();
            self.connection.send([Some(self.input_report())]);
        }
    }

    /// Answers the server's question for room, if there is one and it can be answered.
    pub(super) fn report_input(&mut self) {
        if self.input.take_question() {
            self.connection.send(self.input.note());
            self.connection.send([Some(self.input_report())]);
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
