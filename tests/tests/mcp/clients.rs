//! Clients that were written elsewhere list the tools and call each.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use heeler_tests::{Daemon, binary, cli::CommandResult, skipped};
use serde_json::Value;

/// Installs clients on first use. Returns `None`, after reporting a skip, if they cannot be.
fn installed(which: &str) -> Option<PathBuf> {
    let script = binary::workspace().join("tests/install-mcp-clients.sh");
    let dir = binary::target_dir().join("tools");
    // Two tests may need the same clients at once.
    std::fs::create_dir_all(&dir).unwrap();
    let mut command = Command::new("flock");
    command
        .arg(dir.join(format!("mcp-{which}.lock")))
        .arg(script);
    let output = command
        .arg(which)
        .arg(&dir)
        .stderr(Stdio::inherit())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8(output.stdout).unwrap().trim().into())
        }
        Ok(_) | Err(_) => {
            skipped(&format!("the {which} clients of MCP cannot be installed"));
            None
        }
    }
}

fn steps() -> PathBuf {
    binary::workspace().join("tests/mcp/steps.json")
}

fn program(daemon: &Daemon) -> String {
    daemon.program().to_str().unwrap().to_owned()
}

/// Runs the Python client in a lifecycle of the protocol. Returns its transcript.
pub(crate) async fn python(daemon: &Daemon, mode: &str) -> Option<CommandResult> {
    let dir = installed("python")?;
    let mut command = daemon.wrapper(dir.join("bin/python").to_str().unwrap());
    command.arg(binary::workspace().join("tests/mcp/client.py"));
    command
        .arg(mode)
        .arg(steps())
        .arg(program(daemon))
        .arg("mcp");
    Some(CommandResult::of(command).await.ok())
}

/// M1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_python_client_calls_every_tool_without_initialize() {
    let daemon = Daemon::start().await;
    if let Some(result) = python(&daemon, "auto").await {
        assert!(result.stderr.contains("protocol 2026-07-28"), "{result:?}");
    }
}

/// M1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_python_client_calls_every_tool_after_initialize() {
    let daemon = Daemon::start().await;
    if let Some(result) = python(&daemon, "legacy").await {
        assert!(result.stderr.contains("protocol 2025-11-25"), "{result:?}");
    }
}

/// M1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_typescript_client_calls_every_tool() {
    let Some(dir) = installed("node") else { return };
    let daemon = Daemon::start().await;
    // A module is searched for from the file that imports it.
    let script = dir.join("client.mjs");
    std::fs::copy(binary::workspace().join("tests/mcp/client.mjs"), &script).unwrap();
    let mut command = daemon.wrapper("node");
    command
        .arg(script)
        .arg(steps())
        .arg(program(&daemon))
        .arg("mcp");
    let result = CommandResult::of(command).await.ok();
    assert!(result.stdout.contains("calls"), "{result:?}");
}

/// The inspector's command line: each call is a connection of its own.
struct Inspector<'a> {
    daemon: &'a Daemon,
    program: PathBuf,
}

impl Inspector<'_> {
    async fn request(&self, method: &[String]) -> Value {
        let mut command = self.daemon.wrapper("node");
        // It passes on a few variables of its environment alone, as many hosts do.
        let address = format!("HEELER_ADDR={}", self.daemon.address());
        command.arg(&self.program).args(["--cli", "-e", &address]);
        command.arg(program(self.daemon)).arg("mcp").args(method);
        // A tool error is printed as well, and is an error of the command.
        CommandResult::of(command).await.json()
    }

    async fn call(&self, tool: &str, arguments: &Value) -> Value {
        let mut method: Vec<String> = ["--method", "tools/call", "--tool-name", tool]
            .map(str::to_owned)
            .into();
        for (name, value) in arguments.as_object().unwrap() {
            let text = value.as_str().map(str::to_owned);
            let value = text.unwrap_or_else(|| value.to_string());
            method.extend(["--tool-arg".to_owned(), format!("{name}={value}")]);
        }
        self.request(&method).await
    }
}

/// The value with each ${name} replaced by the id that was saved under the name.
fn filled(value: &Value, ids: &[(String, String)]) -> Value {
    let text = ids.iter().fold(value.to_string(), |text, (name, id)| {
        text.replace(&format!("${{{name}}}"), id)
    });
    serde_json::from_str(&text).unwrap()
}

/// M1, M4: a connection finds the tasks of the ones before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_inspector_calls_every_tool() {
    let Some(dir) = installed("node") else { return };
    let daemon = Daemon::start().await;
    let inspector = Inspector {
        daemon: &daemon,
        program: dir.join("node_modules/.bin/mcp-inspector"),
    };
    let listed = inspector
        .request(&["--method".to_owned(), "tools/list".to_owned()])
        .await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), 10);
    let steps: Vec<Value> = serde_json::from_slice(&std::fs::read(steps()).unwrap()).unwrap();
    let mut ids: Vec<(String, String)> = Vec::new();
    for step in steps {
        let arguments = filled(&step["arguments"], &ids);
        let result = inspector
            .call(step["tool"].as_str().unwrap(), &arguments)
            .await;
        assert_eq!(
            result["isError"] == true,
            step["is_error"] == true,
            "{result}"
        );
        let text = result["content"][0]["text"].as_str().unwrap();
        if let (Some(name), Some(id)) = (
            step["save"].as_str(),
            result["structuredContent"]["id"].as_str(),
        ) {
            ids.push((name.to_owned(), id.to_owned()));
        }
        let expected = filled(&step["expect"], &ids);
        for part in expected
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
        {
            // A connection that has read nothing is given the output again.
            assert!(text.contains(part) || part == "(nothing)", "{part}: {text}");
        }
    }
}
