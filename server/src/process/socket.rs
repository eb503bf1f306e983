//! A Unix socket that only its user can reach, and keep-alive for TCP connections.

mod watch;

use std::{
    fs,
    io::{self, Read, Write},
    os::fd::{AsFd, AsRawFd},
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use nix::sys::{
    socket::{
        AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, setsockopt, socket,
        sockopt,
    },
    stat::{Mode, fchmod},
};

use watch::PathWatch;

/// The length of `sun_path`, without the NUL.
const LONGEST_PATH: usize = 107;
/// The time that a listener may outlive its server: a shim that was being started has the descriptor
/// until it executes its program.
const OUTLIVES: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(5);
/// The time that a server has to answer the HTTP/2 preface.
const ANSWERS_WITHIN: Duration = Duration::from_millis(200);
/// The HTTP/2 connection preface, with empty settings.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The silence of a TCP peer before the first keep-alive probe, in seconds.
const IDLE_SECONDS: u32 = 60;
/// The time between two probes, in seconds.
const PROBE_SECONDS: u32 = 10;
/// The number of unanswered probes that end the connection.
const PROBES: u32 = 6;

/// The file of a listening socket, removed on drop.
#[derive(Debug)]
pub(crate) struct PrivateSocket {
    path: PathBuf,
    /// Its device and inode.
    file: (u64, u64),
}

/// Returns whether a server answers at this path. The socket of a dead server may still accept connections
/// for a moment, but does not answer.
pub(crate) fn answers(path: &Path) -> bool {
    let exchange = || {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
        stream.set_write_timeout(Some(ANSWERS_WITHIN))?;
        stream.write_all(HTTP2_PREFACE)?;
        stream.read(&mut [0])
    };
    exchange().is_ok_and(|read| read > 0)
}

impl PrivateSocket {
    /// Binds the path with mode 0600, in a directory that is created with mode 0700 if necessary. The
    /// socket of a dead server is replaced.
    pub(crate) fn bind(path: &Path) -> io::Result<(Self, UnixListener)> {
        let len = path.as_os_str().len();
        if len > LONGEST_PATH {
            let problem =
                format!("the path has {len} bytes; a socket's path has at most {LONGEST_PATH}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        if let Some(dir) = path.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)?;
        }
        remove_stale(path)?;
        let listener = bind_private(path)?;
        let file = file_at(path)?;
        Ok((
            Self {
                path: path.to_owned(),
                file,
            },
            listener,
        ))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the path no longer leads to this socket: logind removes the directories of a user who
    /// has logged out, and clean-up jobs remove old files.
    pub(crate) async fn lost(&self) {
        loop {
            // Watched before it is looked at: a removal in between is noticed.
            let watch = PathWatch::new(&self.path);
            if !self.is_in_place() {
                return;
            }
            watch.changed().await;
        }
    }

    fn is_in_place(&self) -> bool {
        file_at(&self.path).is_ok_and(|found| found == self.file)
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        // Another server may have taken the path meanwhile.
        if self.is_in_place() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Binds with mode 0600 from the first moment. The mode of the descriptor becomes that of the file, less
/// the process's file mask, which is therefore not changed: it belongs to all threads.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    fchmod(&socket, Mode::from_bits_truncate(0o600))?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    // The file mask may have taken more.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listen(&socket, Backlog::MAXCONN)?;
    Ok(socket.into())
}

fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Enables keep-alive, so that the kernel closes the connection to a machine that is gone.
pub(crate) fn notice_dead_peer(stream: &impl AsFd) -> io::Result<()> {
    setsockopt(stream, sockopt::TcpKeepIdle, &IDLE_SECONDS)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &PROBE_SECONDS)?;
    setsockopt(stream, sockopt::TcpKeepCount, &PROBES)?;
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    Ok(())
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the path exists and is not a socket",
        ));
    }
    let end = Instant::now() + OUTLIVES;
    loop {
        match UnixStream::connect(path) {
            Ok(_) if Instant::now() < end => thread::sleep(RETRY),
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another server listens at this path",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return fs::remove_file(path);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R1
    #[test]
    fn a_listener_that_briefly_outlives_its_server_is_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let first = UnixListener::bind(&path).expect("room");
        let owner = thread::spawn(move || {
            thread::sleep(RETRY * 10);
            drop(first);
        });
        PrivateSocket::bind(&path).expect("free by then");
        owner.join().expect("no panic");
    }

    /// R6
    #[test]
    fn the_socket_of_a_live_listener_is_not_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let first = UnixListener::bind(&path).expect("room");
        let refused = PrivateSocket::bind(&path).expect_err("taken");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert!(path.exists());
    }
}
