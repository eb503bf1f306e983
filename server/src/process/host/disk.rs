//! Requests to the file system: reserved space and placement of directories.

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

/// ext4's flag for a directory whose subdirectories are unrelated to one another.
const FS_TOPDIR_FL: c_int = 0x0002_0000;

/// Reserves space for the first `bytes` of an existing file, so that they can be written when the disk is
/// full. Its length does not change.
pub(crate) fn reserve_space(path: &Path, bytes: i64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    fallocate(&file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, bytes)?;
    Ok(())
}

/// Asks the file system to spread the subdirectories of this directory over the disk. Otherwise ext4
/// puts a directory near its parent, where recently deleted files make every creation slow.
pub(in crate::process) fn spread_subdirectories(dir: &Path) -> io::Result<()> {
    let dir = File::open(dir)?;
    let mut flags: c_int = 0;
    // SAFETY: the kernel writes an int through this pointer, although the call's number speaks of a long.
    if unsafe { libc::ioctl(dir.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    flags |= FS_TOPDIR_FL;
    // SAFETY: the kernel reads an int through this pointer.
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
    fn reserved_space_is_allocated_without_changing_the_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        match reserve_space(&path, 1 << 20) {
            Ok(()) => {
                let found = std::fs::metadata(&path).unwrap();
                assert_eq!(found.len(), 5);
                assert!(found.blocks() * 512 >= 1 << 20, "{}", found.blocks());
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}"),
        }
        assert!(reserve_space(&dir.path().join("nothing"), 1).is_err());
    }
}
