//! Bad input: a tool error that says what to do next, and a connection that goes on.

use heeler_tests::Daemon;
use serde_json::{Value, json};

use crate::{Mcp, connection::Answer};

/// M5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bad_arguments_are_tool_errors_that_name_them() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let id = mcp.spawn("echo hello; sleep 600").await;
    let other = mcp.spawn("sleep 600").await;
    let cases: [(&str, Value, &str); 16] = [
        ("heeler_run", json!({}), "`command` is required"),
        (
            "heeler_run",
            json!({ "command": 7 }),
            "`command` must be a string, not 7",
        ),
        ("heeler_run", json!({ "command": "" }), "`command` is empty"),
        (
            "heeler_run",
            json!({ "comand": "x", "command": "x" }),
            "`comand` is unknown",
        ),
        (
            "heeler_spawn",
            json!({ "command": "x", "cwd": "/no/such" }),
            "pass an existing directory as `cwd`",
        ),
        (
            "heeler_spawn",
            json!({ "command": "x", "timeout_seconds": -1 }),
            "`timeout_seconds` must be 1 or more",
        ),
        (
            "heeler_spawn",
            json!({ "command": "x", "ready_port": 1, "ready_url": "http://localhost" }),
            "exclude each other",
        ),
        (
            "heeler_spawn",
            json!({ "command": "x", "env": { "A=B": "c" } }),
            "`env[\"A=B\"]` is not a valid variable name",
        ),
        (
            "heeler_spawn",
            json!({ "command": "x", "wait_seconds": 5 }),
            "`wait_seconds` needs a ready condition",
        ),
        (
            "heeler_wait",
            json!({ "ids": [id], "pattern": "(" }),
            "`pattern`",
        ),
        ("heeler_output", json!({ "id": id, "grep": "[" }), "`grep`"),
        (
            "heeler_output",
            json!({ "id": id, "cursor": "12" }),
            "is not a cursor",
        ),
        (
            "heeler_output",
            json!({ "id": id, "cursor": format!("{other}@0") }),
            "belongs to another task",
        ),
        (
            "heeler_list",
            json!({ "cursor": "zzz" }),
            "PAGE_TOKEN_MISMATCH",
        ),
        ("heeler_cancel", json!({}), "`ids` is required, or all=true"),
        (
            "heeler_ensure",
            json!({ "key": "", "command": "x" }),
            "`key` is empty",
        ),
    ];
    for (tool, arguments, part) in cases {
        let text = mcp.refused(tool, arguments.clone()).await;
        assert!(text.contains(part), "{tool} {arguments}: {text}");
        assert!(text.contains("\nNext: "), "{tool} {arguments}: {text}");
    }
    let unknown = mcp.refused("run_command", json!({})).await;
    assert!(
        unknown.contains("no tool `run_command`") && unknown.contains("heeler_run"),
        "{unknown}"
    );
    mcp.call("heeler_list", json!({ "limit": 5.0 }))
        .await
        .has(&id)
        .has(&other);
}

/// M5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn malformed_messages_and_ten_megabytes_leave_the_connection_open() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    mcp.send_raw(b"this is no JSON\n\n{\"jsonrpc\":\"2.0\"}\n[]\n")
        .await;
    let unnamed = mcp
        .request("tools/call", json!({ "arguments": {} }))
        .await
        .unwrap_err();
    assert_eq!(unnamed["code"], -32602, "{unnamed}");
    let strange = mcp.request("no/such/method", json!({})).await.unwrap_err();
    assert_eq!(strange["code"], -32601, "{strange}");
    let huge = "x".repeat(10 << 20);
    let text = mcp.refused("heeler_run", json!({ "command": huge })).await;
    assert!(
        text.contains("`command`") && text.len() < 2000,
        "{}",
        text.len()
    );
    let text = mcp.refused("heeler_inspect", json!({ "id": huge })).await;
    assert!(
        text.contains("no task `xxx") && text.len() < 2000,
        "{}",
        text.len()
    );
    let name = json!({ "name": "x".repeat(20_000) });
    let text = mcp.refused("heeler_list", name).await;
    assert!(text.contains("`name` is longer"), "{text}");
    for (argument, value) in [
        ("env", json!({ "A": huge })),
        ("name", json!(huge)),
        ("ready_pattern", json!(huge)),
        // Larger than what a program can be started with.
        (
            "env",
            (0..30)
                .map(|n| (format!("V{n}"), json!("x".repeat(100_000))))
                .collect(),
        ),
    ] {
        let arguments = json!({ "command": "true", argument: value });
        let text = mcp.refused("heeler_spawn", arguments).await;
        let next = format!("Next: shorten `{argument}`");
        assert!(text.contains(&next) && text.len() < 2000, "{text}");
    }
    mcp.call("heeler_run", json!({ "command": "echo fine" }))
        .await
        .has("fine");
}

/// M5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn malformed_parameters_of_a_known_method_are_invalid_parameters() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    for (method, params, part) in [
        ("initialize", json!({}), "`protocolVersion`"),
        ("tools/call", json!({}), "`name`"),
        ("tasks/get", json!({}), "`taskId`"),
        ("tasks/update", json!({ "taskId": "x" }), "`inputResponses`"),
        ("tasks/cancel", json!({ "taskId": 1 }), "`taskId`"),
        ("resources/read", json!({}), "`uri`"),
        ("resources/subscribe", json!({ "uri": 1 }), "`uri`"),
        ("resources/unsubscribe", json!({}), "`uri`"),
        ("subscriptions/listen", json!({}), "`notifications`"),
        ("logging/setLevel", json!({ "level": "bogus" }), "emergency"),
    ] {
        let refused = mcp.request(method, params).await.unwrap_err();
        assert_eq!(refused["code"], -32602, "{method}: {refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(part), "{method}: {refused}");
    }
}

/// M5: no daemon can be started, and then there is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_missing_daemon_is_a_tool_error_until_it_is_there() {
    let mut daemon = Daemon::start().await;
    let address = daemon.address();
    let mut mcp = Mcp::start(&daemon, &["--addr", &address]).await;
    let id = mcp.spawn("sleep 600").await;
    daemon.kill9();
    let request = mcp.begin_call("heeler_list", json!({})).await;
    let gone = Answer::of(&mcp.answer(request).await.unwrap());
    assert!(gone.is_error, "{gone:?}");
    gone.has("call the tool again").has("not started from here");
    daemon.restart().await;
    mcp.call("heeler_list", json!({}))
        .await
        .has(&format!("{id} running"));
}
