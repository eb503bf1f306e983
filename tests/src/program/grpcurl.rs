//! grpcurl: a stock client that knows the service by reflection alone.

use std::{path::PathBuf, process::Command, sync::OnceLock};

use serde_json::Value;

use crate::{Daemon, binary, skipped};

/// The result of a grpcurl call.
#[derive(Debug)]
pub struct GrpcurlResult {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

/// The program, installed on first use. Returns `None`, after reporting a skip, if it cannot be.
pub fn program() -> Option<PathBuf> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| installed().or_else(in_path)).clone();
    if program.is_none() {
        skipped("grpcurl is missing, and there is no Go to install it with");
    }
    program
}

fn installed() -> Option<PathBuf> {
    let script = binary::workspace().join("tests/install-grpcurl.sh");
    let output = Command::new(script)
        .arg(binary::target_dir().join("tools"))
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| path.trim().into())
}

fn in_path() -> Option<PathBuf> {
    let found = Command::new("grpcurl").arg("-version").output();
    found
        .is_ok_and(|output| output.status.success())
        .then(|| "grpcurl".into())
}

impl Daemon {
    /// Runs grpcurl against this daemon's socket, with a request in JSON.
    pub async fn grpcurl(
        &self,
        program: &PathBuf,
        data: Option<&str>,
        rest: &[&str],
    ) -> GrpcurlResult {
        let mut command = tokio::process::Command::new(program);
        command.args(["-plaintext", "-unix"]).kill_on_drop(true);
        command.args(data.iter().flat_map(|data| ["-d", data]));
        command.arg(self.socket()).args(rest);
        let output = crate::within("grpcurl", command.output())
            .await
            .expect("grpcurl can be run");
        GrpcurlResult {
            success: output.status.success(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl GrpcurlResult {
    /// The answer of a call that must have succeeded.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert!(self.success, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
