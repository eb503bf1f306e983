//! Requests to the file system: reserved space and placement of directories.

use std::{ffi::c_int, fs::File, io, ops::Range, os::fd::AsRawFd, path::Path};

use nix::{
    fcntl::{FallocateFlags, fallocate},
    libc,
    sys::statvfs::statvfs,
};

/// ext4's flag for a directory whose subdirectories are unrelated to one another.
const FS_TOPDIR_FL: c_int = 0x0002_0000;

/// Allocates the blocks of a part of a file, so that it can be written when the disk is full. The length
/// of the file does not change.
pub(crate) fn allocate(file: &File, part: Range<u64>) -> io::Result<()> {
    let number = |bytes: u64| i64::try_from(bytes).map_err(io::Error::other);
    let length = number(part.end.saturating_sub(part.start))?;
    let keep_size = FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(file, keep_size, number(part.start)?, length)?;
    Ok(())
}

/// The size of the file system that has this directory.
pub(crate) fn file_system_size(dir: &Path) -> io::Result<u64> {
    let found = statvfs(dir)?;
    // Their types differ between processors.
    #[allow(
        clippy::useless_conversion,
        reason = "the types differ between platforms"
    )]
    let (blocks, size) = (u64::from(found.blocks()), u64::from(found.fragment_size()));
    Ok(blocks.saturating_mul(size))
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
    fn allocated_space_does_not_change_the_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        match allocate(&file, 0..1 << 20).and_then(|()| allocate(&file, 1 << 20..2 << 20)) {
            Ok(()) => {
                let found = file.metadata().unwrap();
                assert_eq!(found.len(), 5);
                assert!(found.blocks() * 512 >= 2 << 20, "{}", found.blocks());
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}"),
        }
        assert!(allocate(&File::open(&path).unwrap(), 0..1).is_err());
    }
}
