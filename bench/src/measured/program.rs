//! The measured programs: `HEELER_BENCH_BINARY` if it is set, else the `heeler` of this build, which
//! cargo builds if it is missing or older than its sources.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use crate::Result;

/// A program that does nothing and does not use a C library.
pub(crate) const NOTHING: &str = concat!(env!("OUT_DIR"), "/nothing");

/// A program that does nothing and uses glibc, as ordinary programs do.
pub(crate) const TRUE: &str = "/bin/true";

/// This program, for its own roles.
pub(crate) fn own() -> Result<PathBuf> {
    Ok(env::current_exe()?)
}

/// The daemon and command.
pub(crate) fn heeler() -> Result<PathBuf> {
    match env::var_os("HEELER_BENCH_BINARY") {
        Some(path) => Ok(path.into()),
        None => build(),
    }
}

fn build() -> Result<PathBuf> {
    let own = own()?;
    let profile = own.parent().ok_or("this program is in no directory")?;
    let target = profile
        .parent()
        .ok_or("this program is in no target directory")?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "heeler", "--bin", "heeler"]);
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .arg("--target-dir")
        .arg(target);
    match profile.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => eprintln!("heeler-bench: a debug build says little: use --release"),
        Some(name) => drop(command.args(["--profile", name])),
    }
    let status = command.status()?;
    match status.success() {
        true => Ok(profile.join("heeler")),
        false => Err(format!("cargo could not build heeler: {status}").into()),
    }
}
