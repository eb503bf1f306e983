//! An address that is read-only.

use heeler_tests::{Daemon, http1::error, shell, v1::*, within};
use serde_json::json;

/// H1, H2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_read_only_address_changes_nothing() {
    let daemon = Daemon::builder()
        .http()
        .arg("--http-read-only")
        .start()
        .await;
    let http = daemon.http().await;
    let task = daemon.api().await.start(shell("sleep 1000")).await;
    let cancel = json!({"filter": {"taskIds": [task.id]}}).to_string();
    for (method, json) in [
        ("Spawn", r#"{"spec": {"shell": {"script": "true"}}}"#),
        ("Cancel", cancel.as_str()),
        ("Remove", cancel.as_str()),
        ("Shutdown", "{}"),
    ] {
        let answer = http.send(http.request(method, json.to_owned())).await;
        let refused = ("permission_denied".to_owned(), "READ_ONLY".to_owned());
        assert_eq!(answer.error(), refused, "{method}");
    }
    // The page learns it from any answer, and shows no actions.
    for answer in [
        http.get("/", &[]).await,
        http.send(http.request("List", "{}")).await,
    ] {
        assert_eq!(answer.headers["heeler-access"], "read-only");
    }
    let owning = json!({"ownSession": {"sessionId": "s"}}).to_string();
    let mut frames = http.stream("WatchEvents", &owning).await;
    let (_, end) = frames.next().await.unwrap();
    let refused = error(&end["error"]);
    assert_eq!(refused.1, "READ_ONLY", "{end}");
    let listed = http.call("List", "{}").await;
    assert_eq!(
        listed["tasks"][0]["state"], "TASK_STATE_RUNNING",
        "{listed}"
    );
}

/// H1, L7: an end that a client has received goes before one that none has.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_end_that_is_read_at_a_read_only_address_is_not_delivered() {
    let builder = Daemon::builder().http().arg("--http-read-only");
    let daemon = builder.arg("--keep-for=1ms").start().await;
    let (api, http) = (daemon.api().await, daemon.http().await);
    let removals = WatchEventsRequest {
        types: vec![TaskEventType::Removed.into()],
        ..Default::default()
    };
    let mut removals = api.watch(removals).await.unwrap();
    let read = api.start(shell("echo hello")).await.id;
    let filter = json!({"taskIds": [read]});
    let wait = json!({"filter": filter}).to_string();
    assert_eq!(http.call("Wait", &wait).await["satisfied"], true);
    let inspect = json!({"taskId": read}).to_string();
    http.call("Inspect", &inspect).await;
    http.call("List", r#"{"includeFinished": true}"#).await;
    let mut events = http
        .stream("WatchEvents", r#"{"afterRevision": "0"}"#)
        .await;
    events
        .until(|_, json| json["event"]["type"] == "TASK_EVENT_TYPE_ENDED")
        .await;
    let follow = json!({"filter": filter, "includeFinished": true}).to_string();
    let mut output = http.stream("FollowOutput", &follow).await;
    output.until(|_, json| json.get("ended").is_some()).await;
    // One that is received later is removed.
    let received = api.start(shell("true")).await.id;
    api.ended(&received).await;
    let removed = within("a removal", removals.event()).await;
    assert_eq!(removed.task.unwrap().id, received);
    http.call("Inspect", &inspect).await;
}
