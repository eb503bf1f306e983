//! Listening on TCP: callers present the token, and an address beyond loopback requires TLS.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use tokio::net::{TcpListener, TcpStream};

use super::{
    connection::{ConnectionLimit, Peer, Stream},
    listen::{ListenError, Sender, pause, refuse},
    shares::Share,
    tls::Tls,
    token::Token,
    unauthenticated::{Guarded, Unauthenticated},
};
use crate::{
    config::{Config, Listen},
    process::socket,
    service::Closing,
};

/// The protocols that TLS offers for gRPC, and for HTTP.
const GRPC: &[&str] = &["h2"];
const HTTP: &[&str] = &["h2", "http/1.1"];

/// The listening TCP sockets, if there are any.
#[derive(Debug, Default)]
pub(crate) struct Tcp {
    sockets: Vec<TcpSocket>,
    http: Option<TcpSocket>,
    secret: Option<Secret>,
}

/// The token, which every TCP socket needs.
#[derive(Debug)]
struct Secret {
    token: Token,
    token_file: PathBuf,
}

#[derive(Debug)]
struct TcpSocket {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

impl Tcp {
    /// Binds every configured TCP address. Connections wait until they are served.
    pub(crate) fn bind(config: &Config) -> Result<Self, ListenError> {
        let addresses: Vec<SocketAddr> = config.listen.iter().filter_map(Listen::tcp).collect();
        let http = config.http.as_ref().map(|http| http.address);
        if addresses.is_empty() && http.is_none() {
            return Ok(Self::default());
        }
        let tls = |protocols| config.tls.as_ref().map(|files| Tls::new(files, protocols));
        let (tls, http_tls) = (tls(GRPC).transpose()?, tls(HTTP).transpose()?);
        let exposed = (addresses.iter().chain(&http)).find(|address| !is_loopback(address.ip()));
        if let (None, Some(address)) = (&tls, exposed) {
            return Err(ListenError::Exposed { address: *address });
        }
        let bind = |address: &SocketAddr, tls: &Option<Tls>| {
            TcpSocket::bind(*address, tls.clone()).map_err(|source| ListenError::Tcp {
                address: *address,
                source,
            })
        };
        let sockets = addresses.iter().map(|address| bind(address, &tls));
        let sockets = sockets.collect::<Result<_, _>>()?;
        let http = http.map(|address| bind(&address, &http_tls)).transpose()?;
        let secret = Secret {
            token: Token::of(&config.state_dir)?,
            token_file: Token::file(&config.state_dir),
        };
        Ok(Self {
            sockets,
            http,
            secret: Some(secret),
        })
    }

    /// The scheme and the address for HTTP, if the server listens for it.
    pub(crate) fn http(&self) -> Option<(&'static str, SocketAddr)> {
        let socket = self.http.as_ref()?;
        let scheme = match socket.tls {
            Some(_) => "https",
            None => "http",
        };
        Some((scheme, socket.address))
    }

    /// The addresses for clients, in the order of the configuration.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> {
        self.sockets
            .iter()
            .map(|socket| socket.name_of(socket.address))
    }

    /// The address for the server's own tasks.
    pub(crate) fn own_address(&self) -> Option<String> {
        let socket = self.sockets.first()?;
        Some(socket.name_of(reachable(socket.address)))
    }

    /// The token that callers must present.
    pub(crate) fn token(&self) -> Option<Token> {
        self.secret.as_ref().map(|secret| secret.token.clone())
    }

    /// The path of the token file.
    pub(crate) fn token_file(&self) -> Option<PathBuf> {
        self.secret.as_ref().map(|secret| secret.token_file.clone())
    }

    /// Accepts connections until the server shuts down.
    pub(super) fn open(
        self,
        sender: &Sender,
        http: &Sender,
        limit: &ConnectionLimit,
        closing: &Closing,
    ) {
        let unauthenticated = Unauthenticated::default();
        let sockets = self.sockets.into_iter().map(|socket| (socket, sender));
        for (socket, sender) in sockets.chain(self.http.map(|socket| (socket, http))) {
            let accepting = Accepting {
                socket,
                unauthenticated: unauthenticated.clone(),
                limit: limit.clone(),
                sender: sender.clone(),
                closing: closing.clone(),
            };
            tokio::spawn(async move {
                tokio::select! {
                    () = accepting.run() => {}
                    () = accepting.closing.begun() => {}
                }
            });
        }
    }
}

impl TcpSocket {
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

    fn name_of(&self, address: SocketAddr) -> String {
        match self.tls {
            Some(_) => format!("tls:{address}"),
            None => format!("tcp:{address}"),
        }
    }
}

/// A TCP socket that accepts connections.
struct Accepting {
    socket: TcpSocket,
    unauthenticated: Unauthenticated,
    limit: ConnectionLimit,
    sender: Sender,
    closing: Closing,
}

impl Accepting {
    async fn run(&self) {
        loop {
            let (stream, address) = match self.socket.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    pause(&error).await;
                    continue;
                }
            };
            if let Err(error) = tune(&stream) {
                tracing::debug!(%error, "could not configure a new connection");
                continue;
            }
            let Some(place) = self.limit.place(address.ip()) else {
                refuse();
                continue;
            };
            let stream = self.unauthenticated.admit(stream);
            let peer = Peer::Remote(stream.authentication());
            match &self.socket.tls {
                None => {
                    let connection = self.limit.remote(Stream::Tcp(stream), peer, place);
                    if self.sender.send(Ok(connection)).await.is_err() {
                        return;
                    }
                }
                Some(tls) => self.shake_hands(tls.clone(), stream, peer, place),
            }
        }
    }

    /// Performs the handshake in a future of its own, so that a slow client delays no other. The limits
    /// on unauthenticated connections apply to it.
    fn shake_hands(&self, tls: Tls, stream: Guarded<TcpStream>, peer: Peer, place: Share) {
        let (limit, sender) = (self.limit.clone(), self.sender.clone());
        let closing = self.closing.clone();
        tokio::spawn(async move {
            let handshake = tokio::select! {
                handshake = tls.accept(stream) => handshake,
                () = closing.begun() => return,
            };
            match handshake {
                Ok(stream) => {
                    let connection = limit.remote(Stream::Tls(Box::new(stream)), peer, place);
                    // A server that is shutting down accepts no more connections.
                    drop(sender.send(Ok(connection)).await);
                }
                Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
            }
        });
    }
}

fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    socket::notice_dead_peer(stream)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Replaces "any address", to which a client cannot connect.
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
    fn loopback_is_recognised_in_every_spelling() {
        for own in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert!(is_loopback(own.parse().unwrap()), "{own}");
        }
        for open in ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1"] {
            assert!(!is_loopback(open.parse().unwrap()), "{open}");
        }
    }

    #[test]
    fn tasks_get_an_address_that_they_can_connect_to() {
        let told = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(told("0.0.0.0:7"), "127.0.0.1:7");
        assert_eq!(told("[::]:7"), "[::1]:7");
        assert_eq!(told("10.0.0.1:7"), "10.0.0.1:7");
    }
}
