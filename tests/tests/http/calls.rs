//! Calls and streams by the Connect protocol.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use heeler_tests::{
    Daemon, Worker,
    http1::error,
    http2::{self, Connection},
    not_installed, shell,
    v1::ProgressUpdate,
    within,
    worker::hosted,
};
use serde_json::json;

/// H1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_is_spawned_listed_waited_for_read_and_cancelled_in_json() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let spec = r#"{"spec": {"sessionId": "s", "shell": {"script": "echo hello; sleep 1000"}}}"#;
    let task = http.call("Spawn", spec).await["task"].clone();
    let id = task["id"].as_str().unwrap();
    assert_eq!(task["state"], "TASK_STATE_RUNNING");
    let listed = http.call("List", r#"{"filter": {"sessionId": "s"}}"#).await;
    assert_eq!(listed["tasks"][0]["id"], id);
    // As by `--json`: fields at their default are there.
    assert_eq!(listed["nextPageToken"], "");
    let search = json!({"regex": "hel+o"});
    let until = "WAIT_CONDITION_MATCHED";
    let wait = json!({"filter": {"taskIds": [id]}, "until": until, "match": search}).to_string();
    assert_eq!(http.call("Wait", &wait).await["satisfied"], true);
    let read = json!({"taskId": id}).to_string();
    let read = http.call("ReadOutput", &read).await;
    let data = read["chunks"][0]["data"].as_str().unwrap();
    assert_eq!(STANDARD.decode(data).unwrap(), b"hello\n", "{read}");
    let cancel = json!({"filter": {"taskIds": [id]}, "wait": true}).to_string();
    let cancelled = http.call("Cancel", &cancel).await;
    let task = &cancelled["results"][0]["task"];
    assert_eq!(task["state"], "TASK_STATE_CANCELLED", "{cancelled}");
    assert_eq!(daemon.api().await.task(id).await.id, id, "and gRPC agrees");
}

/// H1: every method of the contract is reachable without a line of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_rpc_but_work_answers_by_its_form() {
    let mut daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let pool = prost_reflect::DescriptorPool::decode(heeler_proto::FILE_DESCRIPTOR_SET).unwrap();
    let service = pool.services().next().unwrap();
    for method in service.methods() {
        let name = method.name();
        if name == "Shutdown" || method.is_client_streaming() {
            continue;
        }
        if method.is_server_streaming() {
            let mut frames = http.stream(name, r#"{"wrong": 1}"#).await;
            let (flag, end) = frames.next().await.unwrap();
            assert_eq!(flag, 2, "{name}: {end}");
            assert!(!error(&end["error"]).1.is_empty(), "{name}: {end}");
            continue;
        }
        let answer = http.send(http.request(name, r#"{"wrong": 1}"#)).await;
        let refused = ("invalid_argument".to_owned(), "INVALID_FIELD".to_owned());
        assert_eq!(answer.error(), refused, "{name}");
        assert_eq!(answer.status, 400, "{name}");
    }
    // In the form of its answers: a client would take the status for an unknown error.
    let mut work = http.stream("Work", "{}").await;
    let (flag, end) = work.next().await.unwrap();
    let refused = ("unimplemented".to_owned(), "METHOD_UNKNOWN".to_owned());
    assert_eq!((flag, error(&end["error"])), (2, refused));
    http.call("Shutdown", "{}").await;
    daemon.ended();
}

/// H1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_and_output_are_streamed_as_frames_until_the_server_ends() {
    let mut daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let mut events = http
        .stream("WatchEvents", r#"{"initialState": true}"#)
        .await;
    let api = daemon.api().await;
    let task = api.start(shell("echo one line")).await;
    let seen = events
        .until(|_, json| json["event"]["type"] == "TASK_EVENT_TYPE_ENDED")
        .await;
    let (_, ended) = seen.last().unwrap();
    assert_eq!(ended["event"]["task"]["id"], task.id.as_str(), "{ended}");
    let mut output = http
        .stream(
            "FollowOutput",
            &json!({"filter": {"taskIds": [task.id]}, "includeFinished": true}).to_string(),
        )
        .await;
    let seen = output
        .until(|flag, json| flag == 2 || json.get("ended").is_some())
        .await;
    let text = format!("{seen:?}");
    assert!(text.contains(&STANDARD.encode("one line\n")), "{text}");
    // A shutdown ends the stream with its reason.
    http.call("Shutdown", "{}").await;
    let seen = events.until(|flag, _| flag == 2).await;
    assert_eq!(events.next().await, None, "{seen:?}");
    daemon.ended();
}

/// H1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_error_has_code_reason_metadata_and_field() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let answer = http
        .send(http.request("Inspect", r#"{"taskId": "shell-none"}"#))
        .await;
    assert_eq!(answer.status, 404);
    let error = answer.json();
    assert_eq!(error["code"], "not_found");
    assert_eq!(error["message"], "there is no task shell-none");
    let info = &error["details"][0];
    assert_eq!(info["type"], "google.rpc.ErrorInfo");
    assert_eq!(info["debug"]["reason"], "TASK_NOT_FOUND");
    assert_eq!(info["debug"]["metadata"]["task_id"], "shell-none");
    // A field that the JSON mapping refuses, and one that the server refuses.
    for (json, field) in [
        (r#"{"spec": {"shell": {"script": 7}}}"#, "spec.shell.script"),
        (r#"{"spec": {"shel": {}}}"#, "spec.shel"),
        (
            r#"{"spec": {"shell": {"script": ""}}}"#,
            "spec.shell.script",
        ),
    ] {
        let answer = http.send(http.request("Spawn", json)).await;
        assert_eq!(answer.status, 400);
        let violations = &answer.json()["details"][1]["debug"]["fieldViolations"];
        assert_eq!(violations[0]["field"], field, "{json}");
    }
    assert!(
        daemon.api().await.all().await.is_empty(),
        "nothing was started"
    );
}

/// H1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_ends_at_its_timeout() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let task = daemon.api().await.start(shell("sleep 1000")).await;
    let mut request = http.request(
        "Wait",
        json!({"filter": {"taskIds": [task.id]}}).to_string(),
    );
    let timeout = "50".parse().unwrap();
    request.headers_mut().insert("connect-timeout-ms", timeout);
    let answer = http.send(request).await;
    let late = (504, "deadline_exceeded");
    let found = |status: u16, code: &str| assert_eq!((status, code), late);
    found(answer.status.as_u16(), &answer.error().0);
    // It counts from the arrival of the call, not of the request.
    let begun = Instant::now();
    let mut connection = Connection::to_http(&http).await;
    let headers = [("connect-timeout-ms", "50")];
    let (answer, _body) = connection.begin_json(&http, "List", &headers).await;
    let answer = within("an answer", answer).await.unwrap();
    let status = answer.status().as_u16();
    found(status, &error(&http2::json(answer).await).0);
    assert!(begun.elapsed() < Duration::from_secs(5));
    for wrong in ["-1", "+5", "", "soon", "99999999999"] {
        let mut request = http.request("List", "{}");
        request
            .headers_mut()
            .insert("connect-timeout-ms", wrong.parse().unwrap());
        assert_eq!(http.send(request).await.status, 400, "{wrong}");
    }
}

/// H1: encoders leave out what is zero.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_count_of_zero_is_answered_and_watched() {
    let daemon = Daemon::builder().http().start().await;
    let (api, http) = (daemon.api().await, daemon.http().await);
    let mut worker = Worker::register(&api, hosted()).await;
    let counts = [("passed", 2), ("failed", 0), ("", 0)].map(|(key, n)| (key.to_owned(), n));
    let update = ProgressUpdate {
        counts: counts.into(),
        ..Default::default()
    };
    worker.report(update).await;
    let expected = json!({"": "0", "failed": "0", "passed": "2"});
    let inspect = json!({"taskId": worker.id()}).to_string();
    let inspected = http.call("Inspect", &inspect).await;
    assert_eq!(
        inspected["task"]["progress"]["counts"], expected,
        "{inspected}"
    );
    let listed = http.call("List", "{}").await;
    assert_eq!(
        listed["tasks"][0]["progress"]["counts"], expected,
        "{listed}"
    );
    let mut events = http
        .stream("WatchEvents", r#"{"initialState": true}"#)
        .await;
    let (_, first) = events.next().await.unwrap();
    assert_eq!(first["initial"]["progress"]["counts"], expected, "{first}");
}

/// H1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn curl_makes_calls() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let curl = Command::new("curl")
        .args(["--silent", "--show-error", "--fail-with-body"])
        .args(["-H", "content-type: application/json", "-d", "{}"])
        .args(["-H", &format!("authorization: Bearer {}", http.token)])
        .arg(format!(
            "http://{}/heeler.v1.BackgroundTasks/List",
            http.host
        ))
        .output();
    let Ok(output) = curl else {
        return not_installed("curl");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.starts_with(r#"{"tasks":[]"#),
        "{output:?}"
    );
}
