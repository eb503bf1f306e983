//! The messages between a shim and the server: 32 bytes each, on a stream socket.
//!
//! The first server holds one end of a socket pair, on which the shim waits for [`Order::Begin`]. A
//! later one connects to the abstract socket [`socket_name`]; the shim closes the older connection
//! when a newer one comes, and greets it with [`Report::Hello`]. Each end checks that the other runs
//! as the same user.
//!
//! Behind a Begin come so many bytes: the task's UUID, then texts that each end in a NUL: the task
//! file, the memory file (or nothing), the cgroup (or nothing), the working directory, the program, its
//! arguments, its variables. Only a server and the shims that it has started itself speak of that, so
//! that they are of one build. All other messages are also between builds: each passes over what it does
//! not know.

use crate::record::Stage;

/// The version of this protocol, in every message.
pub const VERSION: u8 = 1;
/// The size of a message.
pub const MESSAGE: usize = 32;
/// A message as it is sent.
pub type MessageBytes = [u8; MESSAGE];

/// The abstract name of a task's socket, without the leading NUL: `heeler/` and the UUID in hex.
pub fn socket_name(task_uid: &[u8; 16]) -> [u8; 39] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut name = *b"heeler/00000000000000000000000000000000";
    for (i, byte) in task_uid.iter().enumerate() {
        name[7 + 2 * i] = HEX[usize::from(byte >> 4)];
        name[8 + 2 * i] = HEX[usize::from(byte & 15)];
    }
    name
}

/// From the server to a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Start the task that is described in the bytes behind this message. For a shim that waits;
    /// while it waits, it passes over all other orders.
    Begin {
        /// How many bytes.
        bytes: u64,
        /// How many arguments are among them.
        arguments: u64,
        /// How many variables.
        variables: u64,
    },
    /// Send this signal, then SIGCONT, to every process of the tree that can be found. Answered by
    /// [`Report::Signalled`].
    Signal {
        /// Its number.
        number: i32,
    },
    /// Kill the whole tree, and go on until it is empty. [`Report::Overdue`] comes once if that
    /// takes longer than this.
    Kill {
        /// How long it may take, in milliseconds.
        within_millis: u64,
    },
    /// Tell once, by [`Report::Output`], when there is output beyond this offset.
    Follow {
        /// What the reader has already.
        beyond: u64,
    },
    /// Move output that is in memory to the disk, and write there from now on. What is there already
    /// stays there.
    Spill,
    /// Once the leader has ended, wait for nobody else: record the end, with `abandoned` if others
    /// live on, and end. Taken back by a later Signal or Kill, and of no use during a kill.
    Abandon,
}

/// From a shim to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// The first message on a new connection, but for the very first.
    Hello {
        /// The shim's process id.
        shim_pid: u32,
    },
    /// The leader runs, or could not be started: the file's `Start` says which.
    Started,
    /// Nothing was started, and there is no file that could say so. The shim ends after this.
    CannotStart {
        /// What was being done.
        stage: Stage,
        /// The system's answer.
        errno: i32,
    },
    /// The leader has ended: see the file's `LeaderExit`.
    LeaderExited,
    /// The tree is empty: see the file's `TreeEnd`.
    TreeEnded {
        /// What becomes of the shim.
        shim: After,
    },
    /// A signal was sent.
    Signalled {
        /// Its number.
        number: i32,
        /// To how many processes.
        processes: u32,
        /// When, in microseconds since 1970.
        time_micros: u64,
    },
    /// The tree was to be empty by now and is not.
    Overdue,
    /// There is output up to here.
    Output {
        /// The offset behind the last byte.
        end: u64,
    },
}

/// What a shim does when its task is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It ends.
    Ends,
    /// It waits for another [`Order::Begin`], as long as the server keeps the connection.
    Waits,
}

impl Order {
    /// As it is sent.
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
            Self::Abandon => message(b'r', [0; 3]),
        }
    }

    /// From its bytes; `None` for one that this build does not know.
    pub fn decode(bytes: &MessageBytes) -> Option<Self> {
        let [a, b, c] = words(bytes);
        match bytes[0] {
            b'b' => Some(Self::Begin {
                bytes: a,
                arguments: b,
                variables: c,
            }),
            b's' => Some(Self::Signal {
                number: a as u32 as i32,
            }),
            b'k' => Some(Self::Kill { within_millis: a }),
            b'f' => Some(Self::Follow { beyond: a }),
            b'd' => Some(Self::Spill),
            b'r' => Some(Self::Abandon),
            _ => None,
        }
    }
}

impl Report {
    /// As it is sent.
    pub fn encode(&self) -> MessageBytes {
        match *self {
            Self::Hello { shim_pid } => message(b'H', [u64::from(shim_pid), 0, 0]),
            Self::Started => message(b'R', [0; 3]),
            Self::CannotStart { stage, errno } => {
                message(b'X', [u64::from(stage.code()), errno as u32 as u64, 0])
            }
            Self::LeaderExited => message(b'L', [0; 3]),
            Self::TreeEnded { shim: After::Ends } => message(b'T', [0; 3]),
            Self::TreeEnded { shim: After::Waits } => message(b'T', [1, 0, 0]),
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
        }
    }

    /// From its bytes; `None` for one that this build does not know.
    pub fn decode(bytes: &MessageBytes) -> Option<Self> {
        let [a, b, c] = words(bytes);
        match bytes[0] {
            b'H' => Some(Self::Hello { shim_pid: a as u32 }),
            b'R' => Some(Self::Started),
            b'X' => Some(Self::CannotStart {
                stage: Stage::from_code(u8::try_from(a).ok()?)?,
                errno: b as u32 as i32,
            }),
            b'L' => Some(Self::LeaderExited),
            b'T' => Some(Self::TreeEnded {
                shim: match a {
                    1 => After::Waits,
                    _ => After::Ends,
                },
            }),
            b'S' => Some(Self::Signalled {
                number: a as u32 as i32,
                processes: b as u32,
                time_micros: c,
            }),
            b'D' => Some(Self::Overdue),
            b'O' => Some(Self::Output { end: a }),
            _ => None,
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

fn words(bytes: &MessageBytes) -> [u64; 3] {
    core::array::from_fn(|i| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[8 + 8 * i..16 + 8 * i]);
        u64::from_le_bytes(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_round_trip() {
        for order in [
            Order::Begin {
                bytes: 1 << 40,
                arguments: 2,
                variables: 3,
            },
            Order::Signal { number: 15 },
            Order::Kill {
                within_millis: u64::MAX,
            },
            Order::Follow { beyond: 1 << 60 },
            Order::Spill,
            Order::Abandon,
        ] {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
        for report in [
            Report::Hello { shim_pid: u32::MAX },
            Report::Started,
            Report::CannotStart {
                stage: Stage::TaskFile,
                errno: 28,
            },
            Report::LeaderExited,
            Report::TreeEnded { shim: After::Ends },
            Report::TreeEnded { shim: After::Waits },
            Report::Signalled {
                number: 9,
                processes: 200,
                time_micros: 1 << 50,
            },
            Report::Overdue,
            Report::Output { end: 3 },
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
    }

    /// R8
    #[test]
    fn what_a_build_does_not_know_is_no_message() {
        let mut unknown = Order::Spill.encode();
        unknown[0] = b'?';
        assert_eq!(Order::decode(&unknown), None);
        assert_eq!(Report::decode(&unknown), None);
    }

    #[test]
    fn the_socket_is_named_for_the_task() {
        let name = socket_name(&[0xab; 16]);
        assert_eq!(&name, b"heeler/abababababababababababababababab");
    }
}
