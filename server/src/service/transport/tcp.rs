//! The way in over TCP: for whoever shows the token, and beyond this machine by TLS alone.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::{
    connection::Connection,
    listen::{Connections, ListenError, pause},
    tls::Tls,
    token::Token,
    unauthenticated::{Lobby, Watched},
};
use crate::{
    config::{Config, Listen},
    process::socket,
    service::Closing,
};

/// The TCP sockets that are listened on, if there are any.
#[derive(Debug, Default)]
pub struct Tcp {
    doors: Vec<Door>,
    guard: Option<Guard>,
}

/// What is needed as soon as there is one.
#[derive(Debug)]
struct Guard {
    token: Token,
    token_file: PathBuf,
}

#[derive(Debug)]
struct Door {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

impl Tcp {
    /// Binds every TCP address that was asked for. A connection waits until it is served.
    pub fn bind(config: &Config) -> Result<Self, ListenError> {
        let addresses: Vec<SocketAddr> = config.listen.iter().filter_map(Listen::tcp).collect();
        if addresses.is_empty() {
            return Ok(Self::default());
        }
        let tls = config.tls.as_ref().map(Tls::new).transpose()?;
        let exposed = addresses.iter().find(|address| !is_loopback(address.ip()));
        if let (None, Some(address)) = (&tls, exposed) {
            return Err(ListenError::Exposed { address: *address });
        }
        let doors = addresses
            .iter()
            .map(|address| {
                Door::bind(*address, tls.clone()).map_err(|source| ListenError::Tcp {
                    address: *address,
                    source,
                })
            })
            .collect::<Result<_, _>>()?;
        let guard = Guard {
            token: Token::of(&config.state_dir)?,
            token_file: Token::file(&config.state_dir),
        };
        Ok(Self {
            doors,
            guard: Some(guard),
        })
    }

    /// Where clients find it, in the order in which it was asked for.
    pub fn addresses(&self) -> impl Iterator<Item = String> {
        self.doors.iter().map(|door| door.named(door.address))
    }

    /// Where the server's own tasks find it.
    pub fn own_address(&self) -> Option<String> {
        let door = self.doors.first()?;
        Some(door.named(reachable(door.address)))
    }

    /// What a caller has to show.
    pub fn token(&self) -> Option<Token> {
        self.guard.as_ref().map(|guard| guard.token.clone())
    }

    /// Where a caller of this user finds it.
    pub fn token_file(&self) -> Option<PathBuf> {
        self.guard.as_ref().map(|guard| guard.token_file.clone())
    }

    /// Lets callers in until the server closes.
    pub(super) fn open(self, sender: &mpsc::Sender<io::Result<Connection>>, closing: &Closing) {
        let lobby = Lobby::default();
        for door in self.doors {
            let (sender, closing, lobby) = (sender.clone(), closing.clone(), lobby.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = door.accept(&lobby, &sender, &closing) => {}
                    () = closing.begun() => {}
                }
            });
        }
    }
}

impl Door {
    fn bind(address: SocketAddr, tls: Option<Tls>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            address,
            tls,
        })
    }

    fn named(&self, address: SocketAddr) -> String {
        match self.tls {
            Some(_) => format!("tls:{address}"),
            None => format!("tcp:{address}"),
        }
    }

    async fn accept(&self, lobby: &Lobby, sender: &Connections, closing: &Closing) {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    pause(&error).await;
                    continue;
                }
            };
            if let Err(error) = tune(&stream) {
                tracing::debug!(%error, "a connection was gone as it came");
                continue;
            }
            let stream = lobby.enter(stream);
            match &self.tls {
                None => {
                    if sender.send(Ok(Connection::Tcp(stream))).await.is_err() {
                        return;
                    }
                }
                Some(tls) => shake_hands(tls.clone(), stream, sender.clone(), closing.clone()),
            }
        }
    }
}

/// Beside the others: whoever is slow at it delays himself alone. The lobby bounds how many there
/// are, and for how long.
fn shake_hands(tls: Tls, stream: Watched<TcpStream>, sender: Connections, closing: Closing) {
    tokio::spawn(async move {
        let handshake = tokio::select! {
            handshake = tls.accept(stream) => handshake,
            () = closing.begun() => return,
        };
        match handshake {
            // A server that is closing takes no more of them.
            Ok(stream) => drop(sender.send(Ok(Connection::Tls(Box::new(stream)))).await),
            Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
        }
    });
}

fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    socket::notice_dead_peer(stream)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// "Any address" is nowhere to connect to.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// N2
    #[test]
    fn loopback_is_told_in_every_spelling() {
        for own in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert!(is_loopback(own.parse().unwrap()), "{own}");
        }
        for open in ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1"] {
            assert!(!is_loopback(open.parse().unwrap()), "{open}");
        }
    }

    #[test]
    fn tasks_are_told_an_address_that_can_be_connected_to() {
        let told = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(told("0.0.0.0:7"), "127.0.0.1:7");
        assert_eq!(told("[::]:7"), "[::1]:7");
        assert_eq!(told("10.0.0.1:7"), "10.0.0.1:7");
    }
}
