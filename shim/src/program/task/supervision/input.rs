//! The input of the task: the bytes of the server's orders, and a relay. Both are reported.

use heeler_shim::wire::{NotePart, Report};

use super::Supervision;
use crate::program::{sys::signals::Poll, task::input::OutOfStep};

impl Supervision<'_> {
    pub(super) fn expect_input(&mut self, offset: u64, bytes: u64, close: bool) {
        match self.input.expect(offset, bytes, close) {
            Ok(()) => {
                self.connection.await_payload(bytes);
                self.take_input(0);
            }
            Err(OutOfStep) => self.connection.close(),
        }
    }

    /// Takes bytes of an order, and answers it once all of them have arrived.
    pub(super) fn take_input(&mut self, len: usize) {
        self.input.take(len);
        if !self.connection.awaits_payload() {
            self.input.complete();
            self.connection.send([Some(self.input_report())]);
        }
    }

    /// Keeps a part of the note. Another writer may have the input now.
    pub(super) fn take_note(&mut self, part: u8, bytes: NotePart) {
        self.end_relay();
        self.input.set_note(part, bytes);
    }

    /// Answers the server's questions that can be answered now.
    pub(super) fn report_input(&mut self) {
        if self.input.take_question() {
            self.connection.send(self.input.note());
            self.connection.send([Some(self.input_report())]);
        }
        if self.input.take_growth() {
            self.connection.send([Some(Report::InputGiven)]);
        }
    }

    pub(super) fn attend_relay(&mut self, polls: &[Poll; 4]) {
        self.relay
            .attend(polls, &mut self.input, self.capture.end());
        self.settle_relay();
    }

    pub(super) fn end_relay(&mut self) {
        self.relay.end();
        self.settle_relay();
    }

    /// Reports a relay that has begun or ended, and then tells its client of the end: the server must not answer that
    /// client by an older count.
    fn settle_relay(&mut self) {
        if self.is_relayed != self.relay.is_under_way() {
            self.is_relayed = self.relay.is_under_way();
            self.connection.send([Some(self.input_report())]);
        }
        self.relay.tell_end();
    }

    fn input_report(&self) -> Report {
        self.input.report(self.relay.is_under_way())
    }
}
