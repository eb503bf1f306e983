//! Space on the disk, kept for when there is none left.

use std::{fs::OpenOptions, io, path::Path};

use nix::fcntl::{FallocateFlags, fallocate};

/// Sees to it that the first `bytes` of a file that is there can be written even when the disk is
/// full. Its length stays what it is.
pub fn reserve(path: &Path, bytes: i64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    fallocate(&file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, bytes)?;
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
