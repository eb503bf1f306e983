//! An abstract socket on which this user's processes connect.
//!
//! Every user can connect to it. The connections of others are dropped, and cause a bounded amount of work: after a
//! few of them there is a pause, and a client of this user waits in the backlog meanwhile.

use crate::program::{
    clock::Moment,
    sys::{
        Errno, Fd, Result, process,
        signals::{Poll, Timeout},
        socket,
    },
};

/// The most connections accepted in one wake-up: the whole backlog.
const ACCEPTS: usize = socket::BACKLOG;

/// The number of connections of other users in one wake-up that begins a pause.
const MANY_FOREIGN: usize = 4;

/// The length of a pause.
const PAUSE_MILLIS: u64 = 50;

pub(super) struct Listener {
    socket: Fd,
    /// The end of a pause.
    accept_from: Option<Moment>,
}

impl Listener {
    pub(super) fn bind<const N: usize>(name: &[u8; N]) -> Result<Self> {
        Ok(Self {
            socket: socket::listen(name)?,
            accept_from: None,
        })
    }

    /// The poll for a connection, except in a pause.
    pub(super) fn poll(&mut self) -> Poll {
        if self.accept_from.is_some_and(|from| from <= Moment::now()) {
            self.accept_from = None;
        }
        Poll::new(Some(&self.socket).filter(|_| self.accept_from.is_none()))
    }

    /// The longest wait that does not prolong a pause.
    pub(super) fn timeout(&self) -> Timeout {
        match self.accept_from {
            Some(_) => Timeout::Millis(PAUSE_MILLIS),
            None => Timeout::Never,
        }
    }

    /// Accepts the next connection of this user, and drops those of others before it.
    pub(super) fn accept(&mut self) -> Option<Fd> {
        for foreign in 0..ACCEPTS {
            match socket::accept(&self.socket) {
                Ok(peer) if socket::peer_user(&peer) == Ok(process::own_user()) => {
                    return Some(peer);
                }
                Ok(_) => {}
                Err(Errno::EAGAIN | Errno::EINTR) if foreign < MANY_FOREIGN => return None,
                // For lack of descriptors or memory the socket stays readable.
                Err(_) => break,
            }
        }
        self.accept_from = Some(Moment::now().after(PAUSE_MILLIS));
        None
    }
}
