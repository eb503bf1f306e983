//! Sessions: what a connection reaches, and the labels of its tasks.

use heeler_tests::{
    Daemon,
    cli::CommandResult,
    v1::{EndReason, ListSessionsRequest, TaskState},
};
use serde_json::json;

use crate::Mcp;

/// M4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_reaches_its_own_session_only_unless_told_otherwise() {
    let daemon = Daemon::start().await;
    let mut own = Mcp::start_as(&daemon, &[], "one").await;
    let mut other = Mcp::start_as(&daemon, &[], "two").await;
    let id = own.spawn("sleep 600").await;
    let session = daemon.api().await.task(&id).await.spec.unwrap().session_id;
    assert_eq!(session, format!("one:{}", daemon.home().display()));

    other
        .call("heeler_list", json!({ "state": "all" }))
        .await
        .has("no tasks");
    for (tool, arguments) in [
        ("heeler_inspect", json!({ "id": id })),
        ("heeler_output", json!({ "id": id })),
        ("heeler_wait", json!({ "ids": [id] })),
        ("heeler_detach", json!({ "id": id })),
        ("heeler_send", json!({ "id": id, "message": "x" })),
        ("heeler_cancel", json!({ "ids": [id] })),
    ] {
        let refused = other.refused(tool, arguments).await;
        assert!(
            refused.contains("no task") && refused.contains("heeler_list"),
            "{tool}: {refused}"
        );
    }
    other
        .call("heeler_cancel", json!({ "all": true }))
        .await
        .has("nothing to stop");

    let mut all = Mcp::start_as(&daemon, &["--all"], "three").await;
    all.call("heeler_list", json!({})).await.has(&id);
    let mut same = Mcp::start_as(&daemon, &["--session", &session], "four").await;
    same.call("heeler_cancel", json!({ "all": true }))
        .await
        .has(&id)
        .has("proven gone");
}

/// M4, M5: an empty session would select the tasks of every session.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_that_the_daemon_would_refuse_is_refused_at_the_start() {
    let daemon = Daemon::start().await;
    for (session, fault) in [
        (String::new(), "is empty"),
        ("s".repeat(300), "is longer than 256 bytes"),
    ] {
        let refused = CommandResult::of(daemon.cli(["mcp", "--session", &session])).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(fault), "{refused:?}");
    }
}

/// M4: a task that another session ensured can be used and stopped by the one that asked for it as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ensure_finds_the_task_of_another_session() {
    let daemon = Daemon::start().await;
    let mut one = Mcp::start_as(&daemon, &[], "one").await;
    let mut two = Mcp::start_as(&daemon, &[], "two").await;
    let server = json!({ "key": "dev", "command": "exec sleep 600" });
    let first = one.call("heeler_ensure", server.clone()).await;
    let again = two.call("heeler_ensure", server).await;
    assert_eq!(first.data["id"], again.data["id"]);
    two.call("heeler_inspect", json!({ "id": again.data["id"] }))
        .await
        .has("running");
    let replaced = json!({ "key": "dev", "command": "exec sleep 601", "replace": true });
    let replaced = two.call("heeler_ensure", replaced).await;
    assert_ne!(first.data["id"], replaced.data["id"]);
    let elsewhere = json!({ "key": "dev", "command": "exec sleep 600", "cwd": "/" });
    let elsewhere = two.call("heeler_ensure", elsewhere).await;
    assert_ne!(elsewhere.data["id"], replaced.data["id"]);
}

/// M4: the key of `heeler_ensure` has the directory, however it is spelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ensure_finds_the_task_under_every_spelling_of_its_directory() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let home = daemon.home();
    std::fs::create_dir(home.join("sub")).unwrap();
    std::os::unix::fs::symlink(home.join("sub"), home.join("link")).unwrap();
    let mut ensured = async |cwd: &str| {
        let server = json!({ "key": "dev", "command": "exec sleep 600", "cwd": cwd });
        let task = mcp.call("heeler_ensure", server).await;
        task.data["id"].as_str().unwrap().to_owned()
    };
    let id = ensured("sub").await;
    let absolute = home.join("sub").display().to_string();
    for cwd in ["sub/", "./sub", "sub/../sub/.", "link", &absolute] {
        assert_eq!(ensured(cwd).await, id, "{cwd}");
    }
    let project = ensured(".").await;
    assert_ne!(project, id);
    assert_eq!(ensured("sub/..").await, project);
}

/// M4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn directory_environment_and_trace_reach_the_task() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &["--env", "FIXED=f"]).await;
    std::fs::create_dir(daemon.home().join("sub")).unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let arguments =
        json!({ "command": "echo $FIXED $OWN; pwd", "cwd": "sub", "env": { "OWN": "o" } });
    let params = json!({
        "name": "heeler_run", "arguments": arguments, "_meta": { "traceparent": trace },
    });
    let result = mcp.request("tools/call", params).await.unwrap();
    let output = result["structuredContent"]["output"].as_str().unwrap();
    assert_eq!(
        output,
        format!("f o\n{}\n", daemon.home().join("sub").display())
    );
    let id = result["structuredContent"]["id"].as_str().unwrap();
    let task = daemon.api().await.task(id).await;
    assert_eq!(task.spec.unwrap().labels["traceparent"], trace);
}

/// M4, E10: asked for, the tasks end with the last connection of their session, also after a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_tasks_of_a_session_end_with_its_last_connection_if_asked_for() {
    let daemon = Daemon::start().await;
    let mut one = Mcp::start(&daemon, &["--end-session"]).await;
    let mut two = Mcp::start(&daemon, &["--end-session"]).await;
    let mut other = Mcp::start_as(&daemon, &[], "keeps").await;
    let id = one.spawn("sleep 600").await;
    let kept = other.spawn("sleep 600").await;
    two.call("heeler_list", json!({})).await.has(&id);
    let api = daemon.api().await;
    let request = ListSessionsRequest {
        session_id: format!("tests:{}", daemon.home().display()),
        ..ListSessionsRequest::default()
    };
    let listed = api.list_sessions(request).await.unwrap();
    assert_eq!(listed.sessions[0].owners, Some(2));
    one.close().await;
    other.close().await;
    two.child.kill().await.unwrap();
    let ended = api.ended(&id).await;
    assert_eq!(ended.end_reason(), EndReason::ClientDisconnected);
    assert_eq!(api.task(&kept).await.state(), TaskState::Running);
}

/// M4, M5: the task that an error names can be looked at and used.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_different_holder_of_another_session_is_within_reach() {
    let daemon = Daemon::start().await;
    let mut one = Mcp::start_as(&daemon, &[], "one").await;
    let mut two = Mcp::start_as(&daemon, &[], "two").await;
    let server = |command: &str| json!({ "key": "dev", "command": command });
    let first = one.call("heeler_ensure", server("exec sleep 600")).await;
    let id = first.data["id"].as_str().unwrap();
    let inspect = json!({ "id": id });
    two.refused("heeler_inspect", inspect.clone()).await;
    let refused = two.refused("heeler_ensure", server("exec sleep 601")).await;
    assert!(refused.contains(id), "{refused}");
    two.call("heeler_inspect", inspect).await.has("running");
}

/// M1, N4: the configuration of a host reaches the same daemon from elsewhere, and has no value that was not given.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_printed_configuration_reaches_the_same_daemon_and_has_no_secrets() {
    let daemon = Daemon::start().await;
    let mut command = daemon.cli([
        "mcp",
        "--print-config",
        "claude-code",
        "--addr",
        "tls:localhost:7117",
        "--token-file",
        "token",
        "--env",
        "API_KEY",
        "--env",
        "NOT_SET_HERE",
        "--env",
        "MODE=fast",
    ]);
    command.env("API_KEY", "secret");
    command.env("HEELER_TLS_CA", "ca.pem");
    let printed = CommandResult::of(command).await.ok();
    let server = &printed.json()["mcpServers"]["heeler"];
    let file = |name: &str| daemon.home().join(name).display().to_string();
    let expected = json!([
        "mcp",
        "--addr",
        "tls:localhost:7117",
        "--token-file",
        file("token"),
        "--tls-ca",
        file("ca.pem"),
        "--env",
        "API_KEY",
        "--env",
        "NOT_SET_HERE",
        "--env",
        "MODE=fast",
    ]);
    assert_eq!(server["args"], expected, "{printed:?}");
    let served = daemon.heeler(["mcp", "--env", "NOT_SET_HERE"]).await;
    assert_eq!(served.code, Some(2), "{served:?}");
    assert!(served.stderr.contains("NOT_SET_HERE"), "{served:?}");
}
