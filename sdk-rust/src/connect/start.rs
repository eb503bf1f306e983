//! Starting the user's daemon, by the `heeler` command: what the command would start is started.

use std::{env, ffi::OsString, io, process::Stdio};

use tokio::process::Command;

use super::Address;
use crate::{client::Client, error::Error};

/// The environment variable that names the command.
const PROGRAM_ENV: &str = "HEELER_BINARY";
const PROGRAM: &str = "heeler";

/// Connects to the daemon that `HEELER_ADDR` names, else to the user's own, which is started if it is not
/// running.
pub(crate) async fn connect_or_start() -> Result<Client, Error> {
    if let Some(address) = Address::from_env()? {
        return Client::connect(address).await;
    }
    let address = Address::default_for_user()?;
    match Client::connect(address.clone()).await {
        Err(Error::NotRunning { .. }) => {
            start().await?;
            Client::connect(address).await
        }
        connected => connected,
    }
}

/// Runs `heeler start`, which returns when the daemon answers.
async fn start() -> Result<(), Error> {
    let chosen = env::var_os(PROGRAM_ENV).filter(|program| !program.is_empty());
    let program = chosen.unwrap_or_else(|| OsString::from(PROGRAM));
    let shown = program.to_string_lossy().into_owned();
    let started = Command::new(&program)
        .arg("start")
        .stdin(Stdio::null())
        .output()
        .await;
    match started {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(Error::NotStarted {
            program: shown,
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            Err(Error::NotInstalled { program: shown })
        }
        Err(source) => Err(Error::NotStarted {
            program: shown,
            message: source.to_string(),
        }),
    }
}
