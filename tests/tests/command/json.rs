//! `--json`: one shape with and without results, and for errors.

use heeler_tests::{Daemon, cli::CommandResult};
use serde_json::{Value, json};

/// The error that a command printed.
#[track_caller]
fn error(result: &CommandResult) -> Value {
    let line = result.stderr.lines().last().unwrap_or_default();
    let line: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {result:?}"));
    line["error"].clone()
}

/// U2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn json_has_the_same_shape_with_and_without_results() {
    let daemon = Daemon::start().await;
    let fields =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let empty = daemon.heeler(["ps", "--json"]).await.ok().json();
    assert_eq!(empty["tasks"], json!([]));
    let none = daemon.heeler(["queue", "--json"]).await.ok().json();
    assert_eq!(none, json!({"queues": []}));
    let id = daemon
        .spawned(&["--queue", "q", "--session", "s", "--", "sleep", "60"])
        .await;
    let listed = daemon.heeler(["ps", "--json"]).await.ok().json();
    assert_eq!(fields(&empty), fields(&listed));
    let task = &listed["tasks"][0];
    assert_eq!(
        (&task["stale"], &task["captureError"]),
        (&json!(false), &json!(""))
    );
    assert_eq!(task["spec"]["labels"], json!({}));
    let queue = daemon.heeler(["queue", "--json"]).await.ok().json();
    assert_eq!(queue["queues"][0]["waiting"], json!(0));
    assert_eq!(queue["queues"][0]["paused"], json!(false));
    daemon.heeler(["cancel", &id]).await.ok();
    let events = daemon
        .heeler(["events", "--json", "--type", "ended"])
        .await
        .ok()
        .stdout;
    let events = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let ended: Value = events
        .into_iter()
        .find(|item: &Value| item.get("event").is_some())
        .unwrap();
    let activity = &ended["event"]["sessionActivity"];
    assert_eq!(
        (&activity["shells"], &activity["agents"]),
        (&json!(0), &json!(0)),
        "{activity}"
    );
}

/// U2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_json_an_error_is_a_status_on_stderr() {
    let daemon = Daemon::start().await;
    let nowhere = format!("unix:{}", daemon.file("nowhere.sock"));
    let unknown = "shell-aaaaaaaaaa";
    for (args, code, status, reason) in [
        (&["inspect", "--json", unknown][..], 3, 5, "TASK_NOT_FOUND"),
        (&["cancel", "--json", unknown], 3, 5, "TASK_NOT_FOUND"),
        (&["wait", "--json", "no-such-name"], 3, 5, "TASK_NOT_FOUND"),
        (
            &["spawn", "--json", "--", "/no/such/program"],
            1,
            9,
            "PROGRAM_UNUSABLE",
        ),
        (
            &["run", "--json", "--", "/no/such/program"],
            127,
            9,
            "PROGRAM_UNUSABLE",
        ),
        (&["ps", "--json", "--addr", &nowhere], 4, 14, ""),
        (&["ps", "--json", "--state", "odd"], 2, 3, ""),
        (&["no-such-command", "--json"], 2, 3, ""),
    ] {
        let result = daemon.heeler(args).await;
        assert_eq!(result.code, Some(code), "{args:?}: {result:?}");
        let error = error(&result);
        assert_eq!(error["code"], json!(status), "{args:?}: {error}");
        assert!(
            !error["message"].as_str().unwrap().is_empty(),
            "{args:?}: {error}"
        );
        let found = error["details"][0]["reason"].as_str().unwrap_or_default();
        assert_eq!(found, reason, "{args:?}: {error}");
    }
    let plain = daemon.heeler(["inspect", unknown]).await;
    assert!(plain.stderr.starts_with("heeler: "), "{plain:?}");
}
