//! The relay of this command's own streams: the task's shim reads stdin and writes stdout and stderr itself, so that
//! their bytes pass neither this process nor the daemon (`heeler_shim::relay`).
//!
//! It is an optimisation. Where it cannot be, or ends before the task, bytes take the usual way.

use std::{
    fs::{File, OpenOptions},
    io::{self, IoSlice, Read},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::{
            fs::{FileTypeExt, OpenOptionsExt},
            net::UnixStream as StdStream,
        },
    },
    thread,
    time::Duration,
};

use heeler_client::{StreamExt, Task};
use heeler_shim::relay::{ANSWER_MILLIS, VERSION, first_message, relay_name};
use nix::{
    fcntl::OFlag,
    sys::socket::{
        AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, connect, sendmsg,
        socket,
    },
    unistd::geteuid,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    sync::oneshot,
    time::{Instant, timeout, timeout_at},
};

use super::{output::ForegroundOutput, writer_thread::write_piece};

/// The time that a shim has for an answer.
const ANSWER_WITHIN: Duration = Duration::from_millis(ANSWER_MILLIS);
/// The time that a shim has to end a relay.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Relay {
    socket: UnixStream,
    /// The received part of the last message.
    end: [u8; 8],
    filled: usize,
    /// Present once the shim was asked to end the relay.
    deadline: Option<Instant>,
    /// Resolve when all bytes are copied to streams that are no pipes.
    copies: Vec<oneshot::Receiver<()>>,
}

impl Relay {
    /// Begins a relay of this command's streams as this writer, which has the task's input, behind the output so far,
    /// which is written up to `at`. `None` where bytes take the usual way.
    pub(crate) async fn begin(
        task: &Task,
        uid: &str,
        writer_id: &str,
        output: &mut ForegroundOutput,
        at: &mut u64,
    ) -> Option<Self> {
        let begun = async {
            let mut relay = Self::connect(uid, writer_id)?;
            let begin = relay.socket.read_u64_le().await.ok()?;
            print_before(task, output, at, begin).await?;
            relay.socket.write_u8(VERSION).await.ok()?;
            Some(relay)
        };
        timeout(ANSWER_WITHIN, begun).await.ok().flatten()
    }

    /// Connects to the shim of a task, and hands it the streams.
    fn connect(uid: &str, writer_id: &str) -> Option<Self> {
        let first = first_message(writer_id)?;
        let stdin = reading_end(io::stdin().as_fd())?;
        let socket = socket_of(uid)?;
        // Every user may bind any abstract name.
        if socket.peer_cred().ok()?.uid() != geteuid().as_raw() {
            return None;
        }
        let mut copies = Vec::new();
        let mut writing_end = |fd: BorrowedFd<'_>| match pipe_or_socket(fd, Access::Write) {
            Some(end) => Some(end),
            None => {
                let (end, copied) = copied_pipe(fd).ok()?;
                copies.push(copied);
                Some(end)
            }
        };
        let stdout = writing_end(io::stdout().as_fd())?;
        let stderr = writing_end(io::stderr().as_fd())?;
        let descriptors = [stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let message = [IoSlice::new(&first)];
        let flags = MsgFlags::MSG_NOSIGNAL;
        sendmsg::<()>(socket.as_raw_fd(), &message, &rights, flags, None).ok()?;
        Some(Self {
            socket,
            end: [0; 8],
            filled: 0,
            deadline: None,
            copies,
        })
    }

    /// Waits for the end of the relay; returns the offset of the first byte that was not relayed, or `None` if the
    /// shim was killed or does not answer. A terminal that takes nothing for a while delays it. Cancel safe.
    pub(crate) async fn ended(&mut self) -> Option<u64> {
        while let Some(room) = self
            .end
            .get_mut(self.filled..)
            .filter(|room| !room.is_empty())
        {
            let read = self.socket.read(room);
            let read = match self.deadline {
                Some(deadline) => timeout_at(deadline, read).await.ok()?,
                None => read.await,
            };
            match read {
                Ok(len @ 1..) => self.filled += len,
                Ok(_) | Err(_) => break,
            }
        }
        while let Some(copied) = self.copies.last_mut() {
            // The thread may have failed to write.
            let _ = copied.await;
            self.copies.pop();
        }
        (self.filled == self.end.len()).then(|| u64::from_le_bytes(self.end))
    }

    /// Asks the shim to end the relay.
    pub(crate) async fn leave(&mut self) {
        // It may have ended.
        let _ = self.socket.shutdown().await;
        self.deadline = Some(Instant::now() + ENDS_WITHIN);
    }
}

/// Writes the output from an offset to another.
async fn print_before(
    task: &Task,
    output: &mut ForegroundOutput,
    at: &mut u64,
    end: u64,
) -> Option<()> {
    let mut chunks = task.output_from(*at);
    while *at < end {
        let mut chunk = chunks.next().await?.ok()?;
        let wanted = usize::try_from(end - *at).ok()?;
        chunk.data.truncate(wanted);
        *at = chunk.end();
        output.put_chunk(chunk).ok()?;
        output.written().await.ok()?;
    }
    Some(())
}

/// Connects without blocking: other users may have filled the backlog.
fn socket_of(uid: &str) -> Option<UnixStream> {
    let digits = uid.replace('-', "");
    let uid = u128::from_str_radix(&digits, 16).ok()?;
    let address = UnixAddr::new_abstract(&relay_name(&uid.to_be_bytes())).ok()?;
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
    connect(socket.as_raw_fd(), &address).ok()?;
    UnixStream::from_std(StdStream::from(socket)).ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

fn reading_end(stdin: BorrowedFd<'_>) -> Option<OwnedFd> {
    pipe_or_socket(stdin, Access::Read)
}

/// A pipe that can be opened again, as the shim does so that it blocks for no other process, or a socket; `None` for
/// anything else.
fn pipe_or_socket(fd: BorrowedFd<'_>, access: Access) -> Option<OwnedFd> {
    let own = fd.try_clone_to_owned().ok()?;
    let file = File::from(own);
    let kind = file.metadata().ok()?.file_type();
    if kind.is_socket() {
        return Some(file.into());
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut again = OpenOptions::new();
    again
        .read(access == Access::Read)
        .write(access == Access::Write)
        .custom_flags(OFlag::O_NONBLOCK.bits());
    kind.is_fifo()
        .then(|| again.open(path).ok())
        .flatten()
        .map(OwnedFd::from)
}

/// A pipe whose bytes are copied to this file or terminal.
fn copied_pipe(to: BorrowedFd<'_>) -> io::Result<(OwnedFd, oneshot::Receiver<()>)> {
    let to = File::from(to.try_clone_to_owned()?);
    let (reader, writer) = io::pipe()?;
    let (done, copied) = oneshot::channel();
    thread::Builder::new()
        .name("copy".to_owned())
        .spawn(move || {
            // The shim ends the relay when nobody reads the pipe.
            let _ = copy(reader, &to);
            let _ = done.send(());
        })?;
    Ok((writer.into(), copied))
}

/// Copies a pipe through a buffer. `io::copy` would splice it, and hold the lock of the pipe for as long as a terminal takes
/// nothing: the shim could not even close its end.
fn copy(mut from: io::PipeReader, to: &File) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => write_piece(to, &buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
