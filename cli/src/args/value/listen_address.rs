//! The addresses of `heeler serve --listen`.

use std::{
    env,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    str::FromStr,
};

use heeler_client::{Address, Error};
use heeler_server::Listen;

use crate::failure::Failure;

#[derive(Debug, Clone)]
pub(crate) struct ListenAddress {
    pub(crate) listen: Listen,
    pub(crate) tls: Tls,
}

/// `tls:` requires a certificate; `tcp:` uses one if it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    Required,
    Optional,
}

impl ListenAddress {
    /// The address in `HEELER_ADDR`, else the user's own socket.
    pub(crate) fn from_env_or_default() -> Result<Self, Failure> {
        match env::var(Address::ENV) {
            Ok(address) if !address.is_empty() => address
                .parse()
                .map_err(|error| Failure::Usage(format!("{}: {error}", Address::ENV))),
            Ok(_) | Err(env::VarError::NotPresent) => {
                let own = Address::default_for_user().map_err(Error::from)?;
                own.to_string().parse().map_err(Failure::Usage)
            }
            Err(env::VarError::NotUnicode(_)) => Err(Failure::Usage(format!(
                "{} is not valid UTF-8",
                Address::ENV
            ))),
        }
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rest, tls) = match (text.strip_prefix("tcp:"), text.strip_prefix("tls:")) {
            (Some(rest), _) => (rest, Tls::Optional),
            (None, Some(rest)) => (rest, Tls::Required),
            (None, None) => return unix(text),
        };
        let address = socket_address(rest).ok_or_else(|| {
            format!("cannot listen on `{text}`; expected tcp:IP:PORT, e.g. tcp:127.0.0.1:7117 or tcp:[::1]:0")
        })?;
        let listen = Listen::Tcp(address);
        Ok(Self { listen, tls })
    }
}

fn unix(text: &str) -> Result<ListenAddress, String> {
    let address: Address = text
        .parse()
        .map_err(|error: heeler_client::AddressError| error.to_string())?;
    let path = address
        .path()
        .ok_or("expected the path of a socket")?
        .to_owned();
    Ok(ListenAddress {
        listen: Listen::Unix(path),
        tls: Tls::Optional,
    })
}

/// The address of `--http`.
pub(crate) fn http(text: &str) -> Result<SocketAddr, String> {
    socket_address(text)
        .ok_or_else(|| "expected IP:PORT, e.g. 127.0.0.1:7118 or localhost:0".to_owned())
}

/// A host name may have several addresses, or other ones tomorrow: only `localhost` is accepted.
fn socket_address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => {
            let ip = IpAddr::from(Ipv4Addr::LOCALHOST);
            Some(SocketAddr::new(ip, port.parse().ok()?))
        }
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_paths_and_numeric_addresses_are_accepted() {
        for (text, listen) in [
            ("unix:/a.sock", Listen::Unix("/a.sock".into())),
            (
                "tcp:127.0.0.1:7",
                Listen::Tcp("127.0.0.1:7".parse().unwrap()),
            ),
            (
                "tcp:localhost:7",
                Listen::Tcp("127.0.0.1:7".parse().unwrap()),
            ),
            ("tcp:[::1]:0", Listen::Tcp("[::1]:0".parse().unwrap())),
            ("tls:0.0.0.0:7", Listen::Tcp("0.0.0.0:7".parse().unwrap())),
        ] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(address.listen, listen, "{text}");
            assert_eq!(address.tls == Tls::Required, text.starts_with("tls:"));
        }
    }

    #[test]
    fn other_addresses_are_refused_with_the_expected_form() {
        for text in [
            "tcp:",
            "tcp:7",
            "tcp:127.0.0.1",
            "tcp:127.0.0.1:65536",
            "tcp:::1:7",
            "tcp:host:7",
            "tls:",
            "http://x",
            "unix:x",
            "",
        ] {
            let error = text.parse::<ListenAddress>().unwrap_err();
            let forms = ["tcp:IP:PORT", "unix:/absolute/path"];
            let named = forms.iter().any(|form| error.contains(form));
            assert!(named, "{text}: {error}");
        }
    }
}
