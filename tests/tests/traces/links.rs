//! The places of spans in a trace.

use heeler_tests::{
    Collector, Daemon, SpawnRequestExt as _,
    program::cli::CommandResult,
    shell,
    v1::{ListSessionsRequest, background_tasks_client::BackgroundTasksClient},
};
use tonic::Request;

use super::{SPAN, TRACE, exporting, start_under, traceparent, variable};

const PRINT: &str = "echo $TRACEPARENT";

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_finds_its_own_span_in_its_environment() {
    let collector = Collector::start();
    // The span in which the daemon was started.
    let builder = exporting(&collector).env("TRACEPARENT", traceparent());
    let daemon = builder.env("TRACESTATE", "a=b").start().await;
    let api = daemon.api().await;
    let id = api.start(shell(format!("{PRINT}$TRACESTATE"))).await.id;
    let task = collector.task(&id).await;
    assert_ne!(task.trace(), TRACE);
    let expected = format!("00-{}-{}-01", task.trace(), task.id());
    assert_eq!(variable(&api, &id).await, expected);

    let own = shell(PRINT).with_env([("TRACEPARENT", "mine")]);
    let id = api.start(own).await.id;
    assert_eq!(variable(&api, &id).await, "mine");
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_below_its_parent_task() {
    let collector = Collector::start();
    let daemon = exporting(&collector).start().await;
    let api = daemon.api().await;
    let parent = api.start(shell("sleep 1000")).await.id;
    let child = api.start(shell("true").with_parent(&parent)).await.id;
    let child = collector.task(&child).await;
    api.kill(&parent).await;
    let parent = collector.task(&parent).await;
    assert_eq!(
        (child.trace(), child.parent()),
        (parent.trace(), parent.id())
    );
}

/// H8: by the variable, which the command sends as the header.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_starts_is_below_the_span_that_it_runs_in() {
    let collector = Collector::start();
    let daemon = exporting(&collector).start().await;
    let program = daemon.program();
    let heeler = program.to_str().unwrap();
    let mut command = daemon.cli([
        "run", "--", heeler, "spawn", "--name", "inner", "--", "true",
    ]);
    command.env("TRACEPARENT", traceparent());
    let inner = CommandResult::of(command).await.ok().stdout;
    let inner = collector.task(inner.trim_end()).await;
    assert_eq!(inner.trace(), TRACE);
    // Its call, the task that has made it, the call that has started that, and the caller.
    let mut above = inner;
    for _ in 0..3 {
        let id = above.parent();
        above = collector.span("the span above", |one| one.id() == id).await;
    }
    assert_eq!(above.parent(), SPAN);
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_names_the_span_for_clients_that_send_no_header() {
    let collector = Collector::start();
    let daemon = exporting(&collector).start().await;
    let api = daemon.api().await;
    let labelled = shell("true").with_labels([("traceparent", traceparent())]);
    let id = api.start(labelled).await.id;
    let task = collector.task(&id).await;
    assert_eq!(
        (task.trace().as_str(), task.parent().as_str()),
        (TRACE, SPAN)
    );
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_by_http_are_in_the_trace_of_their_header() {
    let collector = Collector::start();
    let daemon = exporting(&collector).http().start().await;
    let http = daemon.http().await;
    let mut request = http.request("ListQueues", "{}");
    let value = traceparent().parse().unwrap();
    request.headers_mut().insert("traceparent", value);
    assert_eq!(http.send(request).await.status, 200);
    let call = collector.call("ListQueues").await;
    assert_eq!(
        (call.trace().as_str(), call.parent().as_str()),
        (TRACE, SPAN)
    );
}

/// H8: its header could put a span into any trace, and as many as it likes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_without_the_token_has_no_span() {
    let collector = Collector::start();
    let builder = exporting(&collector).http();
    let daemon = builder.also_on("tcp:127.0.0.1:0").start().await;
    let http = daemon.http().await;
    let mut request = http.request("ListSessions", "{}");
    request.headers_mut().remove("authorization");
    let value = traceparent().parse().unwrap();
    request.headers_mut().insert("traceparent", value);
    assert_eq!(http.send(request).await.status, 401);
    let mut client = BackgroundTasksClient::new(daemon.tcp_channel().await);
    let mut request = Request::new(ListSessionsRequest::default());
    let value = traceparent().parse().unwrap();
    request.metadata_mut().insert("traceparent", value);
    assert!(client.list_sessions(request).await.is_err());
    http.call("ListQueues", "{}").await;
    collector.call("ListQueues").await;
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace() != TRACE), "{spans:?}");
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_that_its_caller_does_not_record_is_not_exported() {
    let collector = Collector::start();
    let daemon = exporting(&collector).start().await;
    let api = daemon.api().await;
    let unrecorded = format!("00-{TRACE}-{SPAN}-00");
    let id = start_under(&api, &unrecorded, shell(PRINT)).await.id;
    let text = variable(&api, &id).await;
    assert!(text.starts_with(&format!("00-{TRACE}-")), "{text}");
    assert!(text.ends_with("-00"), "{text}");
    let later = api.start(shell("true")).await.id;
    collector.task(&later).await;
    let traces = collector.spans();
    assert!(
        traces.iter().all(|span| span.trace() != TRACE),
        "{traces:?}"
    );
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_header_begins_a_new_trace() {
    let collector = Collector::start();
    let daemon = exporting(&collector).start().await;
    let api = daemon.api().await;
    let malformed = format!("00-{TRACE}-{SPAN}");
    let id = start_under(&api, &malformed, shell("true")).await.id;
    let (call, task) = (collector.call("Spawn").await, collector.task(&id).await);
    assert_eq!(call.parent(), "");
    assert_eq!((task.trace(), task.parent()), (call.trace(), call.id()));
    assert_ne!(task.trace(), TRACE);
}

/// H8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_option_tasks_have_no_span() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = start_under(&api, &traceparent(), shell(PRINT)).await.id;
    assert_eq!(variable(&api, &id).await, "");
}
