//! The relay of a task's streams to a client's own descriptors (`heeler_shim::relay`).
//!
//! ```text
//! client's stdin ──> input buffer ──> task ──> capture ──┬──> client's stdout, stderr
//!                                                        └──> task file
//! ```
//!
//! One client at a time. Nothing here blocks. A client that does not read keeps the task waiting for a bounded time,
//! except for waits so short that a pipe would cause them, too.

mod allowance;
mod ends;

use heeler_shim::{
    log::Stream,
    relay::{ANSWER_MILLIS, FirstMessage, VERSION, relay_name},
};

use super::{input::Input, listener::Listener};
use crate::program::{
    clock::Moment,
    pages::{BUFFER, Pages},
    sys::{
        Errno, Fd, file,
        signals::{Poll, Timeout},
        socket,
    },
};
use ends::{End, Ends};

/// The place at which a client connects, and the client.
pub(crate) struct Relay {
    listener: Option<Listener>,
    client: Option<Client>,
    /// The last one, which has to be told.
    ended: Option<Ended>,
}

struct Client {
    socket: Fd,
    stage: Stage,
}

/// A relay that has ended.
struct Ended {
    socket: Fd,
    /// The offset of the first byte of output that was not relayed.
    at: u64,
}

enum Stage {
    /// Its descriptors are awaited.
    New(Moment),
    /// It writes the output before the offset itself.
    Catching(Ends, Moment),
    Relaying(Ends),
    /// One of its pipes is full.
    Blocked(Ends, Unwritten, Moment),
}

/// Output that was captured and not relayed.
struct Unwritten {
    stream: Stream,
    bytes: Pages,
    start: usize,
    end: usize,
}

impl Relay {
    /// No relay: for a task without a pipe as its stdin.
    pub(super) fn none() -> Self {
        Self {
            listener: None,
            client: None,
            ended: None,
        }
    }

    /// Listens for a client. A name that cannot be bound costs the relay alone.
    pub(super) fn listen(task_uid: &[u8; 16]) -> Self {
        Self {
            listener: Listener::bind(&relay_name(task_uid)).ok(),
            client: None,
            ended: None,
        }
    }

    /// The polls for a client, for its messages, for its stdin and for room in its pipe.
    pub(super) fn polls(&mut self, input: &Input) -> [Poll; 4] {
        // One client at a time.
        let listener = self.listener.as_mut().filter(|_| self.client.is_none());
        let next = listener.map_or(Poll::new(None), Listener::poll);
        let (stdin, blocked) = match self.client.as_ref().map(|client| &client.stage) {
            Some(Stage::Relaying(ends)) => (ends.stdin.as_ref(), None),
            Some(Stage::Blocked(ends, unwritten, _)) => {
                (ends.stdin.as_ref(), Some(ends.output(unwritten.stream)))
            }
            Some(Stage::New(_) | Stage::Catching(..)) | None => (None, None),
        };
        let stdin = stdin.filter(|_| input.is_open() && input.is_empty());
        [
            next,
            Poll::new(self.client.as_ref().map(|client| &client.socket)),
            Poll::new(stdin.map(End::fd)),
            Poll::for_writing(blocked.map(End::fd), blocked.is_some()),
        ]
    }

    /// Returns whether output may be read from the task now.
    pub(crate) fn takes_output(&self) -> bool {
        let stage = self.client.as_ref().map(|client| &client.stage);
        match stage {
            Some(Stage::Catching(..) | Stage::Blocked(..)) => false,
            Some(Stage::New(_) | Stage::Relaying(_)) | None => true,
        }
    }

    /// Returns whether a client has handed over its descriptors: the task gets its input from them.
    pub(super) fn is_under_way(&self) -> bool {
        let stage = self.client.as_ref().map(|client| &client.stage);
        match stage {
            Some(Stage::Catching(..) | Stage::Relaying(_) | Stage::Blocked(..)) => true,
            Some(Stage::New(_)) | None => false,
        }
    }

    /// Returns whether a client has connected and handed over no descriptors yet.
    pub(super) fn is_new(&self) -> bool {
        let stage = self.client.as_ref().map(|client| &client.stage);
        matches!(stage, Some(Stage::New(_)))
    }

    /// The longest wait that misses no deadline.
    pub(super) fn timeout(&self) -> Timeout {
        match (self.due(), &self.client, &self.listener) {
            (Some(due), _, _) => Timeout::Millis(due.millis_from(Moment::now())),
            (None, None, Some(listener)) => listener.timeout(),
            (None, Some(_), _) | (None, None, None) => Timeout::Never,
        }
    }

    fn due(&self) -> Option<Moment> {
        match &self.client.as_ref()?.stage {
            Stage::New(due) | Stage::Catching(_, due) | Stage::Blocked(_, _, due) => Some(*due),
            Stage::Relaying(_) => None,
        }
    }

    /// Handles what is ready, and ends a relay whose time is over. `end`: the end of the output.
    pub(super) fn attend(&mut self, polls: &[Poll; 4], input: &mut Input, end: u64) {
        let [next, message, stdin, room] = polls;
        if next.is_ready() {
            self.accept();
        }
        if room.is_ready() {
            self.write_rest();
        }
        if stdin.is_ready() {
            self.read_stdin(input);
        }
        if message.is_ready() {
            self.receive(input, end);
        }
        if self.due().is_some_and(|due| due <= Moment::now()) {
            self.end();
        }
    }

    fn accept(&mut self) {
        let socket = self.listener.as_mut().and_then(Listener::accept);
        self.client = socket.map(|socket| Client {
            socket,
            stage: Stage::New(Moment::now().after(ANSWER_MILLIS)),
        });
    }

    /// Takes a message of the client. Only the writer that has the input begins a relay.
    fn receive(&mut self, input: &Input, end: u64) {
        let Some(Client { socket, stage }) = self.client.take() else {
            return;
        };
        let mut message = [0; size_of::<FirstMessage>()];
        let (len, descriptors) = match socket::receive_descriptors(&socket, &mut message) {
            Err(Errno::EAGAIN | Errno::EINTR) => {
                self.client = Some(Client { socket, stage });
                return;
            }
            Ok(received) => received,
            Err(_) => (0, [None, None, None]),
        };
        let due = Moment::now().after(ANSWER_MILLIS);
        let next = match (stage, message.get(..len)) {
            (Stage::New(_), Some([VERSION, writer @ ..])) if input.is_held_by(writer) => {
                let ends = Ends::of(descriptors, end);
                let ends = ends.filter(|_| socket::send(&socket, &end.to_le_bytes()).is_ok());
                ends.map(|ends| Stage::Catching(ends, due))
            }
            (Stage::Catching(ends, _), Some([VERSION])) => Some(Stage::Relaying(ends)),
            // It has closed the connection, is not the writer, or is out of step.
            (stage, _) => {
                self.client = Some(Client { socket, stage });
                return self.end();
            }
        };
        self.client = next.map(|stage| Client { socket, stage });
    }

    /// Passes the client's stdin on.
    fn read_stdin(&mut self, input: &mut Input) {
        let stage = self.client.as_mut().map(|client| &mut client.stage);
        let Some(Stage::Relaying(ends) | Stage::Blocked(ends, ..)) = stage else {
            return;
        };
        let Some(stdin) = &ends.stdin else { return };
        let read = match stdin {
            End::Pipe(pipe) => input.draw(pipe),
            End::Socket(socket) => {
                let read = socket::receive(socket, input.space());
                read.inspect(|len| input.take(*len))
            }
        };
        match read {
            Ok(1..) | Err(Errno::EAGAIN | Errno::EINTR) => {}
            // A socket that was reset is at its end as well.
            Ok(_) | Err(_) => {
                input.close_behind();
                ends.stdin = None;
            }
        }
    }

    /// Relays up to so much output without a copy, and leaves it in the task's pipe; returns the number of bytes.
    /// `None` if it has to be copied, or there is none. `at`: its offset.
    pub(crate) fn pass(
        &mut self,
        stream: Stream,
        from: &Fd,
        most: usize,
        at: u64,
    ) -> Option<usize> {
        let Stage::Relaying(ends) = &mut self.client.as_mut()?.stage else {
            return None;
        };
        let End::Pipe(to) = ends.output(stream) else {
            return None;
        };
        if file::has_few(from) {
            return None;
        }
        let len = file::tee(from, to, most).ok().filter(|len| *len > 0)?;
        ends.at = at + len as u64;
        Some(len)
    }

    /// Relays output that was read from the task. `at`: its offset.
    pub(crate) fn put(&mut self, stream: Stream, bytes: &[u8], at: u64) {
        let ends = match self.client.as_mut().map(|client| &mut client.stage) {
            None | Some(Stage::New(_)) => return,
            Some(Stage::Relaying(ends)) => ends,
            // Read though the client does not take it, at the end of the leader.
            Some(Stage::Catching(..) | Stage::Blocked(..)) => return self.end(),
        };
        ends.at = at;
        let (written, result) = ends.write(stream, bytes);
        if result.is_ok() {
            return;
        }
        let rest = bytes.get(written..).unwrap_or_default();
        match (result, Pages::new(BUFFER), self.client.take()) {
            (
                Err(Errno::EAGAIN),
                Ok(mut pages),
                Some(Client {
                    socket,
                    stage: Stage::Relaying(mut ends),
                }),
            ) if rest.len() <= BUFFER => {
                if let Some(room) = pages.bytes().get_mut(..rest.len()) {
                    room.copy_from_slice(rest);
                }
                let unwritten = Unwritten {
                    stream,
                    bytes: pages,
                    start: 0,
                    end: rest.len(),
                };
                let due = ends.allowance.begin_wait();
                let stage = Stage::Blocked(ends, unwritten, due);
                self.client = Some(Client { socket, stage });
            }
            (_, _, client) => {
                self.client = client;
                self.end();
            }
        }
    }

    /// Goes on with output that a full pipe did not take.
    fn write_rest(&mut self) {
        let Some(Client { stage, .. }) = &mut self.client else {
            return;
        };
        let Stage::Blocked(ends, unwritten, _) = stage else {
            return;
        };
        let rest = unwritten.bytes.shared().get(unwritten.start..unwritten.end);
        let (written, result) = ends.write(unwritten.stream, rest.unwrap_or_default());
        unwritten.start += written;
        match result {
            Err(Errno::EAGAIN) => {}
            Err(_) => self.end(),
            Ok(()) => {
                if let Some(Client {
                    socket,
                    stage: Stage::Blocked(mut ends, ..),
                }) = self.client.take()
                {
                    ends.allowance.end_wait();
                    let stage = Stage::Relaying(ends);
                    self.client = Some(Client { socket, stage });
                }
            }
        }
    }

    /// Ends the relay.
    pub(super) fn end(&mut self) {
        let Some(Client { socket, stage }) = self.client.take() else {
            return;
        };
        self.ended = match stage {
            Stage::New(_) => None,
            Stage::Catching(ends, _) | Stage::Relaying(ends) | Stage::Blocked(ends, ..) => {
                Some(Ended {
                    socket,
                    at: ends.at,
                })
            }
        };
    }

    /// Tells the client of a relay that has ended how far it has got.
    pub(super) fn tell_end(&mut self) {
        if let Some(Ended { socket, at }) = self.ended.take() {
            // The client may be gone.
            let _ = socket::send(&socket, &at.to_le_bytes());
        }
    }
}
