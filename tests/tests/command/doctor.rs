//! `heeler doctor`: the daemon's facts, and trees whose daemon is gone.

use std::fs;

use heeler_tests::{Daemon, eventually};
use serde_json::Value;

/// The orphans of this test, among those of the whole machine.
async fn orphans(daemon: &Daemon) -> Vec<Value> {
    let report = daemon.heeler(["doctor", "--json"]).await.json();
    let dir = daemon.path("").display().to_string();
    let all = report["orphans"].as_array().unwrap().clone();
    let own = |one: &Value| {
        one["place"]
            .as_str()
            .unwrap()
            .contains(dir.trim_end_matches('/'))
    };
    all.into_iter().filter(own).collect()
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn doctor_names_containment_state_socket_log_and_limits() {
    let mut daemon = Daemon::builder()
        .containment("subreaper")
        .max_tasks(7)
        .start()
        .await;
    let report = daemon.heeler(["doctor", "--json"]).await.json();
    let has = |field: &str, text: &str| {
        let value = report[field].as_str().unwrap_or_default();
        assert!(value.contains(text), "{field}: {report}");
    };
    has("containment", "subreaper");
    has("no_cgroup", "--containment");
    has("state", &daemon.file("state"));
    has("address", &daemon.file("run/heeler/heeler.sock"));
    has("log", &daemon.file("server.log"));
    has("tasks", "at most 7");
    let id = daemon.spawned(&["sleep", "60"]).await;
    assert_eq!(
        orphans(&daemon).await,
        [] as [Value; 0],
        "a daemon serves {id}"
    );
    daemon.heeler(["cancel", &id]).await.ok();
    daemon.terminate();
    let report = daemon.heeler(["doctor", "--json"]).await.json();
    assert!(
        report["daemon"].as_str().unwrap().contains("not running"),
        "{report}"
    );
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_tree_without_a_daemon_is_named_and_ended_on_request_alone() {
    let mut daemon = Daemon::start().await;
    let id = daemon
        .spawned(&["-c", "sleep 60 & setsid sleep 60 & wait"])
        .await;
    eventually("the tree", || daemon.processes().len() >= 4).await;
    daemon.kill9();
    let found = orphans(&daemon).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&found[0]["cause"], &found[0]["task"]),
        (&"NOT_SERVED".into(), &id.as_str().into())
    );

    // Never without a directory in a test: that ends trees of other tests on this machine.
    let other = daemon.file("another");
    daemon.heeler(["doctor", "--end-orphans", &other]).await;
    assert_eq!(
        orphans(&daemon).await.len(),
        1,
        "another directory was named"
    );
    daemon.restart().await;
    let state = daemon.file("state");
    daemon.heeler(["doctor", "--end-orphans", &state]).await;
    let task = daemon.api().await.task(&id).await;
    assert_eq!(
        task.state(),
        heeler_tests::v1::TaskState::Running,
        "a daemon serves it"
    );

    daemon.kill9();
    let ended = daemon.heeler(["doctor", "--end-orphans", &state]).await;
    assert!(ended.stderr.contains(&format!("ended {id}")), "{ended:?}");
    daemon.no_processes().await;
    daemon.restart().await;
    let task = daemon.api().await.ended(&id).await;
    assert_eq!(
        task.state(),
        heeler_tests::v1::TaskState::Failed,
        "the shim recorded the end"
    );
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_tree_whose_state_directory_is_deleted_is_ended_on_request() {
    let mut daemon = Daemon::start().await;
    let id = daemon.spawned(&["sleep", "60"]).await;
    daemon.kill9();
    fs::rename(daemon.state_dir(), daemon.path("moved")).unwrap();
    let found = orphans(&daemon).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["cause"], "DELETED");
    assert_eq!(orphans(&daemon).await.len(), 1, "a report ends nothing");
    let state = daemon.file("state");
    let ended = daemon.heeler(["doctor", "--end-orphans", &state]).await;
    assert!(ended.stderr.contains(&id), "{ended:?}");
    daemon.no_processes().await;
    fs::rename(daemon.path("moved"), daemon.state_dir()).unwrap();
}
