//! The command in scripts: JSON, pipes, starting a daemon.

use heeler_tests::{
    Daemon, SpawnRequestExt as _, cli::CommandResult, eventually, eventually_some, grpcurl,
};
use serde_json::{Value, json};

/// The value without fields at their default, which grpcurl leaves out.
fn without_defaults(value: Value) -> Value {
    let is_default = |value: &Value| {
        [
            json!(false),
            json!(0),
            json!("0"),
            json!(""),
            json!([]),
            json!({}),
        ]
        .contains(value)
            || value
                .as_str()
                .is_some_and(|text| text.ends_with("_UNSPECIFIED"))
    };
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, without_defaults(value)))
            .filter(|(_, value)| !is_default(value))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_defaults).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// `--json` prints the JSON mapping of protobuf, as grpcurl does.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn json_output_equals_that_of_grpcurl() {
    let Some(program) = grpcurl::program() else {
        return;
    };
    let daemon = Daemon::start().await;
    let id = daemon
        .spawned(&[
            "--timeout",
            "1500ms",
            "--label",
            "k=v",
            "-c",
            "printf '\\377'; exit 3",
        ])
        .await;
    daemon.api().await.ended(&id).await;
    let call = async |method: &str, data: Value| {
        let method = format!("heeler.v1.BackgroundTasks/{method}");
        daemon
            .grpcurl(&program, Some(&data.to_string()), &[&method])
            .await
            .json()
    };
    let ours = daemon.heeler(["inspect", &id, "--json"]).await.ok().json();
    let theirs = call("Inspect", json!({"taskId": id})).await;
    assert_eq!(without_defaults(ours), without_defaults(theirs));
    let mut ours = daemon.heeler(["ps", "-a", "--json"]).await.ok().json();
    let mut theirs = call("List", json!({"includeFinished": true})).await;
    for page in [&mut ours, &mut theirs] {
        page.as_object_mut().unwrap().remove("nextPageToken");
    }
    assert_eq!(without_defaults(ours), without_defaults(theirs));
    let ours = daemon.heeler(["wait", &id, "--json"]).await;
    assert_eq!(ours.code, Some(3), "{ours:?}");
    let theirs = call("Wait", json!({"filter": {"taskIds": [id]}})).await;
    assert_eq!(without_defaults(ours.json()), without_defaults(theirs));
}

/// A script may stop reading, e.g. with `head`.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reader_that_stops_reading_is_not_an_error() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for _ in 0..40 {
        let request = heeler_tests::argv(["true"]).with_name("n".repeat(8000));
        api.start(request).await;
    }
    let mut shell = daemon.wrapper("bash");
    shell
        .arg("-c")
        .arg("\"$0\" ps -a --json | head -c 10; exit ${PIPESTATUS[0]}");
    shell.arg(daemon.program());
    let result = CommandResult::of(shell).await;
    assert_eq!(result.stderr, "", "{result:?}");
    assert!([Some(0), Some(141)].contains(&result.code), "{result:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_starts_a_daemon_if_there_is_none_and_reports_it() {
    let mut daemon = Daemon::builder().own_program().prepare();
    let result = daemon.heeler(["run", "--", "echo", "hi"]).await.ok();
    assert_eq!(result.stdout, "hi\n");
    assert!(
        result.stderr.contains("heeler"),
        "the start is not reported: {result:?}"
    );
    let result = daemon.heeler(["spawn", "--", "true"]).await.ok();
    let id = result.stdout.trim_end();
    assert!(id.starts_with("shell-"), "{result:?}");
    let result = daemon.heeler(["wait", id]).await.ok();
    assert_eq!(
        result.stderr, "",
        "the second command started another daemon"
    );
    daemon.learn_epoch().await;
    // The shim may take a moment to exit.
    let server = eventually_some("the daemon to be the only process", || {
        let left = daemon.processes();
        (left.len() == 1).then_some(left)
    })
    .await;
    server[0].signal(nix::sys::signal::Signal::SIGTERM);
    eventually("the daemon to end", || server[0].is_gone()).await;
    assert!(!daemon.socket().exists());
}

/// U5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn start_starts_a_daemon_once_and_prints_its_address() {
    let mut daemon = Daemon::builder().own_program().prepare();
    let first = daemon.heeler(["start"]).await.ok();
    assert!(first.stderr.contains("started the daemon"), "{first:?}");
    let address = format!("unix:{}", daemon.socket().display());
    assert_eq!(first.stdout.trim_end(), address);
    let second = daemon.heeler(["start", "--json"]).await.ok();
    assert_eq!(
        second.stderr, "",
        "the second command started another daemon"
    );
    assert_eq!(second.json(), json!({ "address": address }));
    daemon.learn_epoch().await;
    daemon.heeler(["shutdown"]).await.ok();
    let nowhere = format!("unix:{}", daemon.socket().display());
    let refused = daemon.heeler(["start", "--addr", &nowhere]).await;
    assert_eq!(refused.code, Some(4), "{refused:?}");
}
