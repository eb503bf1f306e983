//! Starting the user's daemon, by the `heeler` command: what the command would start is started.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use super::{Address, ConnectOptions};
use crate::{client::Client, error::Error};

/// The environment variable that names the command.
const PROGRAM_ENV: &str = "HEELER_BINARY";
const PROGRAM: &str = "heeler";

/// Connects to the daemon that `HEELER_ADDR` names, else to the user's own, which is started if it is not
/// running.
pub(crate) async fn connect_or_start(options: ConnectOptions) -> Result<Client, Error> {
    if let Some(address) = Address::from_env()? {
        return Client::connect_with(address, options).await;
    }
    let address = Address::default_for_user()?;
    match Client::connect_with(address, options.clone()).await {
        Err(Error::NotRunning { .. }) => {
            let address = start(options.chosen_program()).await?;
            Client::connect_with(address, options).await
        }
        connected => connected,
    }
}

/// Runs `heeler start`, which prints the address once the daemon answers.
async fn start(chosen: Option<&Path>) -> Result<Address, Error> {
    let program = program(chosen);
    let shown = program.display().to_string();
    let mut command = Command::new(&program);
    // An empty address is none for this crate, but not for the command.
    command.arg("start").env_remove(Address::ENV);
    match command.stdin(Stdio::null()).output().await {
        Ok(output) if output.status.success() => {
            let address = String::from_utf8_lossy(&output.stdout);
            Ok(address.trim().parse()?)
        }
        Ok(output) => Err(Error::DaemonStart {
            program: shown,
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
        Err(source) => Err(Error::NotInstalled {
            program: shown,
            source,
        }),
    }
}

/// The program that was chosen, else the one that the environment names, else that on the PATH.
fn program(chosen: Option<&Path>) -> PathBuf {
    let named = || env::var_os(PROGRAM_ENV).filter(|program| !program.is_empty());
    match chosen {
        Some(path) => path.to_owned(),
        None => named().unwrap_or_else(|| OsString::from(PROGRAM)).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    /// A program that does this in place of `heeler`. A child writes it: if this process had it open, a child of
    /// another test could hold it between fork and exec, and executing it would fail with ETXTBSY.
    fn program_that(dir: &Path, does: &str) -> PathBuf {
        let path = dir.join("heeler");
        let write = r#"printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod 755 "$1""#;
        let mut writer = process::Command::new("sh");
        writer.args(["-c", write, "sh"]).arg(&path).arg(does);
        assert!(writer.status().unwrap().success());
        path
    }

    /// U5
    #[tokio::test]
    async fn the_chosen_program_starts_the_daemon_and_prints_its_address() {
        let dir = tempfile::tempdir().unwrap();
        let program = program_that(dir.path(), r#"[ "$*" = start ] && echo unix:/x/y.sock"#);
        let address = start(Some(&program)).await.unwrap();
        assert_eq!(address.to_string(), "unix:/x/y.sock");
    }

    /// U5
    #[tokio::test]
    async fn a_failed_start_and_a_missing_program_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let program = program_that(dir.path(), "echo no disk >&2; exit 4");
        let failed = start(Some(&program)).await.unwrap_err();
        assert!(matches!(&failed, Error::DaemonStart { message, .. } if message == "no disk"));
        let missing = start(Some(&dir.path().join("none"))).await.unwrap_err();
        assert!(matches!(missing, Error::NotInstalled { .. }), "{missing}");
        let text = missing.to_string();
        assert!(text.contains("cargo install --path cli"), "{text}");
    }
}
