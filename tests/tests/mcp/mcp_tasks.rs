//! The tasks extension: a run as an MCP task, across restarts of the daemon and of the server.

use std::time::Instant;

use heeler_tests::{DEADLINE, Daemon};
use serde_json::{Value, json};

use crate::Mcp;

fn with_tasks() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

/// Polls, as a client of the extension does, until the status is another one.
async fn ended(mcp: &mut Mcp, id: &str) -> Value {
    let limit = Instant::now() + DEADLINE;
    loop {
        let task = mcp
            .request("tasks/get", json!({ "taskId": id }))
            .await
            .unwrap();
        if task["status"] != "working" {
            return task;
        }
        assert!(task["pollIntervalMs"].as_u64().unwrap() >= 1000, "{task}");
        assert!(Instant::now() < limit, "{task}");
    }
}

/// M6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_becomes_a_task_that_survives_the_daemon_and_the_server() {
    let mut daemon = Daemon::start().await;
    let mut mcp = Mcp::modern(&daemon, &[], with_tasks());
    let discovered = mcp.request("server/discover", json!({})).await.unwrap();
    let extensions = &discovered["capabilities"]["extensions"];
    assert!(
        extensions.get("io.modelcontextprotocol/tasks").is_some(),
        "{discovered}"
    );
    let gate = daemon.path("gate");
    let script = format!(
        "until [ -e {} ]; do sleep 0.05; done; echo done; exit 4",
        gate.display()
    );
    let params = json!({ "name": "heeler_run", "arguments": { "command": script } });
    let created = mcp.request("tools/call", params).await.unwrap();
    assert_eq!(
        (&created["resultType"], &created["status"]),
        (&json!("task"), &json!("working"))
    );
    assert_eq!(created["ttlMs"], Value::Null);
    let id = created["taskId"].as_str().unwrap().to_owned();
    assert!(mcp.close().await.success());
    daemon.kill9();
    daemon.restart().await;

    let mut next = Mcp::modern(&daemon, &[], with_tasks());
    let working = next
        .request("tasks/get", json!({ "taskId": id }))
        .await
        .unwrap();
    assert_eq!(working["status"], "working", "{working}");
    std::fs::write(gate, "").unwrap();
    let task = ended(&mut next, &id).await;
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(task["result"]["isError"], true);
    assert_eq!(task["result"]["structuredContent"]["task"]["exit_code"], 4);
    assert_eq!(task["result"]["structuredContent"]["output"], "done\n");
}

/// M6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancelling_the_task_stops_the_tree() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::modern(&daemon, &[], with_tasks());
    let arguments = json!({ "command": "setsid sleep 1000 & sleep 1001" });
    let params = json!({ "name": "heeler_run", "arguments": arguments });
    let created = mcp.request("tools/call", params).await.unwrap();
    let id = created["taskId"].as_str().unwrap().to_owned();
    mcp.request("tasks/cancel", json!({ "taskId": id }))
        .await
        .unwrap();
    let task = ended(&mut mcp, &id).await;
    assert_eq!(task["status"], "cancelled");
    assert!(
        task["statusMessage"]
            .as_str()
            .unwrap()
            .contains("proven gone"),
        "{task}"
    );
    mcp.request(
        "tasks/update",
        json!({ "taskId": id, "inputResponses": {} }),
    )
    .await
    .unwrap();
    let (short, uid) = id.split_once('.').unwrap();
    let forged = format!("{short}.{}", uid.replace(|c: char| c.is_ascii_digit(), "0"));
    for unknown in [short, "x", &*forged] {
        for (method, params) in [
            ("tasks/get", json!({ "taskId": unknown })),
            ("tasks/cancel", json!({ "taskId": unknown })),
            (
                "tasks/update",
                json!({ "taskId": unknown, "inputResponses": {} }),
            ),
        ] {
            let refused = mcp.request(method, params).await.unwrap_err();
            assert_eq!(refused["code"], -32602, "{unknown} {method}: {refused}");
        }
    }
    mcp.close().await;
    daemon.no_processes().await;
}

/// M6, M3: the result has the limit and the notices of the call, also from another server.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_result_of_a_task_has_the_limit_and_the_notices_of_its_call() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::modern(&daemon, &[], with_tasks());
    let arguments = json!({ "command": "seq 1 20000 &", "max_bytes": 1024 });
    let params = json!({ "name": "heeler_run", "arguments": arguments });
    let created = mcp.request("tools/call", params).await.unwrap();
    let id = created["taskId"].as_str().unwrap().to_owned();
    let mut next = Mcp::modern(&daemon, &[], with_tasks());
    let task = ended(&mut next, &id).await;
    let result = &task["result"]["structuredContent"];
    assert!(result["output"].as_str().unwrap().len() < 1200, "{result}");
    assert!(
        result["notices"][0]
            .as_str()
            .unwrap()
            .contains("trailing &"),
        "{result}"
    );
}

/// M6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_the_capability_a_run_is_a_plain_call() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::modern(&daemon, &[], json!({}));
    let params = json!({ "name": "heeler_run", "arguments": { "command": "echo hi" } });
    let result = mcp.request("tools/call", params).await.unwrap();
    assert_eq!(
        (&result["resultType"], &result["isError"]),
        (&json!("complete"), &json!(false))
    );
    let refused = mcp
        .request("tasks/get", json!({ "taskId": "x" }))
        .await
        .unwrap_err();
    assert_eq!(refused["code"], -32021, "{refused}");
}
