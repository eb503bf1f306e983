//! Waiting until a daemon's process is gone, and with it its lock and its sockets.
//!
//! The daemon answers before it goes, and whoever starts the next one must not come too early. Its
//! status file is opened while it is there, and names that process alone, however its number is
//! reused. A process on the far side of TCP cannot be seen: there it is awaited that its port is free.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use heeler_client::Address;
use nix::{
    errno::Errno,
    sys::socket::{getsockopt, sockopt},
};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::exit::Failure;

/// How long a daemon that has answered may take: it gives calls under way a part of this.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// How long a port may take to answer before it counts as free.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The end of a daemon, awaited.
#[derive(Debug)]
pub(crate) enum Departure {
    /// Its process, with the file that names it alone.
    Process { pid: i32, status: File },
    /// Its port on a machine.
    Port { host: String, port: u16 },
}

impl Departure {
    /// That of whoever listens at this address now.
    pub(crate) fn of(address: &Address) -> Result<Self, Failure> {
        if let Some((host, port)) = address.host_and_port() {
            let host = host.to_owned();
            return Ok(Self::Port { host, port });
        }
        Self::of_process(address)
            .map_err(|error| Failure::Other(format!("cannot see the daemon's process: {error}")))
    }

    fn of_process(address: &Address) -> io::Result<Self> {
        let path = address.path().ok_or(io::ErrorKind::Unsupported)?;
        let socket = UnixStream::connect(path)?;
        let pid = getsockopt(&socket, sockopt::PeerCredentials)?.pid();
        let status = File::open(format!("/proc/{pid}/stat"))?;
        Ok(Self::Process { pid, status })
    }

    /// Until it has happened.
    pub(crate) async fn wait(mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        while self.is_there().await {
            if Instant::now() >= deadline {
                let text = format!("the daemon, {self}, is still there after {PATIENCE:?}");
                return Err(Failure::Other(text));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    async fn is_there(&mut self) -> bool {
        match self {
            Self::Process { status, .. } => match read(status) {
                Ok(status) => !has_ended(&status),
                Err(error) => error.raw_os_error() != Some(Errno::ESRCH as i32),
            },
            Self::Port { host, port } => {
                let answer = TcpStream::connect((host.as_str(), *port));
                matches!(timeout(ANSWER_LIMIT, answer).await, Ok(Ok(_)))
            }
        }
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, .. } => write!(f, "process {pid}"),
            Self::Port { host, port } => write!(f, "at port {port} of {host}"),
        }
    }
}

fn read(file: &mut File) -> io::Result<String> {
    let mut status = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut status)?;
    Ok(String::from_utf8_lossy(&status).into_owned())
}

/// Whether it is only a zombie, which holds nothing any more. Its name, in parentheses before the
/// state, may have any character in it.
fn has_ended(status: &str) -> bool {
    let state = status.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_zombie_has_ended_whatever_its_name() {
        assert!(has_ended("7 (a) R b) Z 1 7 7"));
        assert!(!has_ended("7 (a) Z b) S 1 7 7"));
        assert!(!has_ended(""));
    }

    #[tokio::test]
    async fn a_process_is_awaited_until_it_is_gone() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let status = File::open(format!("/proc/{pid}/stat")).unwrap();
        let mut departure = Departure::Process { pid, status };
        assert!(departure.is_there().await);
        drop(child.stdin.take());
        departure.wait().await.unwrap();
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn a_port_is_awaited_until_it_is_free() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp:{}", listener.local_addr().unwrap());
        let mut departure = Departure::of(&address.parse().unwrap()).unwrap();
        assert!(departure.is_there().await);
        drop(listener);
        departure.wait().await.unwrap();
    }
}
