//! What a file system can be told: to keep space for when there is none left, and where to put what.

use std::{
    ffi::c_int,
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd,
    path::Path,
};

use nix::{
    fcntl::{FallocateFlags, fallocate},
    libc,
};

/// "Directories in here have nothing to do with one another", as ext4 knows it.
const FS_TOPDIR_FL: c_int = 0x0002_0000;

/// Sees to it that the first `bytes` of a file that is there can be written even when the disk is
/// full. Its length stays what it is.
pub fn reserve(path: &Path, bytes: i64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    fallocate(&file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, bytes)?;
    Ok(())
}

/// Asks for directories that are made in this one to lie apart. ext4 puts a directory near its parent
/// otherwise, and whatever was deleted in the last minutes near by makes every creation slow.
pub fn keep_apart(dir: &Path) -> io::Result<()> {
    let dir = File::open(dir)?;
    let mut flags: c_int = 0;
    // SAFETY: the kernel writes an int there, whatever the call's number says of a long.
    if unsafe { libc::ioctl(dir.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    flags |= FS_TOPDIR_FL;
    // SAFETY: the kernel reads an int there.
    if unsafe { libc::ioctl(dir.as_raw_fd(), libc::FS_IOC_SETFLAGS, &raw const flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// O14
    #[test]
    fn reserved_space_is_taken_and_not_seen_in_the_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        match reserve(&path, 1 << 20) {
            Ok(()) => {
                let found = std::fs::metadata(&path).unwrap();
                assert_eq!(found.len(), 5);
                assert!(found.blocks() * 512 >= 1 << 20, "{}", found.blocks());
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}"),
        }
        assert!(reserve(&dir.path().join("nothing"), 1).is_err());
    }
}
