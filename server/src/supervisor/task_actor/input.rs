//! Writes to the task's input, one after the other, and changes of its terminal's size.
//!
//! ```text
//!  inbox ──> queue ──> decide ──answer──> caller
//!                        │  ^
//!              to the shim  └── its report: the bytes are taken
//! ```
//!
//! A write is decided on again after each report of the shim, and after each new connection: what the shim
//! has taken is skipped then. One that has to wait for room is answered, and its caller comes again. During a relay the
//! count grows without reports: the shim is asked for it anew, or ends the relay before a write that changes the input.

use std::{collections::VecDeque, mem};

use super::{TaskActor, shim_connection::ShimConnection};
use crate::{
    crash,
    process::shim::{INPUT_BUFFER, InputState, NOTE_PARTS, NotePart, ShimOrder, ShimTerminalSize},
    supervisor::calls::input::{
        Decision, Given, InputEnd, InputError, InputReply, InputStanding, InputWrite, Writers,
        decide,
    },
    task::{Task, TerminalSize},
};

/// The largest room that a write waits for: half of what a shim keeps, so that it does not wait for each byte.
const ROOM: u64 = INPUT_BUFFER as u64 / 2;

/// The input of a task, as far as its actor knows it.
#[derive(Debug, Default)]
pub(super) struct InputPort {
    /// The latest report on this connection.
    given: Option<Given>,
    /// True if that report is older than a write that waits.
    is_stale: bool,
    note: [NotePart; NOTE_PARTS],
    /// True once the note of this connection was read. Reports before that are of no use: the writers are not known.
    has_note: bool,
    writers: Writers,
    /// The state was asked for, and not reported yet.
    has_asked: bool,
    /// The writes that are not answered, the one that is carried out first.
    queue: VecDeque<(InputWrite, InputReply<InputStanding>)>,
    /// The end of what the shim was given and has not reported yet.
    giving: Option<(u64, InputEnd)>,
    /// The callers that wait for a change of the terminal's size.
    resizes: VecDeque<(TerminalSize, InputReply<()>)>,
    /// The size that the terminal was given before it exists.
    early_size: Option<TerminalSize>,
}

/// The step of the shim that the next write waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    State,
    EndOfRelay,
}

impl InputPort {
    /// `None` if the task has no input.
    pub(super) fn of(task: &Task) -> Option<Box<Self>> {
        let has_input = task.spec.input.is_some() || task.spec.terminal.is_some();
        has_input.then(Box::default)
    }

    /// Forgets what was reported and asked on an earlier connection. A caller whose reply is dropped asks again.
    fn renew(&mut self) {
        (self.given, self.giving) = (None, None);
        (self.has_note, self.has_asked) = (false, false);
        self.resizes.clear();
    }

    /// Adds a write. Those whose callers have left are dropped: a shim that does not answer must not keep them.
    fn push(&mut self, write: InputWrite, reply: InputReply<InputStanding>) {
        let mut is_given = self.giving.is_some();
        self.queue
            .retain(|(_, reply)| mem::take(&mut is_given) || !reply.is_closed());
        self.queue.push_back((write, reply));
        self.is_stale = true;
    }

    fn report(&mut self, given: Given) {
        if !self.has_note {
            return;
        }
        self.given = Some(given);
        (self.is_stale, self.has_asked) = (false, false);
        if let Some((to, end)) = self.giving {
            let is_closed = end == InputEnd::Open || given.state != InputState::Open;
            if (given.bytes >= to && is_closed) || given.state == InputState::Broken {
                self.giving = None;
            }
        }
    }

    /// Returns what the next write waits for, if its turn has come. A report is good for ever where no relay goes on.
    fn awaited(&self) -> Option<Awaited> {
        let (write, _) = self.queue.front().filter(|_| self.giving.is_none())?;
        match self.given {
            None => Some(Awaited::State),
            Some(given) if !given.is_relayed => None,
            Some(_) if self.writers.may_change(write) => Some(Awaited::EndOfRelay),
            Some(_) => self.is_stale.then_some(Awaited::State),
        }
    }

    /// The next write that can be decided on, and what the decision depends on.
    fn next(&mut self) -> Option<(InputWrite, InputReply<InputStanding>, Given)> {
        while self.giving.is_none() && self.awaited().is_none() {
            let given = self.given?;
            let (mut write, reply) = self.queue.pop_front()?;
            if !reply.is_closed() {
                // From here on it is safe to repeat.
                write.offset.get_or_insert(given.bytes);
                return Some((write, reply, given));
            }
        }
        None
    }
}

impl TaskActor {
    pub(super) async fn write_input(
        &mut self,
        write: InputWrite,
        reply: InputReply<InputStanding>,
    ) {
        let Some(port) = &mut self.input else {
            let _ = reply.send(Err(InputError::Missing(self.life.task.id.clone())));
            return;
        };
        port.push(write, reply);
        self.know_unlaunched_input();
        self.carry_out_writes().await;
        self.prompt_shim().await;
    }

    /// Orders what the next write waits for. The shim reports the state of the input then.
    async fn prompt_shim(&mut self) {
        let Some(port) = self.input.as_mut().filter(|_| self.shim.is_connected()) else {
            return;
        };
        match port.awaited() {
            Some(Awaited::State) if !port.has_asked => {
                port.has_asked = true;
                self.shim.send(ShimOrder::AskInput { room: 0 }).await;
            }
            // A relay ends by a note.
            Some(Awaited::EndOfRelay) => {
                let writers = port.writers.clone();
                self.give(Some(writers), None).await;
            }
            Some(Awaited::State) | None => {}
        }
    }

    /// Begins anew with a new connection.
    pub(super) async fn renew_input(&mut self) {
        let Some(port) = &mut self.input else { return };
        port.renew();
        self.prompt_shim().await;
        self.channels.signs.input.notify_waiters();
    }

    /// Returns whether a shim has the task or had it.
    fn is_launched(&self) -> bool {
        let is_looked_for = !matches!(self.shim, ShimConnection::NotLaunched);
        self.life.task.started.is_some() || is_looked_for
    }

    /// A task that is not launched yet has been given nothing, and takes nothing.
    fn know_unlaunched_input(&mut self) {
        if self.is_launched() {
            return;
        }
        let size = self.terminal_size();
        if let Some(port) = &mut self.input {
            port.given = Some(Given {
                bytes: 0,
                room: 0,
                state: InputState::Open,
                size,
                is_relayed: false,
            });
        }
    }

    /// The size with which the task's terminal begins.
    pub(super) fn terminal_size(&self) -> Option<TerminalSize> {
        let early = self.input.as_ref().and_then(|port| port.early_size);
        let terminal = self.life.task.spec.terminal.as_ref();
        terminal.map(|terminal| early.unwrap_or(terminal.size))
    }

    /// Carries out the writes, as far as that is possible without a report of the shim.
    async fn carry_out_writes(&mut self) {
        while let Some(port) = &mut self.input
            && let Some((write, reply, given)) = port.next()
        {
            match decide(&self.life.task.id, &write, &given, &port.writers) {
                Err(error) => drop(reply.send(Err(error))),
                Ok(Decision::Answer {
                    standing,
                    writers,
                    missing_room,
                }) => {
                    // A dropped reply makes the caller ask again.
                    if self.give(writers, missing_room.map(ask_for_room)).await {
                        let _ = reply.send(Ok(standing));
                    }
                }
                Ok(Decision::Give {
                    from,
                    to,
                    end,
                    writers,
                }) => {
                    let bytes = &write.data[from..to];
                    let order = ShimOrder::Input {
                        offset: given.bytes,
                        bytes: bytes.len() as u64,
                        close: end == InputEnd::Close,
                    };
                    let order = [&order.encode(), bytes].concat();
                    port.giving = Some((given.bytes + bytes.len() as u64, end));
                    port.queue.push_front((write, reply));
                    crash::point("input.before-give");
                    self.give(writers, Some(order)).await;
                    crash::point("input.given");
                }
            }
        }
    }

    /// Leaves the writers with the shim, if they have changed, and sends an order after that. Returns false if that
    /// failed.
    async fn give(&mut self, writers: Option<Writers>, order: Option<Vec<u8>>) -> bool {
        let mut bytes = Vec::new();
        if let Some(writers) = writers {
            let note = (0..).zip(writers.encode());
            let note = note.map(|(part, bytes)| ShimOrder::Note { part, bytes }.encode());
            bytes.extend(note.flatten());
            if let Some(port) = &mut self.input {
                port.writers = writers;
            }
        }
        bytes.extend(order.into_iter().flatten());
        if bytes.is_empty() {
            return true;
        }
        self.shim.send_bytes(&bytes).await;
        !self.shim.is_unreachable()
    }

    pub(super) async fn resize_terminal(&mut self, size: TerminalSize, reply: InputReply<()>) {
        let is_launched = self.is_launched();
        let task = &self.life.task;
        let port = self.input.as_mut().filter(|_| task.spec.terminal.is_some());
        let Some(port) = port else {
            let _ = reply.send(Err(InputError::NoTerminal(task.id.clone())));
            return;
        };
        // A dropped reply makes the caller ask again.
        if !is_launched {
            port.early_size = Some(size);
            let _ = reply.send(Ok(()));
        } else if self.shim.is_connected() {
            port.resizes.push_back((size, reply));
            let TerminalSize { columns, rows } = size;
            let size = ShimTerminalSize { columns, rows };
            self.shim.send(ShimOrder::Resize { size }).await;
        }
    }

    /// The shim has changed the size of the terminal.
    pub(super) fn resized(&mut self) {
        let Some(port) = &mut self.input else { return };
        if let Some((size, reply)) = port.resizes.pop_front() {
            if let Some(given) = &mut port.given {
                given.size = Some(size);
            }
            let _ = reply.send(Ok(()));
        }
    }

    /// A part of the note that an earlier server may have left. Writers that came before the shim are left now. Only
    /// the first note of a connection counts: a later one may be older than a take-over by this server.
    pub(super) async fn read_note(&mut self, part: u8, bytes: NotePart) {
        let (Some(port), part) = (&mut self.input, usize::from(part)) else {
            return;
        };
        if port.has_note {
            return;
        }
        if let Some(place) = port.note.get_mut(part) {
            *place = bytes;
        }
        if part + 1 == NOTE_PARTS {
            port.has_note = true;
            match Writers::decode(&port.note) {
                none if none == Writers::default() => {
                    let early = port.writers.clone();
                    self.give((early != none).then_some(early), None).await;
                }
                writers => port.writers = writers,
            }
        }
    }

    /// The shim has reported the state of the input.
    pub(super) async fn input_reported(&mut self, mut given: Given) {
        if self.life.task.spec.terminal.is_none() {
            given.size = None;
        }
        let Some(port) = &mut self.input else { return };
        port.report(given);
        self.carry_out_writes().await;
        self.prompt_shim().await;
        self.channels.signs.input.notify_waiters();
    }

    /// Asks for a report of the next bytes that the task is given, by a server or by a relay.
    pub(super) async fn follow_input(&mut self) {
        self.shim.send(ShimOrder::FollowInput).await;
    }
}

/// An order to report when there is room for so many bytes, or for enough to go on.
fn ask_for_room(bytes: u64) -> Vec<u8> {
    let room = bytes.min(ROOM);
    ShimOrder::AskInput { room }.encode().to_vec()
}
