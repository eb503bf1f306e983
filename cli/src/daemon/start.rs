//! Starts this user's daemon when a command finds none.
//!
//! Two commands may do so at the same time: the lock of the state directory lets one daemon live, the
//! other one exits, and both commands connect to the first. The daemon outlives the command.

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

use heeler_client::{Address, Client, ConnectOptions, Error, paths};
use nix::sys::socket::{getsockopt, sockopt};
use tokio::time::sleep;

use crate::{commands::daemon::serve::OWN_SESSION, exit::Exit, failure::Failure, out};

/// Time limit for a new daemon to listen.
const LISTEN_LIMIT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// A larger log is renamed before the next daemon writes to it.
const LARGEST_LOG: u64 = 1 << 20;
/// The part of the log that is shown when a daemon fails to start.
const SHOWN_LOG: usize = 4096;

/// Connects to this user's daemon, and starts it first if none is running.
pub(crate) async fn connect_or_start(options: ConnectOptions) -> Result<Client, Failure> {
    let address = Address::default_for_user().map_err(Error::from)?;
    match Client::connect_with(address.clone(), options.clone()).await {
        Err(Error::NotRunning { .. }) => StartedDaemon::spawn()?.wait(address, options).await,
        Ok(client) => Ok(client),
        Err(error) => Err(error.into()),
    }
}

/// A daemon that was started and may not listen yet.
struct StartedDaemon {
    child: Child,
    log: PathBuf,
    /// The length of the log before this daemon wrote to it.
    log_start: u64,
}

impl StartedDaemon {
    fn spawn() -> Result<Self, Failure> {
        let state = paths::state_dir().map_err(|error| Failure::DaemonStart(error.to_string()))?;
        let log = state.join("serve.log");
        let (file, log_start) = open_log(&state, &log).map_err(|error| {
            Failure::DaemonStart(format!(
                "cannot open the daemon's log {}: {error}",
                log.display()
            ))
        })?;
        let child = spawn_serve(file)
            .map_err(|error| Failure::DaemonStart(format!("cannot start the daemon: {error}")))?;
        Ok(Self {
            child,
            log,
            log_start,
        })
    }

    async fn wait(mut self, address: Address, options: ConnectOptions) -> Result<Client, Failure> {
        let deadline = Instant::now() + LISTEN_LIMIT;
        let mut pause = FIRST_PAUSE;
        loop {
            // Read before connecting: if this daemon lost the race, the winner may listen by now.
            let exited = self.exited()?;
            match Client::connect_with(address.clone(), options.clone()).await {
                Ok(client) => {
                    if self.is_serving(&address) {
                        out::note(&format!("started the daemon (log: {})", self.log.display()));
                    }
                    return Ok(client);
                }
                Err(Error::NotRunning { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            let which = match exited {
                // Another daemon has the state directory and will listen soon.
                Some(status) if lost_the_race(status) => self.winner(),
                Some(status) => return Err(self.failure(&format!("the daemon exited: {status}"))),
                None => "the daemon".to_owned(),
            };
            if Instant::now() >= deadline {
                let text = format!("{which} is not listening on {address} after {LISTEN_LIMIT:?}");
                return Err(self.failure(&text));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Returns whether this daemon listens, and not one that another command has started.
    fn is_serving(&self, address: &Address) -> bool {
        let socket = address.path().map(UnixStream::connect);
        let peer = socket.map(|socket| Ok(getsockopt(&socket?, sockopt::PeerCredentials)?));
        peer.is_some_and(|peer: io::Result<_>| {
            peer.is_ok_and(|peer| u32::try_from(peer.pid()) == Ok(self.child.id()))
        })
    }

    fn exited(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let status = self.child.try_wait();
        status.map_err(|error| Failure::DaemonStart(format!("cannot wait for the daemon: {error}")))
    }

    /// The daemon that has the state directory, by the pid in its lock file.
    fn winner(&self) -> String {
        let pid = fs::read_to_string(self.log.with_file_name("lock")).unwrap_or_default();
        match pid.trim() {
            "" => "the daemon that has the state directory".to_owned(),
            pid => format!("the daemon that has the state directory, pid {pid},"),
        }
    }

    fn failure(&self, text: &str) -> Failure {
        let tail = tail(&self.log, self.log_start).unwrap_or_default();
        let log = self.log.display();
        Failure::DaemonStart(match tail.trim() {
            "" => format!("{text} (log: {log})"),
            tail => format!("{text}; the end of its log {log}:\n{tail}"),
        })
    }
}

fn lost_the_race(status: ExitStatus) -> bool {
    status.code() == Some(Exit::StateInUse.code().into())
}

fn spawn_serve(log: File) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["serve", OWN_SESSION])
        // Otherwise the caller's directory could not be unmounted.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
}

/// Opens the log for appending and returns its length. The file is private: it may name commands.
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

/// The end of the log, from this offset on.
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
    fn the_log_is_private_appended_to_and_renamed_when_large() {
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
