//! Events that are delivered: their order, their form, their signature, their choice.

use std::{fs, os::unix::fs::PermissionsExt};

use heeler_tests::{
    Authority, Daemon, Receiver, SpawnRequestExt, Worker, millis,
    receiver::Notice,
    shell,
    v1::{ProgressUpdate, TaskState, WorkerStatus},
    worker::{hosted, result},
};
use serde_json::{Value, json};

use super::{revisions, sending};

/// H7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_event_is_sent_in_order_as_watchers_see_it_and_signed() {
    let receiver = Receiver::start();
    let daemon = sending("all", &[&receiver]).http().start().await;
    let api = daemon.api().await;
    for script in ["echo 'a \"b\"'", "exit 3"] {
        let id = api.start(shell(script).with_session("s")).await.id;
        api.ended(&id).await;
    }
    let mut worker = Worker::register(&api, hosted()).await;
    let progress = ProgressUpdate {
        counts: [("failed".to_owned(), 0)].into(),
        ..Default::default()
    };
    worker.report(progress).await;
    worker.finish(result(WorkerStatus::Ok, "done")).await;
    let newest = api.revision().await;
    let notices = receiver.has_accepted(newest as usize).await;
    assert_eq!(revisions(&notices), (1..=newest).collect::<Vec<_>>());
    let epoch = api.server().await.epoch;
    let mut events = daemon
        .http()
        .await
        .stream("WatchEvents", r#"{"afterRevision": "0"}"#)
        .await;
    for notice in &notices {
        let is_event = |_: u8, message: &Value| message.get("event").is_some();
        let (_, mut watched) = events.until(is_event).await.pop().unwrap();
        watched["epoch"] = json!(epoch);
        assert_eq!(notice.json(), watched);
        assert!(notice.is_signed_by(&daemon));
        assert_eq!(notice.path, "/hook?a=b");
        assert_eq!(notice.header("content-type"), "application/json");
        let name = watched["event"]["type"].as_str().unwrap();
        let name = name.strip_prefix("TASK_EVENT_TYPE_").unwrap();
        assert_eq!(notice.header("heeler-event"), name);
        let id = format!("{epoch}/{}", notice.revision());
        assert_eq!(notice.header("heeler-id"), id);
    }
    let secret = fs::metadata(daemon.path("state/webhook-secret")).unwrap();
    assert_eq!(secret.permissions().mode() & 0o777, 0o600);
    let mut forged = notices[0].clone();
    forged.body = notices[1].body.clone();
    assert!(!forged.is_signed_by(&daemon));
}

/// H7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn by_default_a_person_hears_of_ends_and_of_tasks_that_need_one() {
    let receiver = Receiver::start();
    let builder = Daemon::builder().arg("--webhook").arg(receiver.url());
    let daemon = builder.start().await;
    let api = daemon.api().await;
    let silent = api
        .start(shell("sleep 1000").with_stale_after(millis(50)))
        .await
        .id;
    receiver.has_accepted(1).await;
    api.stop(&silent).await;
    let notices = receiver.has_accepted(2).await;
    let types: Vec<&str> = notices
        .iter()
        .map(|one| one.header("heeler-event"))
        .collect();
    assert_eq!(types, ["STALE", "ENDED"]);
    let ended = notices[1].json();
    assert_eq!(
        ended["event"]["task"]["state"],
        TaskState::Cancelled.as_str_name()
    );
}

/// H7: events of the time before a receiver was configured are not sent, those of a restart are.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_receiver_gets_the_events_since_it_was_configured() {
    let (receiver, later) = (Receiver::start(), Receiver::start());
    let mut daemon = sending("ended", &[&receiver]).start().await;
    let api = daemon.api().await;
    let first = api.start(shell("true")).await.id;
    api.ended(&first).await;
    receiver.has_accepted(1).await;
    let running = api.start(shell("sleep 1000")).await.id;
    daemon.kill9();
    daemon.add_arg("--webhook");
    daemon.add_arg(&later.url());
    daemon.restart().await;
    daemon.api().await.stop(&running).await;
    for (receiver, expected) in [
        (&receiver, vec![&first, &running]),
        (&later, vec![&running]),
    ] {
        let expected: Vec<Value> = expected.into_iter().map(|id| json!(id)).collect();
        heeler_tests::eventually("the ends", || {
            let id = |one: &Notice| one.json()["event"]["task"]["id"].clone();
            let mut ids: Vec<Value> = receiver.accepted().iter().map(id).collect();
            // The crash may have come between an answer and its record.
            ids.dedup();
            ids == expected
        })
        .await;
    }
}

/// H7: a daemon that a command starts has no receiver, and neither has one with a mistyped URL.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_receiver_that_was_taken_out_for_a_while_misses_nothing() {
    let receiver = Receiver::start();
    let mut daemon = sending("ended", &[&receiver]).start().await;
    let args = daemon.take_args();
    let mut ids = Vec::new();
    let elsewhere = vec!["--webhook".to_owned(), "http://127.0.0.1:9/".to_owned()];
    for args in [Vec::new(), elsewhere, args] {
        daemon.kill9();
        args.iter().for_each(|arg| daemon.add_arg(arg));
        daemon.restart().await;
        let api = daemon.api().await;
        let id = api.start(shell("true")).await.id;
        api.ended(&id).await;
        ids.push(id);
    }
    let notices = receiver.has_accepted(3).await;
    let id = |notice: &Notice| notice.json()["event"]["task"]["id"].clone();
    assert_eq!(notices.iter().map(id).collect::<Vec<_>>(), ids);
}

/// H7, N4: command lines can be read by every user of the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn receivers_can_be_named_in_a_private_file() {
    let (first, second) = (Receiver::start(), Receiver::start());
    let mut daemon = Daemon::builder().arg("--webhook-file").prepare();
    let urls = daemon.path("urls");
    fs::write(
        &urls,
        format!("# both\n{}\n{}\n", first.url(), second.url()),
    )
    .unwrap();
    fs::set_permissions(&urls, PermissionsExt::from_mode(0o600)).unwrap();
    daemon.add_arg(urls.to_str().unwrap());
    daemon.restart().await;
    let api = daemon.api().await;
    let id = api.start(shell("true")).await.id;
    api.ended(&id).await;
    for receiver in [first, second] {
        assert!(receiver.has_accepted(1).await[0].is_signed_by(&daemon));
    }
}

/// H7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_receiver_with_a_certificate_is_sent_to_if_an_authority_of_the_system_has_signed_it() {
    let dir = tempfile::tempdir().unwrap();
    let own = Authority::new(dir.path(), "own");
    let trusted = Receiver::with_tls(&own.certify("127.0.0.1"));
    let other_dir = tempfile::tempdir().unwrap();
    let foreign = Authority::new(other_dir.path(), "foreign");
    let untrusted = Receiver::with_tls(&foreign.certify("127.0.0.1"));
    let builder = sending("ended", &[&trusted, &untrusted]);
    let daemon = builder.env("SSL_CERT_FILE", &own.certificate).start().await;
    let api = daemon.api().await;
    let id = api.start(shell("true")).await.id;
    api.ended(&id).await;
    assert!(trusted.has_accepted(1).await[0].is_signed_by(&daemon));
    let log = daemon.logged("a webhook was not accepted").await;
    assert!(log.contains("certificate"), "{log}");
    assert!(untrusted.notices().is_empty());
}
