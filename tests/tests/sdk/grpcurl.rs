//! grpcurl: reflection, health and calls by a client without a proto file.

use heeler_tests::{Daemon, argv, grpcurl};
use serde_json::json;

const SERVICE: &str = "heeler.v1.BackgroundTasks";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn reflection_lists_and_describes_the_services() {
    let Some(program) = grpcurl::program() else {
        return;
    };
    let daemon = Daemon::start().await;
    let result = daemon.grpcurl(&program, None, &["list"]).await;
    assert!(result.success, "{result:?}");
    for service in [
        SERVICE,
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
    ] {
        assert!(
            result.stdout.lines().any(|line| line == service),
            "{service}: {result:?}"
        );
    }
    let result = daemon.grpcurl(&program, None, &["list", SERVICE]).await;
    let methods: Vec<&str> = result
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("heeler.v1.BackgroundTasks."))
        .collect();
    let expected = [
        "Attach",
        "Cancel",
        "Detach",
        "FollowOutput",
        "Inspect",
        "List",
        "ListQueues",
        "ListSessions",
        "ReadOutput",
        "Remove",
        "ReportProgress",
        "ResizeTerminal",
        "SendMessage",
        "Shutdown",
        "Spawn",
        "UpdateQueue",
        "UpdateTask",
        "Wait",
        "WatchEvents",
        "Work",
        "WriteInput",
    ];
    assert_eq!(methods, expected);
    let result = daemon
        .grpcurl(&program, None, &["describe", "heeler.v1.SpawnRequest"])
        .await;
    assert!(
        result.stdout.contains("string request_id = 1"),
        "{result:?}"
    );
    let result = daemon.grpcurl(&program, None, &["describe", SERVICE]).await;
    assert!(result.stdout.contains("rpc WatchEvents"), "{result:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_is_serving() {
    let Some(program) = grpcurl::program() else {
        return;
    };
    let daemon = Daemon::start().await;
    for data in [r#"{}"#, r#"{"service":"heeler.v1.BackgroundTasks"}"#] {
        let result = daemon
            .grpcurl(&program, Some(data), &["grpc.health.v1.Health/Check"])
            .await;
        assert_eq!(result.json(), json!({"status": "SERVING"}));
    }
}

/// S1, L1, C1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_is_spawned_listed_waited_for_read_and_cancelled() {
    let Some(program) = grpcurl::program() else {
        return;
    };
    let daemon = Daemon::start().await;
    let call = async |method: &str, data: &str| {
        let method = format!("{SERVICE}/{method}");
        daemon.grpcurl(&program, Some(data), &[&method]).await
    };
    let spawned = call(
        "Spawn",
        r#"{"spec":{"shell":{"script":"echo hi; exit 3"},"name":"n"}}"#,
    )
    .await
    .json();
    let id = spawned["task"]["id"].as_str().unwrap().to_owned();
    let waited = call(
        "Wait",
        &json!({"filter": {"taskIds": [id]}, "timeout": "30s"}).to_string(),
    )
    .await
    .json();
    assert_eq!(waited["met"][0]["outcome"], json!({"exitCode": 3}));
    assert_eq!(waited["met"][0]["state"], "TASK_STATE_FAILED");
    let read = call(
        "ReadOutput",
        &json!({"taskId": id, "view": "OUTPUT_VIEW_TEXT"}).to_string(),
    )
    .await
    .json();
    assert_eq!(read["chunks"][0]["text"], "hi\n");

    let spawned = call("Spawn", r#"{"spec":{"argv":{"args":["sleep","60"]}}}"#)
        .await
        .json();
    let second = spawned["task"]["id"].as_str().unwrap().to_owned();
    let listed = call("List", "{}").await.json();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(listed["tasks"][0]["id"], second.as_str());
    let cancelled = call(
        "Cancel",
        &json!({"filter": {"taskIds": [second]}, "wait": true}).to_string(),
    )
    .await
    .json();
    assert_eq!(
        cancelled["results"][0]["outcome"],
        "CANCEL_OUTCOME_REQUESTED"
    );
    assert_eq!(
        cancelled["results"][0]["task"]["state"],
        "TASK_STATE_CANCELLED"
    );
}

/// C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_refusal_shows_code_reason_and_metadata() {
    let Some(program) = grpcurl::program() else {
        return;
    };
    let daemon = Daemon::start().await;
    let data = r#"{"taskId":"shell-aaaaaaaaaa"}"#;
    let result = daemon
        .grpcurl(&program, Some(data), &["heeler.v1.BackgroundTasks/Inspect"])
        .await;
    assert!(!result.success);
    for part in [
        "NotFound",
        "TASK_NOT_FOUND",
        "heeler.dev",
        "shell-aaaaaaaaaa",
    ] {
        assert!(result.stderr.contains(part), "{part}: {result:?}");
    }
}

/// E2: the stream does not end, so grpcurl has a time limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_are_streamed_as_json() {
    let Some(program) = grpcurl::program() else {
        return;
    };
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(argv(["true"])).await;
    api.ended(&task.id).await;
    let mut command = tokio::process::Command::new(&program);
    command.args([
        "-plaintext",
        "-unix",
        "-max-time",
        "3",
        "-d",
        r#"{"afterRevision":0}"#,
    ]);
    command
        .arg(daemon.socket())
        .arg("heeler.v1.BackgroundTasks/WatchEvents")
        .kill_on_drop(true);
    let output = heeler_tests::within("grpcurl", command.output())
        .await
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let items: Vec<serde_json::Value> = serde_json::Deserializer::from_str(&text)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    let types: Vec<&str> = items
        .iter()
        .filter_map(|item| item["event"]["type"].as_str())
        .collect();
    let expected = [
        "TASK_EVENT_TYPE_CREATED",
        "TASK_EVENT_TYPE_STARTED",
        "TASK_EVENT_TYPE_ENDED",
    ];
    assert_eq!(types, expected);
}
