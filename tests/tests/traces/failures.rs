//! Daemons and collectors that go away.

use std::{
    fs,
    time::{Duration, Instant},
};

use heeler_tests::{Api, Collector, Daemon, shell, within};

use super::{exporting, start_under, traceparent};

/// A task that runs until a file is there.
async fn wait_for_a_file(daemon: &Daemon, api: &Api) -> String {
    let script = format!("until [ -e {} ]; do sleep 0.01; done", daemon.file("go"));
    start_under(api, &traceparent(), shell(script)).await.id
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_down_delays_nothing_and_gets_the_later_spans() {
    let mut collector = Collector::down();
    let daemon = exporting(&collector).start().await;
    let api = daemon.api().await;
    let id = api.start(shell("true")).await.id;
    api.ended(&id).await;
    collector.listen();
    // The attempts from before may have to fail first.
    let arrives = async {
        let mut ids = Vec::new();
        while !ids.iter().any(|id: &String| collector.has_task(id)) {
            let id = api.start(shell("true")).await.id;
            api.ended(&id).await;
            ids.push(id);
        }
    };
    within("the span of a later task", arrives).await;
}

/// H8: the task ends while no daemon runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_ends_while_the_daemon_is_down_has_its_span() {
    let collector = Collector::start();
    let mut daemon = exporting(&collector).start().await;
    let id = wait_for_a_file(&daemon, &daemon.api().await).await;
    let call = collector.call("Spawn").await;
    daemon.kill9();
    fs::write(daemon.path("go"), "").unwrap();
    daemon.restart().await;
    let task = collector.task(&id).await;
    assert_eq!((task.trace(), task.parent()), (call.trace(), call.id()));
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_spans_are_sent_when_the_daemon_stops() {
    let collector = Collector::start();
    let builder = exporting(&collector).env("OTEL_BSP_SCHEDULE_DELAY", "600000");
    let mut daemon = builder.start().await;
    let api = daemon.api().await;
    let id = api.start(shell("true")).await.id;
    api.ended(&id).await;
    assert_eq!(collector.spans().len(), 0);
    daemon.terminate();
    collector.task(&id).await;
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_stops_in_time_without_its_collector() {
    let collector = Collector::down();
    let mut daemon = exporting(&collector).start().await;
    let api = daemon.api().await;
    let id = api.start(shell("true")).await.id;
    api.ended(&id).await;
    let begun = Instant::now();
    daemon.terminate();
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// H8
#[tokio::test]
async fn an_address_that_cannot_be_one_is_refused_at_the_start() {
    let daemon = Daemon::builder().prepare();
    for wrong in ["", "no url", "http://", "127.0.0.1:4317", "ftp://localhost"] {
        let stderr = daemon
            .refused_start(&daemon.path("other"), &["--otlp", wrong])
            .await;
        assert!(stderr.contains("cannot export traces"), "{wrong}: {stderr}");
    }
}
