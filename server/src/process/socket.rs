//! A Unix socket that only its user can reach; and what the kernel is told of TCP connections.

use std::{
    fs,
    io::{self, Read, Write},
    os::fd::AsFd,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use nix::sys::{
    socket::{setsockopt, sockopt},
    stat::{Mode, umask},
};

/// What `sun_path` holds, less the NUL at its end.
const LONGEST_PATH: usize = 107;
/// How long a listener may outlive its server: a shim that was just being started when that was killed
/// has it until it runs.
const OUTLIVES: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(5);
/// How long a server may take to return a greeting.
const ANSWERS_WITHIN: Duration = Duration::from_millis(200);
/// The beginning of every HTTP/2 connection, with empty settings.
const HTTP2_GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// How long a TCP peer may be silent before it is asked whether it is there, in seconds.
const QUIET_SECONDS: u32 = 60;
/// Between two questions, in seconds.
const QUESTION_SECONDS: u32 = 10;
/// How many may go unanswered.
const QUESTIONS: u32 = 6;

/// A listening socket, removed when it is dropped.
#[derive(Debug)]
pub struct PrivateSocket {
    path: PathBuf,
    inode: u64,
}

/// Whether a server answers there: one that is gone may have left a socket that takes connections for a
/// moment, but says nothing.
pub fn answers(path: &Path) -> bool {
    let greeting = || {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
        stream.set_write_timeout(Some(ANSWERS_WITHIN))?;
        stream.write_all(HTTP2_GREETING)?;
        stream.read(&mut [0])
    };
    greeting().is_ok_and(|read| read > 0)
}

impl PrivateSocket {
    /// Binds the path, mode 0600, in a directory that is made 0700 if it is not there. A socket that
    /// nobody answers on any more is replaced.
    pub fn bind(path: &Path) -> io::Result<(Self, UnixListener)> {
        let len = path.as_os_str().len();
        if len > LONGEST_PATH {
            let problem =
                format!("the path has {len} bytes, and a socket's may have {LONGEST_PATH}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        if let Some(dir) = path.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)?;
        }
        remove_stale(path)?;
        // The only moment at which the file mask matters: nothing else runs yet.
        let before = umask(Mode::from_bits_truncate(0o177));
        let bound = UnixListener::bind(path);
        umask(before);
        let listener = bound?;
        listener.set_nonblocking(true)?;
        let inode = fs::symlink_metadata(path)?.ino();
        Ok((
            Self {
                path: path.to_owned(),
                inode,
            },
            listener,
        ))
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        // Only our own: another server may have taken the path meanwhile.
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Has the kernel find out when the machine at the other end is gone, which says no goodbye.
pub fn notice_dead_peer(stream: &impl AsFd) -> io::Result<()> {
    setsockopt(stream, sockopt::TcpKeepIdle, &QUIET_SECONDS)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &QUESTION_SECONDS)?;
    setsockopt(stream, sockopt::TcpKeepCount, &QUESTIONS)?;
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
            "the path is not a socket",
        ));
    }
    let end = Instant::now() + OUTLIVES;
    loop {
        match UnixStream::connect(path) {
            Ok(_) if Instant::now() < end => thread::sleep(STEP),
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another server answers there",
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
    fn a_listener_that_outlives_its_server_for_a_moment_is_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let first = UnixListener::bind(&path).expect("room");
        let holder = thread::spawn(move || {
            thread::sleep(STEP * 10);
            drop(first);
        });
        PrivateSocket::bind(&path).expect("its turn comes");
        holder.join().expect("it lets go");
    }

    /// R6
    #[test]
    fn a_path_on_which_somebody_answers_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let first = UnixListener::bind(&path).expect("room");
        let refused = PrivateSocket::bind(&path).expect_err("taken");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert!(path.exists());
    }
}
