//! A Unix socket that only its user can reach.

use std::{
    fs, io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use nix::sys::stat::{Mode, umask};

/// What `sun_path` holds, less the NUL at its end.
const LONGEST_PATH: usize = 107;

/// A listening socket, removed when it is dropped.
#[derive(Debug)]
pub struct PrivateSocket {
    path: PathBuf,
    inode: u64,
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
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another server answers there",
        )),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}
