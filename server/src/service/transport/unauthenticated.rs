//! TCP connections that have not shown the token yet: how many there may be, and for how long.
//!
//! Anybody can open one and say nothing, half a handshake or nonsense. So strangers have a bounded
//! number of places, of which the one who has waited longest loses his to the next who comes: those
//! who know the token are through in milliseconds, however many others stand there.

use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
    time::{Sleep, sleep},
};

/// How many strangers there may be: each is a descriptor, and perhaps a handshake.
const PLACES: usize = 256;
/// How long one may stay.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether a connection has shown the token.
#[derive(Debug, Clone, Default)]
pub struct Proof(Arc<AtomicBool>);

impl Proof {
    /// It has.
    pub(super) fn give(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_given(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Where strangers stand.
#[derive(Debug, Clone)]
pub(super) struct Lobby {
    strangers: Arc<Mutex<VecDeque<Stranger>>>,
    patience: Duration,
}

impl Default for Lobby {
    fn default() -> Self {
        Self {
            strangers: Arc::default(),
            patience: PATIENCE,
        }
    }
}

#[derive(Debug)]
struct Stranger {
    proof: Proof,
    send_away: oneshot::Sender<()>,
}

impl Stranger {
    fn is_here(&self) -> bool {
        !self.proof.is_given() && !self.send_away.is_closed()
    }
}

impl Lobby {
    /// Gives a connection a place, if need be that of another.
    pub(super) fn enter<S>(&self, stream: S) -> Watched<S> {
        let proof = Proof::default();
        let (send_away, sent_away) = oneshot::channel();
        let mut strangers = self
            .strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if strangers.len() >= PLACES {
            strangers.retain(Stranger::is_here);
        }
        if strangers.len() >= PLACES
            && let Some(first) = strangers.pop_front()
        {
            // It may be gone already.
            let _ = first.send_away.send(());
        }
        strangers.push_back(Stranger {
            proof: proof.clone(),
            send_away,
        });
        Watched {
            stream,
            proof,
            visit: Visit::Stranger {
                sent_away,
                patience: Box::pin(sleep(self.patience)),
            },
        }
    }
}

/// A connection that ends when its time as a stranger is over.
#[derive(Debug)]
pub struct Watched<S> {
    stream: S,
    proof: Proof,
    visit: Visit,
}

#[derive(Debug)]
enum Visit {
    Stranger {
        sent_away: oneshot::Receiver<()>,
        patience: Pin<Box<Sleep>>,
    },
    Known,
    Over,
}

impl<S> Watched<S> {
    /// Whether it has shown the token, to be said by whoever reads its calls.
    pub(super) fn proof(&self) -> Proof {
        self.proof.clone()
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if let Visit::Stranger {
            sent_away,
            patience,
        } = &mut self.visit
        {
            if self.proof.is_given() {
                self.visit = Visit::Known;
            } else if Pin::new(sent_away).poll(context).is_ready()
                || patience.as_mut().poll(context).is_ready()
            {
                self.visit = Visit::Over;
            }
        }
        match self.visit {
            Visit::Stranger { .. } | Visit::Known => Ok(()),
            Visit::Over => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "no token was shown in time",
            )),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check(context)?;
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    fn impatient() -> Lobby {
        Lobby {
            patience: Duration::ZERO,
            ..Lobby::default()
        }
    }

    fn visitor(lobby: &Lobby) -> (Watched<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(16);
        (lobby.enter(ours), theirs)
    }

    /// N3
    #[tokio::test]
    async fn a_stranger_who_shows_nothing_is_sent_away() {
        let (mut watched, _theirs) = visitor(&impatient());
        let error = watched.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(watched.read_u8().await.is_err(), "and does not come back");
    }

    /// N3
    #[tokio::test]
    async fn whoever_has_shown_the_token_may_stay() {
        let (mut watched, mut theirs) = visitor(&impatient());
        watched.proof().give();
        theirs.write_u8(7).await.unwrap();
        assert_eq!(watched.read_u8().await.unwrap(), 7);
    }

    /// N3
    #[tokio::test]
    async fn the_stranger_who_has_waited_longest_makes_room() {
        let lobby = Lobby::default();
        let (mut known, mut known_peer) = visitor(&lobby);
        known.proof().give();
        let mut strangers: Vec<_> = (0..PLACES).map(|_| visitor(&lobby)).collect();
        known_peer.write_u8(1).await.unwrap();
        assert_eq!(known.read_u8().await.unwrap(), 1, "its place was given up");
        let (mut next, mut next_peer) = visitor(&lobby);
        assert!(strangers[0].0.read_u8().await.is_err(), "the first goes");
        strangers[1].1.write_u8(2).await.unwrap();
        assert_eq!(strangers[1].0.read_u8().await.unwrap(), 2, "no other does");
        next_peer.write_u8(3).await.unwrap();
        assert_eq!(next.read_u8().await.unwrap(), 3);
    }
}
