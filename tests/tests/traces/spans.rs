//! The content of spans.

use heeler_tests::{Collector, SpawnRequestExt as _, micros, shell};
use opentelemetry_proto::tonic::trace::v1::{span::SpanKind, status::StatusCode};

use super::{SPAN, TRACE, exporting, start_under, traceparent};

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_and_its_task_are_spans_below_the_callers() {
    let collector = Collector::start();
    let daemon = exporting(&collector).start().await;
    let api = daemon.api().await;
    let request = shell("exit 3 # private")
        .with_name("build")
        .with_session("s");
    let id = start_under(&api, &traceparent(), request).await.id;
    let ended = api.ended(&id).await;

    let call = collector.call("Spawn").await;
    assert_eq!(
        (call.trace().as_str(), call.parent().as_str()),
        (TRACE, SPAN)
    );
    assert_eq!(call.span.kind(), SpanKind::Server);
    assert_eq!(call.text("rpc.response.status_code").unwrap(), "OK");
    assert_eq!(call.status(), StatusCode::Unset);
    assert_eq!(call.service().unwrap(), "heeler");

    let task = collector.task(&id).await;
    assert_eq!((task.trace().as_str(), task.parent()), (TRACE, call.id()));
    assert_eq!(task.span.kind(), SpanKind::Internal);
    assert_eq!(task.span.name, "shell build");
    assert_eq!(task.text("session.id").unwrap(), "s");
    assert_eq!(task.text("heeler.task.state").unwrap(), "FAILED");
    assert_eq!(task.number("process.exit.code"), Some(3));
    assert_eq!(task.events(), ["started", "leader ended"]);
    assert_eq!(task.status(), StatusCode::Error);
    assert_eq!(
        task.micros(),
        (micros(&ended.create_time), micros(&ended.end_time))
    );
    assert!(!format!("{task:?}{call:?}").contains("private"));
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_has_its_code_and_is_no_fault_of_the_daemon() {
    let collector = Collector::start();
    let daemon = exporting(&collector).start().await;
    let api = daemon.api().await;
    api.inspect("nothing").await.unwrap_err();
    let call = collector.call("Inspect").await;
    assert_eq!(call.text("rpc.response.status_code").unwrap(), "NOT_FOUND");
    assert_eq!(call.status(), StatusCode::Unset);
    assert_eq!(call.parent(), "");
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_was_cancelled_is_no_error() {
    let collector = Collector::start();
    let daemon = exporting(&collector).start().await;
    let api = daemon.api().await;
    let id = api.start(shell("sleep 1000")).await.id;
    api.stop(&id).await;
    let task = collector.task(&id).await;
    assert_eq!(task.events(), ["started", "stopping", "leader ended"]);
    assert_eq!(task.status(), StatusCode::Unset);
    assert_eq!(task.span.name, "shell");
}
