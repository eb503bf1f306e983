//! The process of a running daemon, and the files that it has open.

use std::{
    fs,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

use heeler_client::Address;
use nix::sys::socket::{getsockopt, sockopt};

/// A daemon's process on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) pid: i32,
}

impl Peer {
    /// The process that listens at this address; none for TCP.
    pub(crate) fn at(address: &Address) -> Option<Self> {
        let socket = UnixStream::connect(address.path()?).ok()?;
        let pid = getsockopt(&socket, sockopt::PeerCredentials).ok()?.pid();
        Some(Self { pid })
    }

    /// The directory of the journal that it has open.
    pub(crate) fn state_dir(self) -> Option<PathBuf> {
        let open = fs::read_dir(format!("/proc/{}/fd", self.pid)).ok()?;
        let mut links = open
            .flatten()
            .filter_map(|one| fs::read_link(one.path()).ok());
        let journal =
            links.find(|path| path.file_name().is_some_and(|name| name == "journal.db"))?;
        Some(journal.parent()?.to_owned())
    }

    /// The file that its stderr goes to; none if that is no file.
    pub(crate) fn log(self) -> Option<PathBuf> {
        let target = fs::read_link(format!("/proc/{}/fd/2", self.pid)).ok()?;
        let is_file = target.is_absolute() && !target.starts_with(Path::new("/dev"));
        is_file.then_some(target)
    }
}
