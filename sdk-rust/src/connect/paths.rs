//! The default paths of a user's socket and state, for the daemon and its clients.
//!
//! Nothing is created here. A directory in a place that other users can write to is used only if it is
//! private to this user, because clients send commands to the socket in it.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nix::unistd::{Uid, User, geteuid};

/// The environment variable that overrides the state directory.
pub const STATE_DIR_ENV: &str = "HEELER_STATE_DIR";

/// The reason why there is no default path.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The fallback in `/tmp` is not private.
    #[error(
        "{} is not a directory that only user {uid} may enter: remove it, or set XDG_RUNTIME_DIR",
        path.display()
    )]
    NotPrivate { path: PathBuf, uid: Uid },
    #[error("cannot examine {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot make {} absolute", path.display())]
    NotAbsolute { path: PathBuf, source: io::Error },
    /// Neither the environment nor the user database knows a home.
    #[error("user {uid} has no home directory: set HOME or {STATE_DIR_ENV}")]
    NoHome { uid: Uid },
}

/// The socket of this user's daemon.
///
/// `$XDG_RUNTIME_DIR/heeler/heeler.sock`; without that variable the same under `/run/user/<uid>`
/// where this user owns it, else `/tmp/heeler-<uid>/heeler.sock`.
pub fn default_socket() -> Result<PathBuf, PathError> {
    let places = Places {
        run_user: Path::new("/run/user"),
        tmp: Path::new("/tmp"),
    };
    socket_among(&places, env::var_os("XDG_RUNTIME_DIR"), geteuid())
}

/// The state directory: `$HEELER_STATE_DIR`, else `$XDG_STATE_HOME/heeler`, else
/// `~/.local/state/heeler`.
pub fn state_dir() -> Result<PathBuf, PathError> {
    if let Some(dir) = env::var_os(STATE_DIR_ENV).filter(|dir| !dir.is_empty()) {
        let path = PathBuf::from(dir);
        return std::path::absolute(&path)
            .map_err(|source| PathError::NotAbsolute { path, source });
    }
    if let Some(dir) = absolute(env::var_os("XDG_STATE_HOME")) {
        return Ok(dir.join("heeler"));
    }
    Ok(home()?.join(".local/state/heeler"))
}

/// The token file of this user's daemon: `token` in its state directory.
pub fn token_file() -> Result<PathBuf, PathError> {
    Ok(state_dir()?.join("token"))
}

/// The parent directories of the fallbacks; others in tests.
struct Places<'a> {
    run_user: &'a Path,
    tmp: &'a Path,
}

fn socket_among(
    places: &Places<'_>,
    runtime_dir: Option<OsString>,
    uid: Uid,
) -> Result<PathBuf, PathError> {
    if let Some(dir) = absolute(runtime_dir) {
        return Ok(dir.join("heeler/heeler.sock"));
    }
    let run = places.run_user.join(uid.to_string());
    if fs::metadata(&run).is_ok_and(|found| found.is_dir() && found.uid() == uid.as_raw()) {
        return Ok(run.join("heeler/heeler.sock"));
    }
    let dir = places.tmp.join(format!("heeler-{uid}"));
    check_private(&dir, uid)?;
    Ok(dir.join("heeler.sock"))
}

/// Any user may have created a directory of that name in `/tmp`. A missing one is fine.
fn check_private(dir: &Path, uid: Uid) -> Result<(), PathError> {
    match fs::symlink_metadata(dir) {
        Ok(found) if found.is_dir() && found.uid() == uid.as_raw() && found.mode() & 0o077 == 0 => {
            Ok(())
        }
        Ok(_) => Err(PathError::NotPrivate {
            path: dir.to_owned(),
            uid,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(PathError::Unreadable {
            path: dir.to_owned(),
            source,
        }),
    }
}

/// The XDG specification says to ignore relative paths.
fn absolute(dir: Option<OsString>) -> Option<PathBuf> {
    dir.map(PathBuf::from).filter(|dir| dir.is_absolute())
}

fn home() -> Result<PathBuf, PathError> {
    if let Some(home) = absolute(env::var_os("HOME")) {
        return Ok(home);
    }
    let uid = geteuid();
    match User::from_uid(uid) {
        Ok(Some(user)) if user.dir.is_absolute() => Ok(user.dir),
        Ok(_) | Err(_) => Err(PathError::NoHome { uid }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn socket(root: &Path, runtime_dir: Option<&str>) -> Result<PathBuf, PathError> {
        let (run_user, tmp) = (root.join("run"), root.join("tmp"));
        let places = Places {
            run_user: &run_user,
            tmp: &tmp,
        };
        socket_among(&places, runtime_dir.map(OsString::from), geteuid())
    }

    fn make_dir(path: &Path, mode: u32) {
        fs::create_dir_all(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_runtime_directory_comes_first_unless_it_is_relative() {
        let root = tempfile::tempdir().unwrap();
        let found = socket(root.path(), Some("/run/here")).unwrap();
        assert_eq!(found, Path::new("/run/here/heeler/heeler.sock"));
        let found = socket(root.path(), Some("here")).unwrap();
        assert!(found.starts_with(root.path().join("tmp")));
    }

    #[test]
    fn the_users_run_directory_comes_second() {
        let root = tempfile::tempdir().unwrap();
        let run = root.path().join(format!("run/{}", geteuid()));
        make_dir(&run, 0o700);
        assert_eq!(
            socket(root.path(), None).unwrap(),
            run.join("heeler/heeler.sock")
        );
    }

    #[test]
    fn a_fallback_that_others_may_enter_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join(format!("tmp/heeler-{}", geteuid()));
        make_dir(&dir, 0o755);
        assert!(matches!(
            socket(root.path(), None),
            Err(PathError::NotPrivate { .. })
        ));
        make_dir(&dir, 0o700);
        assert_eq!(socket(root.path(), None).unwrap(), dir.join("heeler.sock"));
    }

    #[test]
    fn a_fallback_that_is_a_link_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("real");
        make_dir(&real, 0o700);
        make_dir(&root.path().join("tmp"), 0o700);
        symlink(&real, root.path().join(format!("tmp/heeler-{}", geteuid()))).unwrap();
        assert!(matches!(
            socket(root.path(), None),
            Err(PathError::NotPrivate { .. })
        ));
    }
}
