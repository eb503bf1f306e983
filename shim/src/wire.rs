//! The messages between a shim and the server: 32 bytes each, on a stream socket.
//!
//! The server that starts a shim keeps one end of a socket pair, on which the shim waits for
//! [`Order::Begin`]. A later server connects to the abstract socket [`socket_name`]. The shim closes its
//! old connection when a new one comes, and sends [`Report::Hello`] on the new one. Each end checks
//! that the other runs as the same user.
//!
//! A Begin is followed by the task's description: its UUID, the limit on its output, its stdin, then texts that
//! each end in a NUL: the task file, the memory file (or nothing), the cgroup (or nothing), the working
//! directory, the program, its arguments, its variables. Only a server and the shims that it started
//! exchange it. An [`Order::Input`] is followed by bytes for the task. Nothing else has bytes behind it.
//!
//! Every message carries the protocol's version. An end that receives another version closes the
//! connection; a message of an unknown kind is skipped.

use crate::{
    input::{InputState, TerminalSize},
    record::Stage,
};

/// The version of this protocol.
pub const VERSION: u8 = 2;
pub const MESSAGE: usize = 32;
pub type MessageBytes = [u8; MESSAGE];

/// The number of parts of the note that a server leaves with a shim.
pub const NOTE_PARTS: usize = 4;
/// A part of a note.
pub type NotePart = [u8; 24];
/// The longest id of a writer. A note begins with the id of the writer that has the input, which admits that client to
/// the [`crate::relay`]; zeros fill the rest.
pub const WRITER: usize = NOTE_PARTS / 2 * size_of::<NotePart>();

/// Returns the abstract name of a task's socket, without the leading NUL: `heeler/` and the UUID in hex.
pub fn socket_name(task_uid: &[u8; 16]) -> [u8; 39] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut name = *b"heeler/00000000000000000000000000000000";
    for (i, byte) in task_uid.iter().enumerate() {
        name[7 + 2 * i] = HEX[usize::from(byte >> 4)];
        name[8 + 2 * i] = HEX[usize::from(byte & 15)];
    }
    name
}

/// A message from the server to a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Keep the task of the next [`Order::Begin`] after a failed attempt, for an [`Order::Restart`]. Skipped by a shim
    /// that has a task.
    KeepForRestart,
    /// Start the leader again, as this attempt. Skipped unless the attempt before it has ended.
    Restart { attempt: u32 },
    /// Make no further attempt: exit once the present one has ended. Unlike [`Order::Kill`], it is meant for the shim,
    /// and is obeyed between two attempts as well.
    GiveUp,
    /// Start the task described in the bytes behind this message. An idle shim skips all other orders.
    Begin {
        /// The length of the description.
        bytes: u64,
        arguments: u64,
        variables: u64,
    },
    /// Send this signal, then SIGCONT, to every process of the tree that can be found. Answered by
    /// [`Report::Signalled`].
    Signal { number: i32 },
    /// Kill the whole tree, and repeat until it is empty. [`Report::Overdue`] comes once if that takes
    /// longer than `within_millis`.
    Kill { within_millis: u64 },
    /// Send [`Report::Output`] once, when there is output beyond this offset.
    Follow { beyond: u64 },
    /// Move output from memory to disk, and write there from now on. No effect if it is on disk.
    Spill,
    /// Once the leader has exited, do not wait for the orphans: record the end, with `abandoned` if any
    /// live on, and exit. A later Signal or Kill cancels it; during a kill it has no effect.
    Abandon,
    /// Keep the output within so many bytes of disk from now on, by dropping the oldest behind the head.
    /// A higher number than an earlier one has no effect. Answered by [`Report::Stored`].
    LimitOutput { bytes: u64 },
    /// Give the bytes behind this message to the task, then close its input if `close` is set. Answered by
    /// [`Report::Input`]. The bytes begin at the end of what the shim was given, and are no more than it has
    /// room for: it closes the connection otherwise. It drops them if no process reads the input any more.
    Input {
        offset: u64,
        bytes: u64,
        close: bool,
    },
    /// Send the whole note and a [`Report::Input`] as soon as there is room for this many bytes, or the input is
    /// not open. 0: at once.
    AskInput { room: u64 },
    /// Send [`Report::InputGiven`] once, when the task is given more input.
    FollowInput,
    /// End the relay, if there is one, and keep this part of the note, for the next server.
    Note { part: u8, bytes: NotePart },
    /// Change the size of the task's terminal. Answered by [`Report::Resized`].
    Resize { size: TerminalSize },
}

/// A message from a shim to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// The first message on every connection but the shim's first.
    Hello { shim_pid: u32 },
    /// The leader runs or could not be started: see the file's `Start`.
    Started,
    /// Nothing was started, and no file says so. The shim exits after this.
    CannotStart { stage: Stage, errno: i32 },
    /// The leader has exited: see the file's `LeaderExit`.
    LeaderExited,
    /// The task has ended: see the file's `TreeEnd`.
    TreeEnded { shim: AfterTask },
    /// A signal was sent to this many processes.
    Signalled {
        number: i32,
        processes: u32,
        /// Microseconds since 1970.
        time_micros: u64,
    },
    /// The time that a kill was given is over, and the tree is not empty.
    Overdue,
    /// Output up to this offset is in the file.
    Output { end: u64 },
    /// Output is dropped from now on: see the file's `OutputState`.
    OutputLimit,
    /// The output takes this much of the disk, at most. Sent when it has grown by [`STORED_STEP`] and a
    /// sixteenth since the last report.
    Stored { bytes: u64 },
    /// Processes of the tree fork and exit without pause. Repeated every few seconds while they do: they
    /// leave little CPU time to others.
    Storm,
    /// The disk refuses a record. Repeated every second: the shim is well, and tries again.
    RecordRefused,
    /// The state of the input.
    Input {
        /// The number of bytes that the shim was given.
        taken: u64,
        /// The number of bytes that it has room for.
        room: u64,
        state: InputState,
        /// The present size of the terminal; zero without one.
        size: TerminalSize,
        /// A client gives the task its input (see [`crate::relay`]), and `taken` may have grown since. The beginning
        /// and the end of that are reported. An order with a note ends it.
        is_relayed: bool,
    },
    /// The task was given input after the order to follow it.
    InputGiven,
    /// A part of the note, all of which comes before the answer to an [`Order::AskInput`].
    Note { part: u8, bytes: NotePart },
    /// The terminal has the size that was ordered.
    Resized,
}

/// The least growth of stored output that is reported.
pub const STORED_STEP: u64 = 64 * 1024;

/// The next step of a shim whose task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterTask {
    /// It exits.
    Ends,
    /// It waits for another [`Order::Begin`] while the server keeps the connection.
    Waits,
    /// It keeps the task, and waits for an [`Order::Restart`] of this server or of another one. An
    /// [`Order::GiveUp`] ends it.
    Keeps,
}

/// The reason why a message cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownMessage {
    /// The sender speaks another version of the protocol.
    Version(u8),
    /// The kind, or a value in it, is not known.
    Kind(u8),
}

impl Order {
    pub fn encode(&self) -> MessageBytes {
        match *self {
            Self::Begin {
                bytes,
                arguments,
                variables,
            } => message(b'b', [bytes, arguments, variables]),
            Self::Signal { number } => message(b's', [number as u32 as u64, 0, 0]),
            Self::Kill { within_millis } => message(b'k', [within_millis, 0, 0]),
            Self::Follow { beyond } => message(b'f', [beyond, 0, 0]),
            Self::Spill => message(b'd', [0; 3]),
            Self::Abandon => message(b'a', [0; 3]),
            Self::LimitOutput { bytes } => message(b'l', [bytes, 0, 0]),
            Self::KeepForRestart => message(b'p', [0; 3]),
            Self::Restart { attempt } => message(b'r', [u64::from(attempt), 0, 0]),
            Self::GiveUp => message(b'g', [0; 3]),
            Self::Input {
                offset,
                bytes,
                close,
            } => message(b'i', [offset, bytes, u64::from(close)]),
            Self::AskInput { room } => message(b'q', [room, 0, 0]),
            Self::FollowInput => message(b'w', [0; 3]),
            Self::Note { part, bytes } => note(b'n', part, &bytes),
            Self::Resize { size } => message(b'z', [size.word(), 0, 0]),
        }
    }

    pub fn decode(bytes: &MessageBytes) -> Result<Self, UnknownMessage> {
        let (kind, [a, b, c]) = parts(bytes)?;
        match kind {
            b'b' => Ok(Self::Begin {
                bytes: a,
                arguments: b,
                variables: c,
            }),
            b's' => Ok(Self::Signal {
                number: a as u32 as i32,
            }),
            b'k' => Ok(Self::Kill { within_millis: a }),
            b'f' => Ok(Self::Follow { beyond: a }),
            b'd' => Ok(Self::Spill),
            b'a' => Ok(Self::Abandon),
            b'l' => Ok(Self::LimitOutput { bytes: a }),
            b'p' => Ok(Self::KeepForRestart),
            b'r' => Ok(Self::Restart { attempt: a as u32 }),
            b'g' => Ok(Self::GiveUp),
            b'i' => Ok(Self::Input {
                offset: a,
                bytes: b,
                close: c != 0,
            }),
            b'q' => Ok(Self::AskInput { room: a }),
            b'w' => Ok(Self::FollowInput),
            b'n' => Ok(Self::Note {
                part: bytes[PART],
                bytes: note_part(bytes),
            }),
            b'z' => Ok(Self::Resize {
                size: TerminalSize::of_word(a),
            }),
            _ => Err(UnknownMessage::Kind(kind)),
        }
    }
}

impl Report {
    pub fn encode(&self) -> MessageBytes {
        match *self {
            Self::Hello { shim_pid } => message(b'H', [u64::from(shim_pid), 0, 0]),
            Self::Started => message(b'R', [0; 3]),
            Self::CannotStart { stage, errno } => {
                message(b'X', [u64::from(stage.code()), errno as u32 as u64, 0])
            }
            Self::LeaderExited => message(b'L', [0; 3]),
            Self::TreeEnded {
                shim: AfterTask::Ends,
            } => message(b'T', [0; 3]),
            Self::TreeEnded {
                shim: AfterTask::Waits,
            } => message(b'T', [1, 0, 0]),
            Self::TreeEnded {
                shim: AfterTask::Keeps,
            } => message(b'T', [2, 0, 0]),
            Self::Signalled {
                number,
                processes,
                time_micros,
            } => message(
                b'S',
                [number as u32 as u64, u64::from(processes), time_micros],
            ),
            Self::Overdue => message(b'D', [0; 3]),
            Self::Output { end } => message(b'O', [end, 0, 0]),
            Self::OutputLimit => message(b'M', [0; 3]),
            Self::Stored { bytes } => message(b'B', [bytes, 0, 0]),
            Self::Storm => message(b'W', [0; 3]),
            Self::RecordRefused => message(b'N', [0; 3]),
            Self::Input {
                taken,
                room,
                state,
                size,
                is_relayed,
            } => {
                let relayed = u64::from(is_relayed) << RELAYED;
                let state = state.code() | relayed | size.word() << 32;
                message(b'I', [taken, room, state])
            }
            Self::InputGiven => message(b'G', [0; 3]),
            Self::Note { part, bytes } => note(b'P', part, &bytes),
            Self::Resized => message(b'Z', [0; 3]),
        }
    }

    pub fn decode(bytes: &MessageBytes) -> Result<Self, UnknownMessage> {
        let (kind, [a, b, c]) = parts(bytes)?;
        match kind {
            b'H' => Ok(Self::Hello { shim_pid: a as u32 }),
            b'R' => Ok(Self::Started),
            b'X' => {
                let stage = u8::try_from(a).ok().and_then(Stage::from_code);
                Ok(Self::CannotStart {
                    stage: stage.ok_or(UnknownMessage::Kind(kind))?,
                    errno: b as u32 as i32,
                })
            }
            b'L' => Ok(Self::LeaderExited),
            b'T' => Ok(Self::TreeEnded {
                shim: match a {
                    0 => AfterTask::Ends,
                    1 => AfterTask::Waits,
                    2 => AfterTask::Keeps,
                    _ => return Err(UnknownMessage::Kind(kind)),
                },
            }),
            b'S' => Ok(Self::Signalled {
                number: a as u32 as i32,
                processes: b as u32,
                time_micros: c,
            }),
            b'D' => Ok(Self::Overdue),
            b'O' => Ok(Self::Output { end: a }),
            b'M' => Ok(Self::OutputLimit),
            b'B' => Ok(Self::Stored { bytes: a }),
            b'W' => Ok(Self::Storm),
            b'N' => Ok(Self::RecordRefused),
            b'I' => Ok(Self::Input {
                taken: a,
                room: b,
                state: InputState::from_code(c & 0xff).ok_or(UnknownMessage::Kind(kind))?,
                size: TerminalSize::of_word(c >> 32),
                is_relayed: c >> RELAYED & 1 == 1,
            }),
            b'G' => Ok(Self::InputGiven),
            b'P' => Ok(Self::Note {
                part: bytes[PART],
                bytes: note_part(bytes),
            }),
            b'Z' => Ok(Self::Resized),
            _ => Err(UnknownMessage::Kind(kind)),
        }
    }
}

fn message(kind: u8, words: [u64; 3]) -> MessageBytes {
    let mut out = [0; MESSAGE];
    out[0] = kind;
    out[1] = VERSION;
    for (i, word) in words.iter().enumerate() {
        out[8 + 8 * i..16 + 8 * i].copy_from_slice(&word.to_le_bytes());
    }
    out
}

/// The bit of a report of the input that says where the task gets its input from.
const RELAYED: u32 = 8;

/// The place of a note part's number in its message.
const PART: usize = 2;

fn note(kind: u8, part: u8, bytes: &NotePart) -> MessageBytes {
    let mut out = message(kind, [0; 3]);
    out[PART] = part;
    out[8..].copy_from_slice(bytes);
    out
}

fn note_part(message: &MessageBytes) -> NotePart {
    let mut part = [0; 24];
    part.copy_from_slice(&message[8..]);
    part
}

fn parts(bytes: &MessageBytes) -> Result<(u8, [u64; 3]), UnknownMessage> {
    let [kind, version, ..] = *bytes;
    if version != VERSION {
        return Err(UnknownMessage::Version(version));
    }
    let words = core::array::from_fn(|i| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[8 + 8 * i..16 + 8 * i]);
        u64::from_le_bytes(word)
    });
    Ok((kind, words))
}

#[cfg(test)]
mod tests;
