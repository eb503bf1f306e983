//! Starting the daemon of this user when a command finds none.
//!
//! Two commands may do so at once: the state directory's lock lets one daemon live, the other ends,
//! and both commands talk to the first. Nothing here waits for the daemon's end: it is not ours.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::{
        fs::{DirBuilderExt, OpenOptionsExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use heeler_client::{Address, Client, Error, paths};
use nix::sys::socket::{getsockopt, sockopt};
use tokio::time::sleep;

use crate::{
    commands::serve::OWN_SESSION,
    exit::{Exit, Failure},
    out,
};

/// How long the daemon may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// A log that is larger than this is put aside before the next daemon writes to it.
const LARGEST_LOG: u64 = 1 << 20;
/// How much of the log of a daemon that would not live is shown.
const SHOWN_LOG: usize = 4096;

/// Connects to this user's daemon, and starts it first if it does not answer.
pub(crate) async fn connect_or_start() -> Result<Client, Failure> {
    let address = Address::default_for_user().map_err(Error::from)?;
    match Client::connect(address.clone()).await {
        Err(Error::NotRunning { .. }) => Start::begin()?.wait(address).await,
        Ok(client) => Ok(client),
        Err(error) => Err(error.into()),
    }
}

/// A daemon that has been started and does not listen yet.
struct Start {
    child: Child,
    log: PathBuf,
    /// Where in the log its words begin.
    log_start: u64,
}

impl Start {
    fn begin() -> Result<Self, Failure> {
        let state = paths::state_dir().map_err(|error| Failure::Daemon(error.to_string()))?;
        let log = state.join("serve.log");
        let (file, log_start) = open_log(&state, &log).map_err(|error| {
            Failure::Daemon(format!(
                "cannot write the daemon's log {}: {error}",
                log.display()
            ))
        })?;
        let child = spawn(file)
            .map_err(|error| Failure::Daemon(format!("cannot start the daemon: {error}")))?;
        Ok(Self {
            child,
            log,
            log_start,
        })
    }

    async fn wait(mut self, address: Address) -> Result<Client, Failure> {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            // Looked at before connecting: whoever won the lock may listen by now.
            let ended = self.ended()?;
            match Client::connect(address.clone()).await {
                Ok(client) => {
                    if self.serves(&address) {
                        out::note(&format!("started the daemon (log: {})", self.log.display()));
                    }
                    return Ok(client);
                }
                Err(Error::NotRunning { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            match ended {
                // Another daemon has the state directory and is about to listen.
                Some(status) if lost_the_race(status) => {}
                Some(status) => return Err(self.failure(&format!("the daemon ended: {status}"))),
                None => {}
            }
            if Instant::now() >= deadline {
                let text = format!("the daemon does not listen on {address} after {PATIENCE:?}");
                return Err(self.failure(&text));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Whether it is our daemon that listens, and not one that another command started.
    fn serves(&self, address: &Address) -> bool {
        let socket = address.path().map(UnixStream::connect);
        let peer = socket.map(|socket| Ok(getsockopt(&socket?, sockopt::PeerCredentials)?));
        peer.is_some_and(|peer: io::Result<_>| {
            peer.is_ok_and(|peer| u32::try_from(peer.pid()) == Ok(self.child.id()))
        })
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let status = self.child.try_wait();
        status.map_err(|error| Failure::Daemon(format!("cannot watch the daemon: {error}")))
    }

    fn failure(&self, text: &str) -> Failure {
        let said = tail(&self.log, self.log_start).unwrap_or_default();
        let log = self.log.display();
        Failure::Daemon(match said.trim() {
            "" => format!("{text} (log: {log})"),
            said => format!("{text}; the end of its log {log}:\n{said}"),
        })
    }
}

fn lost_the_race(status: ExitStatus) -> bool {
    status.code() == Some(Exit::StateInUse.code().into())
}

fn spawn(log: File) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["serve", OWN_SESSION])
        // It must not keep the caller's directory from being unmounted or removed.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
}

/// Opens the log for appending, with its length: private, for it may name what tasks run.
fn open_log(state: &Path, log: &Path) -> io::Result<(File, u64)> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state)?;
    if fs::metadata(log).is_ok_and(|found| found.len() > LARGEST_LOG) {
        fs::rename(log, log.with_extension("log.old"))?;
    }
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(log)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// The last words in the log from this offset on.
fn tail(log: &Path, from: u64) -> io::Result<String> {
    let mut file = File::open(log)?;
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(
        from.max(end.saturating_sub(SHOWN_LOG as u64)),
    ))?;
    let mut bytes = Vec::new();
    file.take(SHOWN_LOG as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::unix::fs::MetadataExt};

    use super::*;

    #[test]
    fn the_log_is_private_appended_to_and_put_aside_when_large() {
        let root = tempfile::tempdir().unwrap();
        let state = root.path().join("a/b");
        let log = state.join("serve.log");
        let (mut file, start) = open_log(&state, &log).unwrap();
        assert_eq!(start, 0);
        assert_eq!(fs::metadata(&log).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
        file.write_all(b"first\n").unwrap();

        let (mut file, start) = open_log(&state, &log).unwrap();
        file.write_all(b"second\n").unwrap();
        assert_eq!(tail(&log, start).unwrap(), "second\n");

        file.set_len(LARGEST_LOG + 1).unwrap();
        assert_eq!(open_log(&state, &log).unwrap().1, 0);
        assert!(state.join("serve.log.old").exists());
    }
}
