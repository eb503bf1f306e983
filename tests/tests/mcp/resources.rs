//! Resources with updates, and log messages of ends.

use heeler_tests::Daemon;
use serde_json::json;

use crate::Mcp;

/// M3, M4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_task_list_and_an_output_are_resources() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let id = mcp.spawn("echo hello; sleep 600").await;
    mcp.call("heeler_wait", json!({ "ids": [id], "pattern": "hello" }))
        .await;
    let listed = mcp.request("resources/list", json!({})).await.unwrap();
    let uri = format!("heeler://tasks/{id}/output");
    let uris: Vec<_> = listed["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["uri"].clone())
        .collect();
    assert_eq!(uris, [json!("heeler://tasks"), json!(uri)]);
    let tasks = mcp
        .request("resources/read", json!({ "uri": "heeler://tasks" }))
        .await
        .unwrap();
    assert!(
        tasks["contents"][0]["text"].as_str().unwrap().contains(&id),
        "{tasks}"
    );
    let output = mcp
        .request("resources/read", json!({ "uri": uri }))
        .await
        .unwrap();
    assert_eq!(output["contents"][0]["text"], "hello\n");
    let mut other = Mcp::start_as(&daemon, &[], "other").await;
    let foreign = other
        .request("resources/read", json!({ "uri": uri }))
        .await
        .unwrap_err();
    assert!(
        foreign["message"].as_str().unwrap().contains("no task"),
        "{foreign}"
    );
    let unknown = mcp
        .request("resources/read", json!({ "uri": "heeler://x" }))
        .await
        .unwrap_err();
    assert!(
        unknown["message"].as_str().unwrap().contains("there are"),
        "{unknown}"
    );
}

/// M4: a subscriber is told of changes in both lifecycles.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_subscriber_is_told_of_changes() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let gate = daemon.path("gate");
    let script = format!(
        "until [ -e {} ]; do sleep 0.05; done; echo hello; sleep 600",
        gate.display()
    );
    let id = mcp.spawn(&script).await;
    let output = format!("heeler://tasks/{id}/output");
    mcp.request("resources/subscribe", json!({ "uri": output }))
        .await
        .unwrap();
    let mut modern = Mcp::modern(&daemon, &[], json!({}));
    let filter = json!({ "resourceSubscriptions": ["heeler://tasks", "file:///x"] });
    modern
        .begin("subscriptions/listen", json!({ "notifications": filter }))
        .await;
    let accepted = modern
        .notification("notifications/subscriptions/acknowledged")
        .await;
    assert_eq!(
        accepted["notifications"]["resourceSubscriptions"],
        json!(["heeler://tasks"]),
        "{accepted}"
    );
    std::fs::write(gate, "").unwrap();
    let updated = mcp.notification("notifications/resources/updated").await;
    assert_eq!(updated["uri"], *output);
    mcp.request("resources/unsubscribe", json!({ "uri": output }))
        .await
        .unwrap();
    mcp.call("heeler_cancel", json!({ "ids": [id] })).await;
    let updated = modern.notification("notifications/resources/updated").await;
    assert_eq!(updated["uri"], "heeler://tasks");
}

/// M4, R1: a subscription outlives a daemon that is away for longer than its calls are repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_subscription_to_an_output_outlives_a_crash_of_the_daemon() {
    let mut daemon = Daemon::start().await;
    let address = daemon.address();
    let mut mcp = Mcp::start(&daemon, &["--addr", &address]).await;
    let gate = daemon.path("gate");
    let script = format!(
        "until [ -e {} ]; do sleep 0.05; done; echo hello; sleep 600",
        gate.display()
    );
    let id = mcp.spawn(&script).await;
    let mut other = Mcp::start(&daemon, &["--addr", &address]).await;
    other.call("heeler_list", json!({})).await;
    let output = format!("heeler://tasks/{id}/output");
    mcp.request("resources/subscribe", json!({ "uri": output }))
        .await
        .unwrap();
    daemon.kill9();
    // The call of a connection gives up after the time for which calls are repeated. The read of the
    // subscription, which was repeated before the first call, has failed by the end of the second.
    mcp.refused("heeler_list", json!({})).await;
    other.refused("heeler_list", json!({})).await;
    daemon.restart().await;
    std::fs::write(gate, "").unwrap();
    let updated = mcp.notification("notifications/resources/updated").await;
    assert_eq!(updated["uri"], *output);
}

/// M3, M5: the list comes in pages, and the size of an output is told once it is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_list_of_resources_comes_in_pages() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let mut ids = vec![mcp.spawn("echo hello; sleep 600").await];
    for _ in 0..101 {
        ids.push(mcp.spawn("echo hello").await);
    }
    mcp.call(
        "heeler_wait",
        json!({ "ids": ids[1..], "timeout_seconds": 50 }),
    )
    .await;
    let first = mcp.request("resources/list", json!({})).await.unwrap();
    let cursor = first["nextCursor"].as_str().expect("there are more");
    let rest = mcp
        .request("resources/list", json!({ "cursor": cursor }))
        .await;
    let rest = rest.unwrap();
    assert_eq!(rest.get("nextCursor"), None, "{rest}");
    let mut seen = Vec::new();
    for one in [&first, &rest]
        .into_iter()
        .flat_map(|page| page["resources"].as_array().unwrap())
    {
        let uri = one["uri"].as_str().unwrap();
        let Some(output) = uri.strip_prefix("heeler://tasks/") else {
            continue;
        };
        let id = output.trim_end_matches("/output");
        let size = if id == ids[0] { None } else { Some(&json!(6)) };
        assert_eq!(one.get("size"), size, "{one}");
        seen.push(id.to_owned());
    }
    ids.sort();
    seen.sort();
    assert_eq!(seen, ids);
    let tasks = mcp.request("resources/read", json!({ "uri": "heeler://tasks" }));
    let tasks = tasks.await.unwrap();
    let text = tasks["contents"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("There are more: see heeler_list"), "{text}");
    let bad = mcp
        .request("resources/list", json!({ "cursor": "zzz" }))
        .await;
    assert_eq!(bad.unwrap_err()["code"], -32602);
}

/// M4: the end of a background task, once, and none of a foreground task.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_end_of_a_background_task_is_a_log_message() {
    let daemon = Daemon::start().await;
    let mut mcp = Mcp::start(&daemon, &[]).await;
    let mut other = Mcp::start_as(&daemon, &[], "other").await;
    // The watch is open once it has told of a first end.
    let told = loop {
        let id = mcp.spawn("exit 5").await;
        mcp.call("heeler_wait", json!({ "ids": [id] })).await;
        mcp.refused("heeler_run", json!({ "command": "exit 6" }))
            .await;
        if mcp.has_seen("notifications/message") {
            break mcp.notification("notifications/message").await;
        }
    };
    assert_eq!(
        (&told["level"], &told["logger"]),
        (&json!("warning"), &json!("heeler"))
    );
    assert!(
        told["data"]["text"]
            .as_str()
            .unwrap()
            .contains("exited with 5"),
        "{told}"
    );
    other.call("heeler_list", json!({})).await;
    assert!(!other.has_seen("notifications/message"));
}
