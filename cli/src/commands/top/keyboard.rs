//! The keys of the terminal, read by a thread as long as they are for this screen.

use std::{
    io::{self, PipeReader, PipeWriter},
    os::fd::AsFd,
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc;

/// Keys that may wait: as many as a person types while the screen is drawn.
const WAITING_KEYS: usize = 64;
/// The pause where crossterm does not see bytes that are there.
const UNSEEN: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Keyboard {
    events: mpsc::Receiver<Event>,
    /// Closed, it ends the thread. None: another process reads the keys.
    open: Option<PipeWriter>,
}

impl Keyboard {
    /// Starts to read keys and changes of the terminal's size, until the terminal is gone.
    pub(super) fn open() -> io::Result<Self> {
        let (closed, open) = io::pipe()?;
        let (send, events) = mpsc::channel(WAITING_KEYS);
        // The thread ends with the process, if not before.
        thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || drop(read(&closed, &send)))?;
        let open = Some(open);
        Ok(Self { events, open })
    }

    /// The next key; none once the terminal is gone.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Stops to read, and drops the keys that were typed ahead. Afterwards another process may read.
    pub(super) async fn close(&mut self) {
        drop(self.open.take());
        while self.events.recv().await.is_some() {}
    }
}

fn read(closed: &PipeReader, send: &mpsc::Sender<Event>) -> io::Result<()> {
    let stdin = io::stdin();
    loop {
        let mut wanted =
            [closed.as_fd(), stdin.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut wanted, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let [is_closed, is_typed] = wanted.map(|fd| fd.revents().unwrap_or(PollFlags::all()));
        // crossterm would read a terminal that is gone again and again.
        if !is_closed.is_empty() || is_typed.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
            return Ok(());
        }
        let mut has_read = false;
        while event::poll(Duration::ZERO)? {
            has_read = true;
            if send.blocking_send(event::read()?).is_err() {
                return Ok(());
            }
        }
        if !has_read {
            // Of many bytes at once, crossterm leaves some until the next key.
            thread::sleep(UNSEEN);
        }
    }
}
