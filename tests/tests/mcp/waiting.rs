//! Calls that wait: bounded, with progress, and over at once when their client is gone.

use std::time::{Duration, Instant};

use heeler_tests::{
    Daemon, SpawnRequestExt as _,
    client::input::status,
    eventually, exclusive, secs, shell,
    v1::{ExclusiveMode, WriteInputRequest},
};
use serde_json::json;

use crate::{Mcp, connection::Answer};

/// M2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_ends_in_time_and_says_how_to_go_on() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let id = mcp.spawn("sleep 600").await;
    let begun = Instant::now();
    let waited = mcp
        .call("heeler_wait", json!({ "ids": [id], "timeout_seconds": 1 }))
        .await;
    assert!(begun.elapsed() < Duration::from_secs(50));
    assert_eq!(waited.data["satisfied"], false);
    assert_eq!(waited.data["pending"][0]["id"], *id);
    waited.has("call heeler_wait again with the same arguments");
    let long = mcp
        .refused("heeler_wait", json!({ "ids": [id], "timeout_seconds": 60 }))
        .await;
    assert!(
        long.contains("`timeout_seconds` must be 50 or less"),
        "{long}"
    );
}

/// M2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_reports_progress_and_returns_the_end() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let gate = daemon.path("gate");
    let script = format!(
        "until [ -e {} ]; do sleep 0.05; done; echo done; exit 3",
        gate.display()
    );
    let id = mcp.spawn(&script).await;
    let arguments = json!({ "ids": [id], "timeout_seconds": 50 });
    let params = json!({
        "name": "heeler_wait", "arguments": arguments, "_meta": { "progressToken": "p1" },
    });
    let request = mcp.begin("tools/call", params).await;
    let progress = mcp.notification("notifications/progress").await;
    assert_eq!(progress["progressToken"], "p1");
    assert!(
        progress["message"].as_str().unwrap().contains("waits"),
        "{progress}"
    );
    std::fs::write(gate, "").unwrap();
    let waited = Answer::of(&mcp.answer(request).await.unwrap());
    assert_eq!(waited.data["satisfied"], true);
    assert_eq!(waited.data["met"][0]["exit_code"], 3);
    waited
        .has("failed (exited with 3)")
        .has("Done.")
        .has("done")
        .has("all output: heeler_output {\"id\": \"shell-");
}

/// M2: any of several, the whole session, and a line.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_is_for_any_for_all_for_the_session_or_for_a_line() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let idle = mcp.call("heeler_wait", json!({})).await;
    idle.has("no task of this session is running");
    let long = mcp.spawn("echo Listening on 8080; sleep 600").await;
    let short = mcp.spawn("true").await;
    let ids = json!([long, short]);
    let any = mcp
        .call("heeler_wait", json!({ "ids": ids, "mode": "any" }))
        .await;
    assert_eq!(any.data["ids"], json!([short]));
    let pattern = "Listening on (\\d+)";
    let line = mcp
        .call("heeler_wait", json!({ "ids": [long], "pattern": pattern }))
        .await;
    line.has(&format!("matched {long}: Listening on 8080"));
    let never = json!({ "ids": [short], "pattern": "never" });
    let never = mcp.call("heeler_wait", never).await;
    never.has("it cannot be any more");
    let all = mcp
        .call("heeler_wait", json!({ "timeout_seconds": 0 }))
        .await;
    assert_eq!(all.data["pending"][0]["id"], *long);
}

/// M2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_for_any_without_ids_is_for_any_live_task() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let idle = mcp.call("heeler_wait", json!({ "mode": "any" })).await;
    idle.has("no task of this session is running");
    let long = mcp.spawn("sleep 600").await;
    let gate = daemon.path("gate");
    let script = format!("until [ -e {} ]; do sleep 0.05; done", gate.display());
    let short = mcp.spawn(&script).await;
    let params = json!({
        "name": "heeler_wait", "arguments": { "mode": "any", "timeout_seconds": 50 },
        "_meta": { "progressToken": "p1" },
    });
    let request = mcp.begin("tools/call", params).await;
    mcp.notification("notifications/progress").await;
    std::fs::write(gate, "").unwrap();
    let any = Answer::of(&mcp.answer(request).await.unwrap());
    assert_eq!(any.data["satisfied"], true);
    assert_eq!(any.data["ids"], json!([short]));
    assert_eq!(any.data["pending"][0]["id"], *long);
}

/// M2: a task that waits for input is shown as such, without a silence that its caller has to ask for.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_waits_at_a_prompt_is_shown() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    for option in ["stdin", "terminal"] {
        let prompt = json!({ "command": "echo continue?; read -r answer; exit 0", option: true });
        let id = mcp.call("heeler_spawn", prompt).await.data["id"].clone();
        let limit = Instant::now() + heeler_tests::DEADLINE;
        loop {
            let listed = mcp.call("heeler_list", json!({})).await;
            if listed.data["tasks"][0]["needs_input"] == true {
                listed.has("WAITS FOR INPUT");
                break;
            }
            assert!(Instant::now() < limit, "{listed:?}");
        }
        mcp.call(
            "heeler_send",
            json!({ "id": id, "input": "y", "enter": true }),
        )
        .await;
        mcp.call("heeler_wait", json!({ "ids": [id] }))
            .await
            .has("exited with 0");
    }
}

/// M2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_that_waits_in_its_queue_has_not_started() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let first = json!({ "command": "sleep 600", "queue": "build" });
    mcp.call("heeler_spawn", first).await;
    let next = json!({ "command": "true", "queue": "build", "background_after_seconds": 1 });
    let next = mcp.call("heeler_run", next).await;
    next.has("queued")
        .has("Not started yet: it waits for its turn");
    assert_eq!(next.data["still_running"], true);
    let ids = json!([next.data["id"]]);
    mcp.call("heeler_wait", json!({ "ids": ids, "timeout_seconds": 0 }))
        .await
        .has("still queued: ");
}

/// M2, M5: the server ends at once, and the tasks go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_closes_its_input_ends_the_wait_and_nothing_else() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let id = mcp.spawn("sleep 600").await;
    mcp.begin_call("heeler_wait", json!({ "ids": [id], "timeout_seconds": 50 }))
        .await;
    let begun = Instant::now();
    assert!(mcp.close().await.success());
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
    let mut next = Mcp::start(&daemon, &[]).await;
    next.call("heeler_list", json!({}))
        .await
        .has(&format!("{id} running"));
}

/// M4: a run whose call is cancelled stops, by its policy.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancelled_run_stops_or_goes_on_in_the_background() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    for (policy, state) in [("cancel", "cancelled"), ("detach", "running")] {
        let name = format!("run-{policy}");
        let arguments = json!({ "command": "sleep 600", "name": name, "on_disconnect": policy });
        let request = mcp.begin_call("heeler_run", arguments).await;
        let mut id = String::new();
        while id.is_empty() {
            let listed = mcp.call("heeler_list", json!({ "name": name })).await;
            id = listed.data["tasks"][0]["id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
        }
        mcp.notify("notifications/cancelled", json!({ "requestId": request }))
            .await;
        let api = daemon.api().await;
        let ended = async || {
            let task = api.task(&id).await;
            (
                format!("{:?}", task.state()).to_lowercase(),
                task.placement(),
            )
        };
        let mut seen = ended().await;
        let limit = Instant::now() + heeler_tests::DEADLINE;
        while seen.0 != state
            || (policy == "detach" && seen.1 != heeler_tests::v1::Placement::Background)
        {
            assert!(Instant::now() < limit, "{policy}: {seen:?}");
            seen = ended().await;
        }
    }
}

/// M4: kill -9 of the server is a disconnect, after which the daemon applies the policy.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_killed_server_leaves_background_tasks_and_ends_its_run() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let background = mcp.spawn("sleep 601").await;
    mcp.begin_call("heeler_run", json!({ "command": "sleep 602" }))
        .await;
    let runs = |command: &str| {
        let processes = daemon.processes();
        processes
            .iter()
            .any(|process| process.command().contains(command))
    };
    eventually("the run", || runs("sleep 602")).await;
    mcp.child.start_kill().unwrap();
    eventually("the end of the run", || !runs("sleep 602")).await;
    assert!(runs("sleep 601"));
    let mut next = Mcp::start(&daemon, &[]).await;
    next.call("heeler_list", json!({}))
        .await
        .has(&format!("{background} running"));
}

/// M2: the holder takes long to stop. Its replacement starts all the same, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_ensure_that_waits_reports_progress_and_goes_on_without_its_client() {
    let daemon = Daemon::start().await;
    let (ignores, gate) = (daemon.file("ignores"), daemon.file("gate"));
    let script = format!("trap '' TERM; touch {ignores}; until [ -e {gate} ]; do sleep 0.05; done");
    let key = format!("dev:{}", daemon.home().display());
    let holder = exclusive(&key, ExclusiveMode::Reject, shell(script)).with_grace(secs(600));
    daemon.api().await.start(holder).await;
    eventually("the trap", || daemon.path("ignores").exists()).await;

    let mut mcp = Mcp::start(&daemon, &[]).await;
    let replacing = json!({ "key": "dev", "command": "exec sleep 600", "replace": true });
    let params = json!({
        "name": "heeler_ensure", "arguments": replacing, "_meta": { "progressToken": "p1" },
    });
    mcp.begin("tools/call", params).await;
    let progress = mcp.notification("notifications/progress").await;
    assert_eq!(progress["progressToken"], "p1");
    let listed = mcp.call("heeler_list", json!({})).await;
    let waiting = listed.data["tasks"][0]["id"].clone();
    listed.has("queued");
    let begun = Instant::now();
    assert!(mcp.close().await.success());
    assert!(begun.elapsed() < heeler_tests::DEADLINE);

    let mut next = Mcp::start(&daemon, &[]).await;
    let same = json!({ "key": "dev", "command": "exec sleep 600" });
    let ensured = next.begin_call("heeler_ensure", same).await;
    next.call("heeler_list", json!({})).await.has("queued");
    std::fs::write(gate, "").unwrap();
    let ensured = Answer::of(&next.answer(ensured).await.unwrap());
    assert!(!ensured.is_error, "{ensured:?}");
    assert_eq!(ensured.data["id"], waiting);
    ensured.has("running").has("nothing was started");
}

/// M2: the next answer has what ended between two calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_end_between_two_waits_is_in_the_second() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let gate = daemon.path("gate");
    let script = format!(
        "until [ -e {} ]; do sleep 0.05; done; exit 3",
        gate.display()
    );
    let build = json!({ "command": script, "name": "build" });
    let build = mcp.call("heeler_spawn", build).await;
    let id = build.data["id"].as_str().unwrap().to_owned();
    let long = mcp.spawn("sleep 600").await;
    let first = mcp
        .call("heeler_wait", json!({ "timeout_seconds": 0 }))
        .await;
    assert_eq!(first.data["satisfied"], false);
    std::fs::write(gate, "").unwrap();
    api.ended(&id).await;

    for mode in ["any", "all"] {
        let again = json!({ "mode": mode, "timeout_seconds": 0 });
        let again = mcp.call("heeler_wait", again).await;
        if mode == "any" {
            assert_eq!(again.data["satisfied"], true, "{again:?}");
            assert_eq!(again.data["ids"], json!([id]));
            again.has("failed (exited with 3)");
        } else {
            assert_eq!(again.data["ids"], json!([]), "it was told of: {again:?}");
        }
        assert_eq!(again.data["pending"][0]["id"], *long);
    }
    mcp.call("heeler_cancel", json!({ "ids": [long] })).await;
    let last = mcp.call("heeler_wait", json!({})).await;
    assert_eq!(last.data["ids"], json!([long]));
    mcp.call("heeler_wait", json!({}))
        .await
        .has("no task of this session is running");

    let named = json!({ "ids": ["build"] });
    mcp.call("heeler_wait", named)
        .await
        .has(&format!("{id} failed (exited with 3)"));
    let none = mcp
        .refused("heeler_wait", json!({ "ids": ["other"] }))
        .await;
    assert!(none.contains("no task `other`"), "{none}");
}

/// M2: the daemon's wait ends when it is known whether a task is ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_has_crashed_is_not_ready() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let gate = daemon.path("gate");
    let script = format!(
        "until [ -e {} ]; do sleep 0.05; done; exit 3",
        gate.display()
    );
    let never = json!({ "command": script, "ready_pattern": "listening", "wait_seconds": 0 });
    let never = mcp.call("heeler_spawn", never).await.data["id"].clone();
    let soon = json!({ "command": "echo listening; exec sleep 600", "ready_pattern": "listening" });
    let soon = mcp.call("heeler_spawn", soon).await.data["id"].clone();
    let first = json!({ "until": "ready", "timeout_seconds": 0 });
    let first = mcp.call("heeler_wait", first).await;
    first.has(&format!("still running: {}", never.as_str().unwrap()));
    std::fs::write(gate, "").unwrap();
    api.ended(never.as_str().unwrap()).await;

    let without_ids = json!({ "until": "ready" });
    let with_ids = json!({ "until": "ready", "ids": [never, soon] });
    for arguments in [without_ids, with_ids] {
        let waited = mcp.call("heeler_wait", arguments.clone()).await;
        assert_eq!(waited.data["satisfied"], false, "{arguments}: {waited:?}");
        assert_eq!(waited.data["ids"], json!([soon]));
        waited
            .has(&format!("ended: {} failed", never.as_str().unwrap()))
            .has("Not ready: see the output");
    }
    let any = json!({ "until": "ready", "ids": [never, soon], "mode": "any" });
    let any = mcp.call("heeler_wait", any).await;
    assert_eq!(any.data["satisfied"], true, "{any:?}");
}

/// M5, I6: another client has the input.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn input_that_another_client_has_can_be_taken_over() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let reader = json!({ "command": "read -r line; echo got $line", "stdin": true });
    let id = mcp.call("heeler_spawn", reader).await.data["id"].clone();
    let held = WriteInputRequest {
        writer_id: "other".to_owned(),
        take_over: true,
        ..status(id.as_str().unwrap())
    };
    api.write_input(held).await.unwrap();
    let mut send = json!({ "id": id, "input": "yes", "enter": true });
    let refused = mcp.refused("heeler_send", send.clone()).await;
    assert!(refused.contains("INPUT_HELD"), "{refused}");
    assert!(refused.contains("Next: pass `take_over`"), "{refused}");
    send["take_over"] = true.into();
    mcp.call("heeler_send", send).await;
    mcp.call("heeler_wait", json!({ "ids": [id] }))
        .await
        .has("got yes");
}
