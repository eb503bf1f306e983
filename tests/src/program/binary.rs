//! The programs under test: `heeler` is `HEELER_TEST_BINARY` if that is set, else this build's.
//!
//! Cargo builds a package's programs only for that package's own tests, so the daemon may be missing
//! or stale when these tests run. Each test binary therefore builds it once, with the same profile and
//! for the whole workspace: the features, and with them the artefacts, are then those of
//! `cargo test --workspace`, and after that the build has nothing to do.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The prefixes of the variables with which Cargo describes a package.
const OF_A_PACKAGE: [&[u8]; 2] = [b"CARGO_MANIFEST_", b"CARGO_PKG_"];

/// The `heeler` program.
pub fn heeler() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match env::var_os("HEELER_TEST_BINARY") {
        Some(path) => path.into(),
        None => build(&["--bin", "heeler"]).join("heeler"),
    })
}

/// A command whose signals have their default actions, also if the tests run with some of them ignored,
/// as under `nohup`: `heeler` leaves such signals ignored.
pub fn with_default_signals(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command
        .arg("--default-signal=HUP,INT,QUIT,TERM")
        .arg(program);
    command
}

/// An example of the Rust client.
pub fn example(name: &str) -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| build(&["--examples"]).join("examples"))
        .join(name)
}

/// A program of this package, which Cargo puts beside the tests.
pub fn sibling(name: &str) -> PathBuf {
    let path = profile_dir().join(name);
    assert!(
        path.exists(),
        "cargo builds {} for the tests of its package",
        path.display()
    );
    path
}

/// Copies a program with `cp`. If this process had the copy open for writing, a child of another test
/// could hold it between fork and exec, and executing it would fail with ETXTBSY.
pub fn copy(program: &Path, to: &Path) -> PathBuf {
    let status = Command::new("cp")
        .arg(program)
        .arg(to)
        .status()
        .expect("there is a cp");
    assert!(status.success(), "cp: {status}");
    to.to_owned()
}

/// Makes a program of these bytes, with `cp` for the same reason as [`copy`].
pub fn make(path: &Path, bytes: impl AsRef<[u8]>) {
    let source = path.with_extension("source");
    fs::write(&source, bytes).unwrap();
    copy(&source, path);
    fs::remove_file(source).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Cargo's target directory, for files that are kept between runs.
pub fn target_dir() -> PathBuf {
    let above = profile_dir()
        .parent()
        .expect("a profile is in a directory")
        .to_owned();
    match is_target_dir(&above) {
        true => above,
        false => above
            .parent()
            .expect("a target triple is in a directory")
            .to_owned(),
    }
}

/// The root of this workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests is in the workspace")
        .to_owned()
}

/// Builds targets, and returns the directory of the profile.
fn build(targets: &[&str]) -> PathBuf {
    let profile = profile_dir();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(workspace())
        .args(["build", "--quiet", "--workspace"])
        .args(targets);
    // Cargo describes the package of a running test by these. Build scripts that look at them, as ring's does,
    // would run again, and everything above them would be compiled again in each direction.
    for (name, _) in env::vars_os() {
        let name_bytes = name.as_encoded_bytes();
        if OF_A_PACKAGE
            .iter()
            .any(|prefix| name_bytes.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
    command.arg("--target-dir").arg(target_dir());
    match profile.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => {}
        Some(name) => drop(command.args(["--profile", name])),
    }
    let above = profile.parent().expect("a profile is in a directory");
    if !is_target_dir(above) {
        let triple: OsString = above.file_name().unwrap_or_default().to_owned();
        command.arg("--target").arg(triple);
    }
    let status = command.status().expect("cargo can be run");
    assert!(
        status.success(),
        "cargo could not build {targets:?}: {status}"
    );
    profile
}

fn profile_dir() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("a test is in a directory");
    deps.parent().expect("deps/ is in a profile").to_owned()
}

fn is_target_dir(path: &Path) -> bool {
    path.join(".rustc_info.json").exists()
}
