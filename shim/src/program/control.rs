//! The connection to the server: one at a time, the newest.
//!
//! Nothing here waits. Reports are hints: to a server that does not read them the connection is
//! closed, and it finds everything in the task file. It refuses other users.

use heeler_shim::wire::{After, MESSAGE, Order, Report, socket_name};

use super::{
    assignment::{Assignment, Size},
    sys::{
        Errno, Fd, Result, process,
        signals::{self, Poll},
        socket,
    },
};

/// How many reports are sent at once, at most: the greeting of a new server.
const BATCH: usize = 3;

/// How long to wait when a server knocks and there is no room to let it in.
const NO_ROOM_MILLIS: u64 = 10;

/// The connection, and the socket on which the next one comes.
pub(super) struct Control {
    listener: Option<Fd>,
    server: Option<Fd>,
    /// The beginning of an order of which the rest has not come.
    inbox: [u8; MESSAGE],
    filled: usize,
    /// The offset beyond which output is to be told of.
    follow: Option<u64>,
    origin: Origin,
}

/// Whose connection it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// That of the server that started us, and is of our build.
    Parent,
    /// That of a later one.
    Successor,
}

impl Control {
    /// With the server that started us.
    pub(super) fn new(server: Option<Fd>) -> Self {
        Self {
            listener: None,
            server,
            inbox: [0; MESSAGE],
            filled: 0,
            follow: None,
            origin: Origin::Parent,
        }
    }

    /// Waits for a task; `None` when there will be none.
    pub(super) fn next_assignment(&mut self) -> Option<Assignment> {
        self.listener = None;
        self.follow = None;
        while self.after() == After::Waits {
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
                    return Assignment::receive(size, self);
                }
                // Meant for the task before.
                Some(
                    Order::Signal { .. }
                    | Order::Kill { .. }
                    | Order::Follow { .. }
                    | Order::Spill
                    | Order::Abandon,
                ) => {}
                None => self.wait(),
            }
        }
        None
    }

    /// What becomes of us when a task is over: only the server that started us has another.
    pub(super) fn after(&self) -> After {
        match (self.origin, &self.server) {
            (Origin::Parent, Some(_)) => After::Waits,
            (Origin::Parent, None) | (Origin::Successor, _) => After::Ends,
        }
    }

    /// Waits for as many bytes as there is room for; `None` if they do not come.
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

    /// Until something comes from the server, or it is gone.
    fn wait(&self) {
        if let Some(server) = &self.server {
            signals::poll(&mut [Poll::new(Some(server))], signals::Patience::Endless);
        }
    }

    /// Makes the task's socket, so that a later server can come.
    pub(super) fn listen(&mut self, task_uid: &[u8; 16]) -> Result<()> {
        self.listener = Some(socket::listen(&socket_name(task_uid))?);
        Ok(())
    }

    /// For the next server, and for the orders of this one.
    pub(super) fn polls(&self) -> [Poll; 2] {
        [
            Poll::new(self.listener.as_ref()),
            Poll::new(self.server.as_ref()),
        ]
    }

    /// Takes a new server in place of the present one, and greets it.
    pub(super) fn welcome(&mut self, hints: [Option<Report>; 2]) {
        let Some(listener) = &self.listener else {
            return;
        };
        let server = match socket::accept(listener) {
            Ok(server) => server,
            Err(Errno::EAGAIN | Errno::EINTR) => return,
            Err(_) => {
                // No descriptor, no memory: the knocking goes on, and must not keep us busy.
                signals::poll(&mut [], signals::Patience::Millis(NO_ROOM_MILLIS));
                return;
            }
        };
        if socket::peer_user(&server) != Ok(process::own_user()) {
            return;
        }
        self.server = Some(server);
        self.origin = Origin::Successor;
        self.filled = 0;
        self.follow = None;
        let [started, exited] = hints;
        self.send([
            Some(Report::Hello {
                shim_pid: process::own_pid(),
            }),
            started,
            exited,
        ]);
    }

    /// The next order, if a whole one is there. One that this build does not know is passed over.
    pub(super) fn receive(&mut self) -> Option<Order> {
        loop {
            let server = self.server.as_ref()?;
            let room = self.inbox.get_mut(self.filled..)?;
            match socket::receive(server, room) {
                Ok(len @ 1..) => self.filled += len,
                Err(Errno::EAGAIN | Errno::EINTR) => return None,
                Ok(_) | Err(_) => {
                    self.server = None;
                    return None;
                }
            }
            if self.filled >= MESSAGE {
                self.filled = 0;
                if let Some(order) = Order::decode(&self.inbox) {
                    return Some(order);
                }
            }
        }
    }

    /// Sends reports in one piece.
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
            self.server = None;
        }
    }

    /// Has no more to do with the server.
    pub(super) fn hang_up(&mut self) {
        self.server = None;
    }

    /// Tells once of output beyond an offset.
    pub(super) fn follow(&mut self, beyond: u64) {
        self.follow = Some(beyond);
    }

    /// Tells of output, if somebody waits for it.
    pub(super) fn output_is_at(&mut self, end: u64) {
        if self.follow.is_some_and(|beyond| end > beyond) {
            self.follow = None;
            self.send([Some(Report::Output { end })]);
        }
    }
}
