//! The state directory: private to its user, and locked by one server at a time.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
};

use crate::{
    config::{Config, Listen},
    process::{StateLock, own_uid, socket},
};

use super::RunError;

/// Makes the state directory, or checks it, and takes its lock.
pub(super) fn open(config: &Config) -> Result<StateLock, RunError> {
    let path = config.state_dir.as_path();
    let failed = |operation: &str| RunError::io(format!("{operation} {}", path.display()));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed("make the state directory"))?;
    let found = fs::metadata(path).map_err(failed("read the state directory"))?;
    if found.uid() != own_uid() {
        return Err(RunError::ForeignOwner {
            path: path.to_owned(),
            owner: found.uid(),
            own: own_uid(),
        });
    }
    if found.mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "the state directory was accessible to other users; its mode is now 0700");
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .map_err(failed("set the mode of the state directory"))?;
    }
    // A server that is already serving keeps the lock: do not wait for it.
    let is_served = || {
        let mut sockets = config.listen.iter().filter_map(Listen::unix);
        sockets.any(socket::answers)
    };
    let lock = StateLock::take(path, is_served).map_err(failed("lock the state directory"))?;
    lock.ok_or_else(|| RunError::AlreadyServed {
        path: path.to_owned(),
        pid: StateLock::holder(path),
    })
}
