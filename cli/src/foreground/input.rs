//! The input of a session: stdin, or the keys of a terminal, passed on to the task.

use std::{
    fs::File,
    io::{self, IsTerminal, Read},
    mem,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::FileTypeExt,
    },
    thread,
};

use heeler_client::{
    Bytes, Client, Error, InputOptions, Task,
    v1::{WriteInputRequest, WriteInputResponse},
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::{io::AsyncWriteExt, sync::mpsc};

use super::keyboard;
use crate::{args::input::InputArgs, failure::Failure, out};

/// The bytes of one read. The pieces that wait are few: the daemon keeps the rest in the pipe.
const PIECE: usize = 64 * 1024;
const PIECES: usize = 4;
/// The most pieces that are taken at once.
const TAKEN: usize = 64;

/// The origin of a task's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Nothing,
    /// Stdin to its end.
    Stdin,
    /// The keyboard of this terminal, for a terminal of the task.
    Keyboard,
}

impl Source {
    /// Stdin is passed on if it was asked for, and if it is a pipe, a socket or a file.
    pub(crate) fn of_run(args: &InputArgs) -> Result<Self, Failure> {
        if args.tty {
            return match keyboard::is_ours() {
                true => Ok(Self::Keyboard),
                false => {
                    let text = "-t needs a terminal on stdin; use -i alone to pass a pipe on";
                    Err(Failure::Usage(text.to_owned()))
                }
            };
        }
        Ok(match args.is_wanted() || is_piped() {
            true => Self::Stdin,
            false => Self::Nothing,
        })
    }
}

/// Returns whether stdin is a pipe, a socket or a file, also one without a name, as a shell's here-document is. False for
/// a terminal and `/dev/null`.
fn is_piped() -> bool {
    let metadata = || {
        let stdin = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        stdin.metadata().ok()
    };
    metadata().is_some_and(|stdin| {
        let kind = stdin.file_type();
        kind.is_fifo() || kind.is_socket() || kind.is_file()
    })
}

/// Starts a thread that tells once stdin has no writer and stdout no reader. It ends with the process.
fn tell_of_caller(gone: mpsc::Sender<()>) -> io::Result<()> {
    thread::Builder::new()
        .name("caller".to_owned())
        .spawn(move || {
            if await_no_writer() && await_no_reader() {
                let _ = gone.try_send(());
            }
        })?;
    Ok(())
}

/// An input that the shim passes on itself: only the caller is watched.
pub(crate) fn watch_caller(writer_id: &str) -> io::Result<PassedInput> {
    let (gone, caller_gone) = mpsc::channel(1);
    tell_of_caller(gone)?;
    Ok(PassedInput {
        // The shim passes the bytes on.
        passing: tokio::spawn(std::future::pending()),
        writer_id: writer_id.to_owned(),
        claims: mpsc::channel(1).1,
        caller_gone: Some(caller_gone),
    })
}

/// The input of a session.
#[derive(Debug)]
pub(crate) struct Input {
    pieces: mpsc::Receiver<Bytes>,
    at_end: AtEnd,
    options: InputOptions,
    /// Has a message when stdin has no writer, or has ended, and the reader of stdout is gone: so is the caller.
    caller_gone: Option<mpsc::Receiver<()>>,
}

/// The fate of the task's input at the end of the pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtEnd {
    Close,
    LeaveOpen,
}

impl Input {
    /// Stdin, read by a thread that ends with the process.
    pub(crate) fn stdin() -> io::Result<Self> {
        let (sender, pieces) = mpsc::channel(PIECES);
        let (gone, caller_gone) = mpsc::channel(1);
        // The reader waits behind a task that does not read.
        tell_of_caller(gone.clone())?;
        thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || {
                read_stdin(sender);
                if await_no_reader() {
                    let _ = gone.try_send(());
                }
            })?;
        Ok(Self {
            pieces,
            at_end: AtEnd::Close,
            options: InputOptions::default(),
            caller_gone: Some(caller_gone),
        })
    }

    /// The keys of a terminal. A terminal that is gone leaves the task's input open.
    pub(crate) fn keys(pieces: mpsc::Receiver<Bytes>) -> Self {
        Self {
            pieces,
            at_end: AtEnd::LeaveOpen,
            options: InputOptions::default(),
            caller_gone: None,
        }
    }

    /// Writes as this writer.
    pub(crate) fn writer_id(mut self, id: &str) -> Self {
        self.options = self.options.writer_id(id);
        self
    }

    /// Takes the input from a writer that has it.
    pub(crate) fn take_over(mut self) -> Self {
        self.options = self.options.take_over();
        self
    }

    /// Begins to pass it on to a task.
    pub(crate) fn pass_to(self, task: &Task) -> PassedInput {
        let Self {
            mut pieces,
            at_end,
            options,
            caller_gone,
        } = self;
        let mut writer = task.input_with(options);
        let writer_id = writer.writer_id().to_owned();
        // One claim that waits stands for all.
        let (claimed, claims) = mpsc::channel(1);
        let passing = tokio::spawn(async move {
            let passed = async {
                // A take-over happens before the first key.
                writer.flush().await?;
                let _ = claimed.try_send(());
                let mut is_first = true;
                let mut taken = Vec::new();
                while pieces.recv_many(&mut taken, TAKEN).await > 0 {
                    for piece in taken.drain(..) {
                        writer.write_all(&piece).await?;
                    }
                    if at_end == AtEnd::LeaveOpen {
                        // A person is told at once that a key is refused.
                        writer.flush().await?;
                        if mem::take(&mut is_first) {
                            let _ = claimed.try_send(());
                        }
                    }
                }
                match at_end {
                    AtEnd::Close => writer.shutdown().await,
                    AtEnd::LeaveOpen => writer.flush().await,
                }
            };
            match passed.await {
                // The task has closed its input, or has ended.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    out::note(&format!("the input is not passed on: {error}"));
                }
                Ok(()) | Err(_) => {}
            }
        });
        PassedInput {
            passing,
            writer_id,
            claims,
            caller_gone,
        }
    }
}

/// Input that is on its way.
#[derive(Debug)]
pub(crate) struct PassedInput {
    passing: tokio::task::JoinHandle<()>,
    writer_id: String,
    /// Has a message when this client may have the input from then on: at the start, after a take-over, and after the
    /// first write.
    claims: mpsc::Receiver<()>,
    caller_gone: Option<mpsc::Receiver<()>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputEvent {
    /// This client may have the task's input from now on.
    Claimed,
    CallerGone,
}

impl PassedInput {
    /// The next event; never returns if there is none. Cancel safe.
    pub(crate) async fn next(&mut self) -> InputEvent {
        loop {
            tokio::select! {
                Some(()) = self.claims.recv() => return InputEvent::Claimed,
                is_gone = is_gone(&mut self.caller_gone) => {
                    self.caller_gone = None;
                    if is_gone {
                        return InputEvent::CallerGone;
                    }
                }
            }
        }
    }

    /// The id by which the daemon knows this writer.
    pub(crate) fn writer_id(&self) -> &str {
        &self.writer_id
    }

    /// Lets other writers have the input of a task that continues, unless one of them has it.
    pub(crate) async fn release(self, client: &Client, task: &Task) {
        self.passing.abort();
        let holder = holder(client, task).await;
        if holder.is_ok_and(|holder| holder == self.writer_id) {
            let none = WriteInputRequest {
                take_over: true,
                ..question(task)
            };
            // The task may have ended.
            let _ = client.write_input(none).await;
        }
    }
}

/// The writer that has the input of a task; empty if none has.
pub(crate) async fn holder(client: &Client, task: &Task) -> Result<String, Error> {
    let WriteInputResponse { writer_id, .. } = client.write_input(question(task)).await?;
    Ok(writer_id)
}

/// A write of nothing, which changes nothing.
fn question(task: &Task) -> WriteInputRequest {
    WriteInputRequest {
        task_id: task.id().to_owned(),
        ..WriteInputRequest::default()
    }
}

/// Waits until it is known whether the caller is gone; never returns if that cannot be known.
async fn is_gone(caller_gone: &mut Option<mpsc::Receiver<()>>) -> bool {
    match caller_gone {
        Some(gone) => gone.recv().await.is_some(),
        None => std::future::pending().await,
    }
}

/// Reads to the end of stdin. A terminal that another process group has is read when it is this one's turn.
fn read_stdin(pieces: mpsc::Sender<Bytes>) {
    let mut stdin = io::stdin().lock();
    let mut buffer = vec![0; PIECE];
    loop {
        match stdin.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                let piece = Bytes::copy_from_slice(&buffer[..count]);
                if pieces.blocking_send(piece).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Waits until the writers of stdin are gone; false on an error.
fn await_no_writer() -> bool {
    await_hang_up(io::stdin().as_fd())
}

/// Waits until the reader of stdout is gone; false if stdout has none that can go.
fn await_no_reader() -> bool {
    let stdout = io::stdout();
    let has_reader = || {
        let stdout = File::from(stdout.as_fd().try_clone_to_owned().ok()?);
        let kind = stdout.metadata().ok()?.file_type();
        Some(kind.is_fifo() || kind.is_socket())
    };
    if stdout.is_terminal() || has_reader() != Some(true) {
        return false;
    }
    await_hang_up(stdout.as_fd())
}

/// Waits until the other side is gone; false on an error.
fn await_hang_up(fd: BorrowedFd<'_>) -> bool {
    loop {
        match poll(
            &mut [PollFd::new(fd, PollFlags::empty())],
            PollTimeout::NONE,
        ) {
            Ok(_) => return true,
            Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}
