//! Waiting until a daemon's process is gone, and with it its lock and its sockets.
//!
//! The daemon answers before it goes, and whoever starts the next one must not come too early. Its
//! status file is opened while it is there, and names that process alone, however its number is
//! reused.

use std::{
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
use tokio::time::sleep;

use crate::exit::Failure;

/// How long a daemon that has answered may take: it gives calls under way a part of this.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The end of a daemon's process, awaited.
#[derive(Debug)]
pub(crate) struct Departure {
    pid: i32,
    status: File,
}

impl Departure {
    /// That of whoever listens at this address now.
    pub(crate) fn of(address: &Address) -> Result<Self, Failure> {
        let found = UnixStream::connect(address.path()).and_then(|socket| {
            let pid = getsockopt(&socket, sockopt::PeerCredentials)?.pid();
            let status = File::open(format!("/proc/{pid}/stat"))?;
            Ok(Self { pid, status })
        });
        found.map_err(|error| Failure::Other(format!("cannot see the daemon's process: {error}")))
    }

    /// Until it has happened.
    pub(crate) async fn wait(mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        while self.is_there() {
            if Instant::now() >= deadline {
                let pid = self.pid;
                let text = format!("the daemon, process {pid}, is still there after {PATIENCE:?}");
                return Err(Failure::Other(text));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    fn is_there(&mut self) -> bool {
        match self.read() {
            Ok(status) => !has_ended(&status),
            Err(error) => error.raw_os_error() != Some(Errno::ESRCH as i32),
        }
    }

    fn read(&mut self) -> io::Result<String> {
        let mut status = Vec::new();
        self.status.rewind()?;
        self.status.read_to_end(&mut status)?;
        Ok(String::from_utf8_lossy(&status).into_owned())
    }
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
        let mut departure = Departure { pid, status };
        assert!(departure.is_there());
        drop(child.stdin.take());
        departure.wait().await.unwrap();
        child.wait().unwrap();
    }
}
