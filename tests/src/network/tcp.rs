//! A daemon's TCP addresses and its token.

use std::{
    fs,
    net::{Ipv4Addr, UdpSocket},
    path::PathBuf,
};

use heeler_client::{Address, Client, ConnectOptions, Error};
use tonic::transport::{Channel, Endpoint};

use crate::{Daemon, daemon::Builder, eventually_some};

impl Builder {
    /// Listens on this address in addition to the usual socket.
    pub fn also_on(self, address: &str) -> Self {
        self.arg("--listen")
            .arg("unix:{dir}/run/heeler/heeler.sock")
            .arg("--listen")
            .arg(address)
    }
}

impl Daemon {
    /// The TCP address that it has logged, e.g. `tcp:127.0.0.1:40123`.
    pub async fn remote_address(&self) -> String {
        let listening = "listening on t";
        eventually_some("a TCP address", || {
            let log = self.log();
            let line = log.lines().rfind(|line| line.contains(listening))?;
            line.split_once(" on ")
                .map(|(_, address)| address.to_owned())
        })
        .await
    }

    /// The port of its TCP address.
    pub async fn port(&self) -> u16 {
        let address = self.remote_address().await;
        let (_, port) = address.rsplit_once(':').expect("a port");
        port.parse().expect("a number")
    }

    pub fn token_file(&self) -> PathBuf {
        self.state_dir().join("token")
    }

    pub fn token(&self) -> String {
        let text = fs::read_to_string(self.token_file()).expect("a token");
        text.trim().to_owned()
    }

    /// A plain TCP connection without a token.
    pub async fn tcp_channel(&self) -> Channel {
        let uri = format!("http://127.0.0.1:{}", self.port().await);
        let endpoint = Endpoint::from_shared(uri).unwrap();
        endpoint.connect().await.expect("a listening daemon")
    }
}

/// Connects a client.
pub async fn client(address: &str, options: ConnectOptions) -> Result<Client, Error> {
    let address: Address = address.parse()?;
    Client::connect_with(address, options).await
}

/// An address of this machine that is not loopback, if it has one. Sends nothing.
pub fn own_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("198.51.100.1:9").ok()?;
    match socket.local_addr().ok()?.ip() {
        std::net::IpAddr::V4(ip) if !ip.is_loopback() => Some(ip),
        std::net::IpAddr::V4(_) | std::net::IpAddr::V6(_) => None,
    }
}
