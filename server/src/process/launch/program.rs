//! The lookup of a command's executable, and checks that it can run.
//!
//! They happen before anything is created, so that a mistake costs nothing. The start itself can still
//! fail, and is then reported as a failed start.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use nix::unistd::{AccessFlags, access};

use crate::process::error_text;
use crate::task::Command;

/// A command that is ready to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    pub(crate) program: PathBuf,
    /// The arguments, beginning with the program's name.
    pub(crate) argv: Vec<String>,
}

/// A command that cannot be run.
#[derive(Debug, thiserror::Error)]
#[error("{program}: {}", error_text(source))]
pub(crate) struct Unusable {
    /// The program as it was requested.
    pub(crate) program: String,
    pub(crate) source: io::Error,
}

/// Finds the file of a command. A bare name is looked up in `path`, or in the default path.
pub(crate) fn resolve(
    command: &Command,
    directory: &Path,
    path: Option<&OsStr>,
) -> Result<Executable, Unusable> {
    match command {
        Command::Argv(argv) => {
            let name = argv.first().map(String::as_str).unwrap_or_default();
            let program = find(name, directory, path).map_err(|source| Unusable {
                program: name.to_owned(),
                source,
            })?;
            Ok(Executable {
                program,
                argv: argv.clone(),
            })
        }
        Command::Hosted { .. } => Err(Unusable {
            program: String::new(),
            source: io::Error::new(io::ErrorKind::InvalidInput, "a hosted task has no program"),
        }),
        Command::Shell { script, program } => {
            let shell = match program {
                Some(chosen) => executable(chosen)
                    .map(|()| chosen.clone())
                    .map_err(|source| Unusable {
                        program: chosen.display().to_string(),
                        source,
                    })?,
                None => default_shell(directory, path),
            };
            let name = shell
                .file_name()
                .unwrap_or(shell.as_os_str())
                .to_string_lossy();
            let argv = vec![name.into_owned(), "-c".to_owned(), script.clone()];
            Ok(Executable {
                program: shell,
                argv,
            })
        }
    }
}

/// Checks that a task can start in this directory.
pub(crate) fn check_directory(path: &Path) -> io::Result<()> {
    if !std::fs::metadata(path)?.is_dir() {
        return Err(nix::Error::ENOTDIR.into());
    }
    Ok(access(path, AccessFlags::X_OK)?)
}

fn default_shell(directory: &Path, path: Option<&OsStr>) -> PathBuf {
    find("bash", directory, path).unwrap_or_else(|_| PathBuf::from("/bin/sh"))
}

fn find(name: &str, directory: &Path, path: Option<&OsStr>) -> io::Result<PathBuf> {
    if name.contains('/') {
        let path = directory.join(name);
        return executable(&path).map(|()| path);
    }
    let path = path.unwrap_or(OsStr::new("/usr/bin:/bin"));
    // A file that exists but cannot be run is a better error than "not found" at the end of PATH.
    let mut refusal = io::Error::from(nix::Error::ENOENT);
    for dir in std::env::split_paths(path) {
        let candidate = directory.join(dir).join(name);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refusal = error,
            Err(_) => {}
        }
    }
    Err(refusal)
}

fn executable(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(nix::Error::EACCES.into());
    }
    Ok(access(path, AccessFlags::X_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_looked_up_in_the_tasks_path() {
        let argv = Command::Argv(vec!["sh".to_owned()]);
        let found = resolve(&argv, Path::new("/"), Some(OsStr::new("/nowhere:/bin")))
            .expect("there is a shell");
        assert_eq!(found.program, Path::new("/bin/sh"));
        let missing =
            resolve(&argv, Path::new("/"), Some(OsStr::new("/nowhere"))).expect_err("not there");
        assert_eq!(missing.source.raw_os_error(), Some(nix::libc::ENOENT));
    }

    #[test]
    fn directories_and_plain_files_cannot_be_run() {
        for path in ["/", "/etc/passwd"] {
            let argv = Command::Argv(vec![path.to_owned()]);
            let refused = resolve(&argv, Path::new("/"), Some(OsStr::new(""))).expect_err(path);
            assert_eq!(
                refused.source.raw_os_error(),
                Some(nix::libc::EACCES),
                "{path}"
            );
        }
    }

    #[test]
    fn a_relative_program_is_found_from_the_working_directory() {
        let argv = Command::Argv(vec!["./sh".to_owned()]);
        let found =
            resolve(&argv, Path::new("/bin"), Some(OsStr::new(""))).expect("there is a shell");
        assert_eq!(found.program, Path::new("/bin/./sh"));
    }
}
