//! The promises of the daemon, through the tools: a cancel reaches what hides, and a crash loses nothing.

use heeler_tests::{Daemon, eventually};
use serde_json::json;

use crate::{Mcp, connection::Answer};

/// C4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancel_reaches_setsid_double_forks_and_cleared_environments() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let script = "setsid sleep 1000 & echo $!; (setsid sleep 1001 >&- 2>&- & echo $!); \
                  env -i setsid sleep 1002 0>&- 1>&- 2>&- & echo $!; echo ready; sleep 1003";
    let id = mcp.spawn(script).await;
    mcp.call("heeler_wait", json!({ "ids": [id], "pattern": "^ready$" }))
        .await;
    let output = mcp.call("heeler_output", json!({ "id": id })).await;
    let output = output.data["output"].as_str().unwrap().to_owned();
    let pids: Vec<&str> = output.lines().filter(|line| *line != "ready").collect();
    assert_eq!(pids.len(), 3, "{output}");
    let cancelled = mcp
        .call("heeler_cancel", json!({ "ids": [id], "reason": "enough" }))
        .await;
    cancelled.has("proven gone");
    assert_eq!(cancelled.data["all_gone"], true);
    for pid in pids {
        assert!(
            !std::path::Path::new(&format!("/proc/{pid}")).exists(),
            "{pid}"
        );
    }
    let inspected = mcp.call("heeler_inspect", json!({ "id": id })).await;
    inspected.has("stopped by MCP: tests because \"enough\"");
}

/// R1: kill -9 of the daemon in the middle of a wait and of a run.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_and_a_run_go_on_across_a_crash_of_the_daemon() {
    let mut daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let gate = daemon.path("gate");
    let script = format!(
        "echo before; until [ -e {} ]; do sleep 0.05; done; echo after; exit 7",
        gate.display()
    );
    let id = mcp.spawn(&script).await;
    let wait = mcp
        .begin_call("heeler_wait", json!({ "ids": [id], "timeout_seconds": 50 }))
        .await;
    let run = json!({ "command": script, "background_after_seconds": 48 });
    let run = mcp.begin_call("heeler_run", run).await;
    let both = || {
        let shells = daemon.processes().into_iter();
        shells
            .filter(|process| process.command().contains("echo before"))
            .count()
            >= 2
    };
    eventually("both tasks", both).await;
    daemon.kill9();
    daemon.restart().await;
    std::fs::write(gate, "").unwrap();
    let waited = Answer::of(&mcp.answer(wait).await.unwrap());
    assert_eq!(waited.data["met"][0]["exit_code"], 7, "{waited:?}");
    let ran = Answer::of(&mcp.answer(run).await.unwrap());
    assert!(ran.is_error, "{ran:?}");
    ran.has("exited with 7");
    assert_eq!(ran.data["output"], "before\nafter\n");
    let output = mcp.call("heeler_output", json!({ "id": id })).await;
    assert_eq!(output.data["output"], "before\nafter\n");
}
