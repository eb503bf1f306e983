//! What a task wrote, put out at once and in order. Writing has a thread of its own: whoever reads may
//! pause for as long as he likes, and signals and keys must be heard meanwhile.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    thread,
};

use heeler_client::Bytes;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::{mpsc, oneshot};

/// Where a piece goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Stdout,
    Stderr,
}

/// Something to be written.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) target: Target,
    pub(crate) bytes: Bytes,
}

/// The way out.
#[derive(Debug)]
pub(crate) struct Outlet {
    pieces: mpsc::Sender<Piece>,
    result: oneshot::Receiver<io::Result<()>>,
}

impl Outlet {
    pub(crate) fn open() -> io::Result<Self> {
        // Past the buffers of the standard library: nothing is held back.
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        // One on its way and one behind it; the daemon keeps the rest.
        let (pieces, mut inlet) = mpsc::channel::<Piece>(1);
        let (done, result) = oneshot::channel();
        let write = move || {
            let written = write_all(&mut inlet, &stdout, &stderr);
            // Whoever waited for it may have gone.
            let _ = done.send(written);
        };
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(write)?;
        Ok(Self { pieces, result })
    }

    /// Room for a piece; none once writing has failed.
    pub(crate) async fn room(&self) -> Option<mpsc::Permit<'_, Piece>> {
        self.pieces.reserve().await.ok()
    }

    /// Until writing has failed.
    pub(crate) async fn failed(&self) {
        self.pieces.closed().await;
    }

    /// What has failed.
    pub(crate) fn error(mut self) -> io::Error {
        match self.result.try_recv() {
            Ok(Err(error)) => error,
            Ok(Ok(())) | Err(_) => io::Error::other("the writer is gone"),
        }
    }

    /// Until everything is written, or the error that kept it from being so.
    pub(crate) async fn finish(self) -> io::Result<()> {
        drop(self.pieces);
        self.result
            .await
            .unwrap_or_else(|_| Err(io::Error::other("the writer is gone")))
    }
}

fn write_all(inlet: &mut mpsc::Receiver<Piece>, stdout: &File, stderr: &File) -> io::Result<()> {
    while let Some(piece) = inlet.blocking_recv() {
        let file = match piece.target {
            Target::Stdout => stdout,
            Target::Stderr => stderr,
        };
        write_piece(file, &piece.bytes)?;
    }
    Ok(())
}

/// All of it, also where somebody has made the file non-blocking.
fn write_piece(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => writable(file.as_fd())?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn writable(file: BorrowedFd<'_>) -> io::Result<()> {
    let mut wanted = [PollFd::new(file, PollFlags::POLLOUT)];
    match poll(&mut wanted, PollTimeout::NONE) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
