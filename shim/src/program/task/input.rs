//! The task's input: bytes from the server, kept here until the pipe or the terminal takes them.
//!
//! A byte counts as taken once it is here. The shim outlives the server, so the next one continues at the
//! count; and a task that does not read costs one buffer. The note is what one server leaves for the next.
//!
//! ```text
//!  server ──> buffer ──> pipe or terminal ──> task
//!        counted   │ written as far as there is room
//!                  └─ empty, and to be closed: the pipe is closed, a terminal gets its end-of-file character
//! ```

use heeler_shim::{
    input::{INPUT_BUFFER, InputState, TerminalSize},
    wire::{NOTE_PARTS, NotePart, Report, WRITER},
};

use crate::program::{
    pages::Pages,
    sys::{
        Errno, Fd, Result, file,
        signals::Poll,
        terminal::{self, Terminal},
    },
};

/// The shim's end of a task's input.
pub(super) enum Sink {
    Pipe(Fd),
    Terminal(Terminal),
}

impl Sink {
    fn fd(&self) -> &Fd {
        match self {
            Self::Pipe(pipe) => pipe,
            Self::Terminal(terminal) => &terminal.master,
        }
    }
}

/// The most bytes that are drawn at once. A pipe holds no more by default.
const MOST_DRAWN: usize = 1024 * 1024;

pub(super) struct Input {
    /// `None` if the task has no input, and once a pipe is closed. A terminal stays: it has a size.
    sink: Option<Sink>,
    state: InputState,
    /// The bytes that are not written yet: from `start` to `end` of the buffer.
    buffer: Pages,
    start: usize,
    end: usize,
    /// The task's pipe had no room for the bytes that wait in a client's pipe.
    is_full: bool,
    /// The memory of the buffer was used.
    touched: bool,
    taken: u64,
    /// The last byte that was taken.
    last: u8,
    /// Close the input behind the bytes that arrive.
    close_next: bool,
    /// Close the input once the buffer is empty.
    closing: bool,
    /// The room from which on the server wants a report.
    asked: Option<u64>,
    /// The count beyond which the server wants to be told that there is more.
    followed: Option<u64>,
    note: [NotePart; NOTE_PARTS],
}

/// An order that cannot be carried out: the server has lost track.
pub(super) struct OutOfStep;

impl Input {
    /// The input of a task with this sink, or of a task without input.
    pub(super) fn new(sink: Option<Sink>) -> Result<Self> {
        Ok(Self {
            state: match sink {
                Some(_) => InputState::Open,
                None => InputState::Missing,
            },
            buffer: match sink {
                Some(_) => Pages::new(INPUT_BUFFER)?,
                None => Pages::empty(),
            },
            sink,
            start: 0,
            end: 0,
            is_full: false,
            touched: false,
            taken: 0,
            last: b'\n',
            close_next: false,
            closing: false,
            asked: None,
            followed: None,
            note: [[0; 24]; NOTE_PARTS],
        })
    }

    /// The poll for room in the pipe or the terminal. A pipe also shows the end of its readers. The slave of a
    /// terminal stays open in this process, so its master shows none.
    pub(super) fn poll(&self) -> Poll {
        let wants_room = !self.is_empty();
        let is_of_interest = |sink: &&Sink| match sink {
            Sink::Pipe(_) => true,
            Sink::Terminal(_) => wants_room,
        };
        let sink = self.sink.as_ref().filter(is_of_interest);
        Poll::for_writing(sink.map(Sink::fd), wants_room)
    }

    /// Prepares for the bytes of an order.
    pub(super) fn expect(
        &mut self,
        offset: u64,
        bytes: u64,
        close: bool,
    ) -> core::result::Result<(), OutOfStep> {
        let fits = offset == self.taken && bytes <= self.room();
        match self.state {
            InputState::Open if fits => {}
            // The server does not know yet.
            InputState::Broken if bytes <= INPUT_BUFFER as u64 => {}
            InputState::Open | InputState::Broken | InputState::Missing | InputState::Closed => {
                return Err(OutOfStep);
            }
        }
        self.close_next = close;
        if self.end as u64 + bytes > INPUT_BUFFER as u64 {
            self.buffer.bytes().copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        Ok(())
    }

    /// The place for the bytes of an order.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.buffer.bytes().get_mut(self.end..).unwrap_or_default()
    }

    /// Takes bytes that were put into the space. Without a reader they are dropped.
    pub(super) fn take(&mut self, len: usize) {
        self.touched |= len > 0;
        if len == 0 || self.state != InputState::Open {
            return;
        }
        self.end = (self.end + len).min(INPUT_BUFFER);
        self.taken += len as u64;
        if let Some(last) = self.buffer.shared().get(self.end - 1) {
            self.last = *last;
        }
        self.write();
    }

    /// Moves bytes from a client's pipe to the task's, without a copy unless they are few, while nothing else waits
    /// for room; returns their number, and 0 at the end of the client's.
    pub(super) fn draw(&mut self, from: &Fd) -> Result<usize> {
        let Some(Sink::Pipe(pipe)) = &self.sink else {
            return Err(Errno::EAGAIN);
        };
        if self.is_empty() && file::has_few(from) {
            let read = file::read(from, self.space());
            if let Ok(len) = read {
                self.take(len);
                self.grow_if_full();
            }
            return read;
        }
        let drawn = file::splice(from, pipe, MOST_DRAWN);
        match drawn {
            Ok(len) => self.taken += len as u64,
            Err(Errno::EAGAIN) if file::waiting(from) > 0 => {
                self.is_full = true;
                self.grow_if_full();
            }
            Err(Errno::EPIPE) => {
                self.lose_readers();
                return Err(Errno::EAGAIN);
            }
            Err(_) => {}
        }
        drawn
    }

    /// Grows a pipe that had no room for all bytes.
    fn grow_if_full(&self) {
        if let Some(Sink::Pipe(pipe)) = &self.sink
            && !self.is_empty()
        {
            file::grow_pipe(pipe);
        }
    }

    /// Called when all bytes of an order have arrived.
    pub(super) fn complete(&mut self) {
        if self.close_next {
            self.close_behind();
        }
    }

    /// Closes the input behind the bytes that were taken.
    pub(super) fn close_behind(&mut self) {
        if self.state == InputState::Open {
            self.state = InputState::Closed;
            self.closing = true;
            self.write();
        }
    }

    /// Returns whether the input is an open pipe.
    pub(super) fn is_pipe(&self) -> bool {
        matches!(self.sink, Some(Sink::Pipe(_)))
    }

    /// Returns whether nothing waits for room in the pipe or the terminal.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end && !self.is_full
    }

    /// Returns whether more bytes can be taken.
    pub(super) fn is_open(&self) -> bool {
        self.state == InputState::Open
    }

    /// Writes what the pipe or the terminal has room for; called when it may have some, or no reader.
    pub(super) fn write(&mut self) {
        self.is_full = false;
        while self.start < self.end {
            let pending = self.buffer.shared().get(self.start..self.end);
            let (Some(sink), Some(pending)) = (&self.sink, pending) else {
                return;
            };
            match file::write(sink.fd(), pending) {
                Ok(len @ 1..) => self.start += len,
                Err(Errno::EINTR) => {}
                Ok(_) | Err(Errno::EAGAIN) => return,
                Err(_) => return self.lose_readers(),
            }
        }
        (self.start, self.end) = (0, 0);
        if self.closing {
            self.closing = false;
            self.close();
        }
    }

    /// Called when the poll is ready.
    pub(super) fn attend(&mut self, poll: Poll) {
        match poll.has_no_reader() {
            true => self.lose_readers(),
            false => self.write(),
        }
    }

    fn close(&mut self) {
        let Some(Sink::Terminal(terminal)) = &self.sink else {
            self.sink = None;
            return;
        };
        let (character, is_canonical) = terminal::end_of_file(&terminal.slave);
        // A line that is not ended takes one to be handed over, and another one to end the file.
        let count = if is_canonical && self.last != b'\n' {
            2
        } else {
            1
        };
        if let Some(space) = self.buffer.bytes().get_mut(..count) {
            space.fill(character);
            self.end = count;
            self.write();
        }
    }

    fn lose_readers(&mut self) {
        (self.start, self.end) = (0, 0);
        self.is_full = false;
        self.closing = false;
        if self.state == InputState::Open {
            self.state = InputState::Broken;
        }
        if let Some(Sink::Pipe(_)) = self.sink {
            self.sink = None;
        }
    }

    fn room(&self) -> u64 {
        match self.state {
            InputState::Open => (INPUT_BUFFER - (self.end - self.start)) as u64,
            InputState::Missing | InputState::Closed | InputState::Broken => 0,
        }
    }

    /// The state, as a report. `is_relayed`: the task gets its input from a client.
    pub(super) fn report(&self, is_relayed: bool) -> Report {
        let size = match &self.sink {
            Some(Sink::Terminal(terminal)) => terminal::size(&terminal.master),
            Some(Sink::Pipe(_)) | None => TerminalSize::default(),
        };
        Report::Input {
            taken: self.taken,
            room: self.room(),
            state: self.state,
            size,
            is_relayed,
        }
    }

    pub(super) fn ask(&mut self, room: u64) {
        self.asked = Some(room);
    }

    /// Tells the server once that the task was given more.
    pub(super) fn follow(&mut self) {
        self.followed = Some(self.taken);
    }

    /// Forgets what an earlier server has asked.
    pub(super) fn forget_questions(&mut self) {
        self.asked = None;
        self.followed = None;
    }

    /// Returns whether the task was given more than before the order to follow that; the order is then forgotten.
    pub(super) fn take_growth(&mut self) -> bool {
        let has_grown = self.followed.is_some_and(|taken| self.taken > taken);
        if has_grown {
            self.followed = None;
        }
        has_grown
    }

    /// Returns whether the question of the server can be answered now; it is then forgotten.
    pub(super) fn take_question(&mut self) -> bool {
        let room = self.room();
        let is_due = |asked: u64| room >= asked || self.state != InputState::Open;
        let due = self.asked.is_some_and(is_due);
        if due {
            self.asked = None;
        }
        due
    }

    pub(super) fn set_note(&mut self, part: u8, bytes: NotePart) {
        if let Some(place) = self.note.get_mut(usize::from(part)) {
            *place = bytes;
        }
    }

    /// Returns whether this is the id, filled with zeros, of the writer that has the input, by the note.
    pub(super) fn is_held_by(&self, writer: &[u8]) -> bool {
        let holder = self.note.as_flattened().get(..WRITER);
        writer.first().is_some_and(|first| *first != 0) && holder == Some(writer)
    }

    /// The whole note, as reports.
    pub(super) fn note(&self) -> [Option<Report>; NOTE_PARTS] {
        let report = |part: usize| Report::Note {
            part: part as u8,
            bytes: self.note[part],
        };
        [0, 1, 2, 3].map(|part| Some(report(part)))
    }

    pub(super) fn resize(&self, size: TerminalSize) {
        if let Some(Sink::Terminal(terminal)) = &self.sink {
            // Only a closed descriptor is refused.
            let _ = terminal::resize(&terminal.master, size);
        }
    }

    /// Returns whether [`Self::release_memory`] has something to do.
    pub(super) fn has_memory_to_release(&self) -> bool {
        self.touched && self.end == 0
    }

    /// Gives memory back, for use in a silence.
    pub(super) fn release_memory(&mut self) {
        if self.has_memory_to_release() {
            self.buffer.release();
            self.touched = false;
        }
    }
}
