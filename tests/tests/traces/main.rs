//! Traces: the spans of calls and tasks, where they are in a trace, and what happens without a collector.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod failures;
mod links;
mod spans;

use heeler_tests::{
    Api, Collector, Daemon,
    daemon::Builder,
    v1::{BackgroundTask, SpawnRequest},
};
use tonic::Request;

/// The trace and the span of a caller.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// A daemon that exports to a collector, almost at once.
fn exporting(collector: &Collector) -> Builder {
    Daemon::builder()
        .arg("--otlp")
        .arg(collector.url())
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
}

/// The text form of the caller's span.
fn traceparent() -> String {
    format!("00-{TRACE}-{SPAN}-01")
}

/// Starts a task in a call with this header.
async fn start_under(api: &Api, traceparent: &str, spawn: SpawnRequest) -> BackgroundTask {
    let mut request = Request::new(spawn);
    let value = traceparent.parse().unwrap();
    request.metadata_mut().insert("traceparent", value);
    let answer = api.raw().spawn(request).await.unwrap();
    answer.into_inner().task.unwrap()
}

/// The span of a task, in the text form that the task found in its environment.
async fn variable(api: &Api, id: &str) -> String {
    api.ended(id).await;
    let output = api.output(id).await;
    String::from_utf8(output).unwrap().trim_end().to_owned()
}
