//! The promises of the daemon, through the tools: a cancel reaches what hides, and a crash loses nothing.

use heeler_tests::{Daemon, Process, eventually};
use nix::sys::signal::Signal;
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

/// M5, R1: the daemon does not come back while the call waits. A model that runs the command again has it twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_that_loses_the_daemon_leads_to_its_task() {
    let mut daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let run = json!({ "command": "exec sleep 602", "background_after_seconds": 1 });
    let run = mcp.begin_call("heeler_run", run).await;
    let runs = || {
        let processes = daemon.processes();
        processes
            .iter()
            .any(|process| process.command().contains("sleep 602"))
    };
    eventually("the run", runs).await;
    daemon.kill9();
    let lost = Answer::of(&mcp.answer(run).await.unwrap());
    daemon.restart().await;
    let task = daemon.api().await.all().await.remove(0);
    assert!(lost.is_error, "{lost:?}");
    lost.has(&format!("the command has started, as {}", task.id))
        .has("do not run it again");
}

/// M5, R1: the daemon is gone before the start is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_whose_answer_is_lost_is_looked_for_first() {
    let mut daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    mcp.call("heeler_list", json!({})).await;
    Process::now(daemon.pid()).unwrap().signal(Signal::SIGSTOP);
    let mut calls = Vec::new();
    for tool in ["heeler_spawn", "heeler_run"] {
        calls.push(mcp.begin_call(tool, json!({ "command": "true" })).await);
    }
    daemon.kill9();
    for call in calls {
        let lost = Answer::of(&mcp.answer(call).await.unwrap());
        assert!(lost.is_error, "{lost:?}");
        lost.has("may have started")
            .has("Next: call heeler_list first");
    }
    daemon.restart().await;
}

/// M2, M5: it takes connections and calls, and answers none.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_daemon_that_hangs_leaves_no_request_without_an_answer() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let run = json!({ "command": "exec sleep 600", "background_after_seconds": 48 });
    let params = json!({
        "name": "heeler_run", "arguments": run, "_meta": { "progressToken": "p1" },
    });
    let run = mcp.begin("tools/call", params).await;
    // The call knows its task by now.
    mcp.notification("notifications/progress").await;
    let listed = mcp.call("heeler_list", json!({})).await;
    let id = listed.data["tasks"][0]["id"].as_str().unwrap().to_owned();
    let stopped = Process::now(daemon.pid()).unwrap();
    stopped.signal(Signal::SIGSTOP);
    let mut calls = Vec::new();
    for (tool, arguments) in [
        ("heeler_list", json!({})),
        ("heeler_wait", json!({ "timeout_seconds": 1 })),
        ("heeler_spawn", json!({ "command": "true" })),
    ] {
        calls.push(mcp.begin_call(tool, arguments).await);
    }
    let uri = json!({ "uri": "heeler://tasks" });
    let read = mcp.begin("resources/read", uri).await;
    let run = Answer::of(&mcp.late_answer(run).await.unwrap());
    assert!(run.is_error, "{run:?}");
    run.has("the daemon does not answer").has(&id);
    for call in calls {
        let answer = Answer::of(&mcp.late_answer(call).await.unwrap());
        assert!(answer.is_error, "{answer:?}");
        answer
            .has("the daemon does not answer")
            .has("Next: ask the user to run `heeler doctor`");
    }
    let refused = mcp.late_answer(read).await.unwrap_err();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("does not answer"), "{refused}");
    stopped.signal(Signal::SIGCONT);
    mcp.call("heeler_inspect", json!({ "id": id })).await;
}
