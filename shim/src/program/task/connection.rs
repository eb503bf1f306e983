//! The connection to the server: one at a time, the newest.
//!
//! Nothing here blocks while a task runs. Reports are hints, so the connection to a server that does
//! not read them is closed: it finds everything in the task file. Other users are refused, and so is a
//! server that speaks another version of the protocol.

use heeler_shim::wire::{
    AfterTask, MESSAGE, NOTE_PARTS, Order, Report, STORED_STEP, UnknownMessage, socket_name,
};

use super::{
    assignment::{AfterFailure, Assignment, Size},
    listener::Listener,
};
use crate::program::sys::{
    Errno, Fd, Result,
    process::{self, ParentEnd},
    signals::{self, Poll, Timeout},
    socket,
};

/// The most reports in one send: a note.
const BATCH: usize = NOTE_PARTS;

/// The present connection, and the socket for the next one.
pub(super) struct Connection {
    listener: Option<Listener>,
    server: Option<Fd>,
    /// The received part of an incomplete order.
    inbox: [u8; MESSAGE],
    filled: usize,
    /// The number of bytes of the latest order that are still to come.
    payload: u64,
    /// The offset beyond which output is to be reported.
    follow: Option<u64>,
    /// The size of stored output from which on it is reported.
    stored_report: u64,
    origin: Origin,
}

/// The server at the other end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The server that started this shim, of the same build.
    Parent,
    /// A later server.
    Successor,
}

impl Connection {
    pub(super) fn new(server: Option<Fd>) -> Self {
        Self {
            listener: None,
            server,
            inbox: [0; MESSAGE],
            filled: 0,
            payload: 0,
            follow: None,
            stored_report: STORED_STEP,
            origin: Origin::Parent,
        }
    }

    /// Waits for a task; `None` if there will be none.
    ///
    /// From here to the claim of the task file the shim dies with its server: the next server takes a
    /// task without a file for one that never starts, and may forget it.
    pub(super) fn next_assignment(&mut self) -> Option<Assignment> {
        self.listener = None;
        self.follow = None;
        self.forget_stored();
        process::at_parent_end(ParentEnd::Kills).ok()?;
        if self.is_server_gone() {
            return None;
        }
        let mut after_failure = AfterFailure::End;
        while self.after_task() == AfterTask::Waits {
            self.skip_payload()?;
            match self.receive() {
                Some(Order::Begin {
                    bytes,
                    arguments,
                    variables,
                }) => {
                    let size = Size {
                        bytes,
                        arguments,
                        variables,
                    };
                    return Assignment::receive(size, after_failure, self);
                }
                Some(Order::KeepForRestart) => after_failure = AfterFailure::Keep,
                // Sent for the previous task.
                Some(Order::Input { bytes, .. }) => self.await_payload(bytes),
                Some(
                    Order::Signal { .. }
                    | Order::Kill { .. }
                    | Order::Follow { .. }
                    | Order::Spill
                    | Order::Abandon
                    | Order::Restart { .. }
                    | Order::GiveUp
                    | Order::LimitOutput { .. }
                    | Order::AskInput { .. }
                    | Order::FollowInput
                    | Order::Note { .. }
                    | Order::Resize { .. },
                ) => {}
                None => self.wait(),
            }
        }
        None
    }

    /// The next step after a task: only the server that started this shim has another one.
    pub(super) fn after_task(&self) -> AfterTask {
        match (self.origin, &self.server) {
            (Origin::Parent, Some(_)) => AfterTask::Waits,
            (Origin::Parent, None) | (Origin::Successor, _) => AfterTask::Ends,
        }
    }

    /// Waits until `room` is filled; `None` if the server is gone.
    pub(super) fn receive_all(&mut self, mut room: &mut [u8]) -> Option<()> {
        while !room.is_empty() {
            match socket::receive(self.server.as_ref()?, room) {
                Ok(len @ 1..) => room = room.get_mut(len..)?,
                Err(Errno::EAGAIN | Errno::EINTR) => self.wait(),
                Ok(_) | Err(_) => return None,
            }
        }
        Some(())
    }

    /// Expects bytes behind the order that was received last.
    pub(super) fn await_payload(&mut self, bytes: u64) {
        self.payload = bytes;
    }

    pub(super) fn awaits_payload(&self) -> bool {
        self.payload > 0
    }

    /// Receives bytes of an order; returns their number, or `None` if none has arrived.
    pub(super) fn receive_payload(&mut self, room: &mut [u8]) -> Option<usize> {
        let wanted = (self.payload as usize).min(room.len());
        match socket::receive(self.server.as_ref()?, room.get_mut(..wanted)?) {
            Ok(len @ 1..) => {
                self.payload = self.payload.saturating_sub(len as u64);
                Some(len)
            }
            Err(Errno::EAGAIN | Errno::EINTR) => None,
            Ok(_) | Err(_) => {
                self.close();
                None
            }
        }
    }

    /// Drops the bytes of an order for the previous task; `None` if the server is gone.
    fn skip_payload(&mut self) -> Option<()> {
        while self.awaits_payload() {
            if self.receive_payload(&mut [0; 4096]).is_none() {
                self.server.as_ref()?;
                self.wait();
            }
        }
        Some(())
    }

    /// Returns whether the server has ended, also if there are bytes left that it sent.
    fn is_server_gone(&self) -> bool {
        let mut server = [Poll::new(self.server.as_ref())];
        signals::poll(&mut server, Timeout::Millis(0)) && server[0].is_hung_up()
    }

    /// Blocks until the server sends something or is gone.
    fn wait(&self) {
        if let Some(server) = &self.server {
            signals::poll(&mut [Poll::new(Some(server))], Timeout::Never);
        }
    }

    /// Creates the task's socket, on which a later server connects.
    pub(super) fn listen(&mut self, task_uid: &[u8; 16]) -> Result<()> {
        self.listener = Some(Listener::bind(&socket_name(task_uid))?);
        Ok(())
    }

    /// The polls for the next server and for orders of this one.
    pub(super) fn polls(&mut self) -> [Poll; 2] {
        let next_server = self.listener.as_mut().map(Listener::poll);
        [
            next_server.unwrap_or(Poll::new(None)),
            Poll::new(self.server.as_ref()),
        ]
    }

    /// The longest wait that misses no next server.
    pub(super) fn timeout(&self) -> Timeout {
        let listener = self.listener.as_ref();
        listener.map_or(Timeout::Never, Listener::timeout)
    }

    /// Accepts a new server in place of the present one, and greets it; returns whether there is one.
    pub(super) fn accept(&mut self, hints: [Option<Report>; 2]) -> bool {
        match self.listener.as_mut().and_then(Listener::accept) {
            Some(server) => {
                self.greet(server, hints);
                true
            }
            None => false,
        }
    }

    fn greet(&mut self, server: Fd, hints: [Option<Report>; 2]) {
        self.server = Some(server);
        self.origin = Origin::Successor;
        self.filled = 0;
        self.payload = 0;
        self.follow = None;
        self.forget_stored();
        let [started, exited] = hints;
        self.send([
            Some(Report::Hello {
                shim_pid: process::own_pid(),
            }),
            started,
            exited,
        ]);
    }

    /// Returns the next complete order, if there is one. An unknown kind is skipped; another version
    /// closes the connection.
    pub(super) fn receive(&mut self) -> Option<Order> {
        loop {
            let server = self.server.as_ref()?;
            let room = self.inbox.get_mut(self.filled..)?;
            match socket::receive(server, room) {
                Ok(len @ 1..) => self.filled += len,
                Err(Errno::EAGAIN | Errno::EINTR) => return None,
                Ok(_) | Err(_) => {
                    self.close();
                    return None;
                }
            }
            if self.filled >= MESSAGE {
                self.filled = 0;
                match Order::decode(&self.inbox) {
                    Ok(order) => return Some(order),
                    Err(UnknownMessage::Kind(_)) => {}
                    Err(UnknownMessage::Version(_)) => self.close(),
                }
            }
        }
    }

    /// Sends reports in one write.
    pub(super) fn send<const N: usize>(&mut self, reports: [Option<Report>; N]) {
        const { assert!(N <= BATCH) };
        let mut out = [0; MESSAGE * BATCH];
        let mut slots = out.chunks_exact_mut(MESSAGE);
        let mut len = 0;
        for report in reports.into_iter().flatten() {
            if let Some(slot) = slots.next() {
                slot.copy_from_slice(&report.encode());
                len += MESSAGE;
            }
        }
        let (Some(server), Some(out)) = (&self.server, out.get(..len)) else {
            return;
        };
        if len > 0 && socket::send(server, out).is_err() {
            self.close();
        }
    }

    pub(super) fn close(&mut self) {
        self.server = None;
        self.payload = 0;
    }

    /// Reports the next output beyond this offset, once.
    pub(super) fn follow(&mut self, beyond: u64) {
        self.follow = Some(beyond);
    }

    /// Reports the size of stored output, if it has grown enough.
    pub(super) fn report_stored(&mut self, bytes: u64) {
        if bytes >= self.stored_report {
            self.stored_report = bytes + STORED_STEP.max(bytes / 16);
            self.send([Some(Report::Stored { bytes })]);
        }
    }

    /// Reports the size of stored output again, if it is not small.
    pub(super) fn forget_stored(&mut self) {
        self.stored_report = STORED_STEP;
    }

    /// Reports output up to `end`, if the server waits for it.
    pub(super) fn report_output(&mut self, end: u64) {
        if self.follow.is_some_and(|beyond| end > beyond) {
            self.follow = None;
            self.send([Some(Report::Output { end })]);
        }
    }
}
