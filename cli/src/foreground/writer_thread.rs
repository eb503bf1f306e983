//! Writes a task's output at once and in order, on its own thread: while a slow reader blocks a write, the
//! session still reacts to signals and keys.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    thread,
};

use heeler_client::Bytes;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::{mpsc, oneshot};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Stdout,
    Stderr,
}

#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) target: Target,
    pub(crate) bytes: Bytes,
}

#[derive(Debug)]
pub(crate) struct WriterThread {
    pieces: mpsc::Sender<Piece>,
    result: oneshot::Receiver<io::Result<()>>,
}

impl WriterThread {
    pub(crate) fn start() -> io::Result<Self> {
        // Without the buffers of the standard library, so that nothing is delayed.
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        // One piece is written while the next one waits; the daemon keeps the rest.
        let (pieces, mut queue) = mpsc::channel::<Piece>(1);
        let (done, result) = oneshot::channel();
        let write = move || {
            let written = write_all(&mut queue, &stdout, &stderr);
            // The session may have ended.
            let _ = done.send(written);
        };
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(write)?;
        Ok(Self { pieces, result })
    }

    /// Waits for room for a piece; none after a failed write.
    pub(crate) async fn reserve(&self) -> Option<mpsc::Permit<'_, Piece>> {
        self.pieces.reserve().await.ok()
    }

    /// Waits until a write has failed.
    pub(crate) async fn failed(&self) {
        self.pieces.closed().await;
    }

    /// The error of the write that failed.
    pub(crate) fn error(mut self) -> io::Error {
        match self.result.try_recv() {
            Ok(Err(error)) => error,
            Ok(Ok(())) | Err(_) => io::Error::other("the writer thread has exited"),
        }
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(self) -> io::Result<()> {
        drop(self.pieces);
        self.result
            .await
            .unwrap_or_else(|_| Err(io::Error::other("the writer thread has exited")))
    }
}

fn write_all(queue: &mut mpsc::Receiver<Piece>, stdout: &File, stderr: &File) -> io::Result<()> {
    while let Some(piece) = queue.blocking_recv() {
        let file = match piece.target {
            Target::Stdout => stdout,
            Target::Stderr => stderr,
        };
        write_piece(file, &piece.bytes)?;
    }
    Ok(())
}

/// Writes all bytes, also if another process has made the file non-blocking.
pub(super) fn write_piece(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_writable(file.as_fd())?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_writable(file: BorrowedFd<'_>) -> io::Result<()> {
    let mut wanted = [PollFd::new(file, PollFlags::POLLOUT)];
    match poll(&mut wanted, PollTimeout::NONE) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
