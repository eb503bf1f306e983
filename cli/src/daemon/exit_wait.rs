//! Waits until a daemon's process has exited, and so has given up its lock and its sockets.
//!
//! The daemon answers a Shutdown before it exits, and the next daemon must not start too early. The
//! process's status file, opened while it runs, keeps naming that process even if its pid is reused. A
//! process behind TCP cannot be seen: there the wait is for its port to be free.

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

use crate::failure::Failure;

/// Time limit for the exit. The daemon uses a part of it to finish calls.
const EXIT_LIMIT: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A port that does not accept a connection in this time counts as free.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) enum ExitWait {
    /// A local process, with its open `/proc/PID/stat`.
    Process {
        pid: i32,
        status: File,
    },
    Port {
        host: String,
        port: u16,
    },
}

impl ExitWait {
    /// Waits for the daemon that listens at this address now.
    pub(crate) fn for_daemon_at(address: &Address) -> Result<Self, Failure> {
        if let Some((host, port)) = address.host_and_port() {
            let host = host.to_owned();
            return Ok(Self::Port { host, port });
        }
        Self::for_process_at(address)
            .map_err(|error| Failure::Other(format!("cannot find the daemon's process: {error}")))
    }

    fn for_process_at(address: &Address) -> io::Result<Self> {
        let path = address.path().ok_or(io::ErrorKind::Unsupported)?;
        let socket = UnixStream::connect(path)?;
        let pid = getsockopt(&socket, sockopt::PeerCredentials)?.pid();
        let status = File::open(format!("/proc/{pid}/stat"))?;
        Ok(Self::Process { pid, status })
    }

    pub(crate) async fn wait(mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + EXIT_LIMIT;
        let mut pause = FIRST_PAUSE;
        while self.is_running().await {
            if Instant::now() >= deadline {
                let text = format!("the daemon ({self}) is still running after {EXIT_LIMIT:?}");
                return Err(Failure::Other(text));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    async fn is_running(&mut self) -> bool {
        match self {
            Self::Process { status, .. } => match read(status) {
                Ok(status) => !is_zombie(&status),
                Err(error) => error.raw_os_error() != Some(Errno::ESRCH as i32),
            },
            Self::Port { host, port } => {
                let answer = TcpStream::connect((host.as_str(), *port));
                matches!(timeout(ANSWER_LIMIT, answer).await, Ok(Ok(_)))
            }
        }
    }
}

impl fmt::Display for ExitWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, .. } => write!(f, "process {pid}"),
            Self::Port { host, port } => write!(f, "port {port} of {host}"),
        }
    }
}

fn read(file: &mut File) -> io::Result<String> {
    let mut status = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut status)?;
    Ok(String::from_utf8_lossy(&status).into_owned())
}

/// Returns whether the process is a zombie, which has no lock or socket. Its name, in parentheses before
/// the state, may contain any character.
fn is_zombie(status: &str) -> bool {
    let state = status.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_zombie_is_recognised_whatever_its_name() {
        assert!(is_zombie("7 (a) R b) Z 1 7 7"));
        assert!(!is_zombie("7 (a) Z b) S 1 7 7"));
        assert!(!is_zombie(""));
    }

    #[tokio::test]
    async fn the_wait_ends_when_the_process_has_exited() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let status = File::open(format!("/proc/{pid}/stat")).unwrap();
        let mut daemon = ExitWait::Process { pid, status };
        assert!(daemon.is_running().await);
        drop(child.stdin.take());
        daemon.wait().await.unwrap();
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn the_wait_ends_when_the_port_is_free() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp:{}", listener.local_addr().unwrap());
        let mut daemon = ExitWait::for_daemon_at(&address.parse().unwrap()).unwrap();
        assert!(daemon.is_running().await);
        drop(listener);
        daemon.wait().await.unwrap();
    }
}
