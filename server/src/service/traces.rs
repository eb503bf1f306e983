//! Traces: a span for each RPC and for each task, exported by OTLP.
//!
//! ```text
//! transport ── a call has ended ──┐
//!                                 ├──> batches ── OTLP ──> collector
//! journal ──── a task has ended ──┘
//! ```
//!
//! The official SDK batches and sends the spans on a thread of its own. It holds a bounded number of them: if the
//! collector does not take them, spans are dropped, and nothing waits. Without the option of `heeler serve` there is
//! no exporter, and a call costs one look at a `None`.

mod call;
mod task;

use std::{
    env,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::HeaderMap;
use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{
        SpanContext as OtelContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
    },
};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor},
};
use tokio::task::spawn_blocking;
use uuid::Uuid;

pub(super) use self::call::OpenSpan;
use super::Closing;
use crate::{
    journal::{Journal, ReadError},
    task::{CallSpan, Event, EventKind, Fact, Revision, SpanContext, Timestamp},
};

/// The header, and the label, that names the span above.
const TRACE_PARENT: &str = "traceparent";
/// The variable that names the service in place of `heeler`.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

/// Events that are read at a time.
const BATCH: usize = 256;
/// The time that the last spans get to be sent.
const LAST_SPANS: Duration = Duration::from_secs(3);
/// The pause after events could not be read.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// The reason why traces cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("cannot export traces to `{0}`: not a URL as http://HOST:PORT")]
    Url(String),
    #[error("cannot export traces to {endpoint}: {source}")]
    Exporter {
        endpoint: String,
        source: ExporterBuildError,
    },
}

/// The exporter; its clones are the same exporter.
#[derive(Debug, Clone)]
pub(crate) struct Traces {
    processor: Arc<BatchSpanProcessor>,
    scope: InstrumentationScope,
}

/// A span that has ended.
struct Ended {
    context: SpanContext,
    parent: Option<u64>,
    kind: SpanKind,
    name: String,
    begun: SystemTime,
    ended: SystemTime,
    attributes: Vec<KeyValue>,
    events: SpanEvents,
    status: Status,
}

impl Traces {
    /// Exports to a collector, which may come later.
    pub(crate) fn open(endpoint: &str) -> Result<Self, TraceError> {
        if !is_url(endpoint) {
            return Err(TraceError::Url(endpoint.to_owned()));
        }
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint);
        let exporter = exporter.build().map_err(|source| TraceError::Exporter {
            endpoint: endpoint.to_owned(),
            source,
        })?;
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        processor.set_resource(&resource());
        let version = env!("CARGO_PKG_VERSION");
        Ok(Self {
            processor: Arc::new(processor),
            scope: InstrumentationScope::builder("heeler")
                .with_version(version)
                .build(),
        })
    }

    /// Begins the span of a call.
    pub(super) fn begin(&self, method: &'static str, headers: &HeaderMap) -> OpenSpan {
        let named = headers
            .get(TRACE_PARENT)
            .and_then(|value| value.to_str().ok());
        let above: Option<SpanContext> = named.and_then(|text| text.parse().ok());
        let own = Uuid::new_v4().as_u64_pair().1;
        let place = CallSpan {
            context: match above {
                Some(above) => above.child(own),
                None => SpanContext {
                    trace: Uuid::new_v4().as_u128(),
                    span: own,
                    is_sampled: true,
                },
            },
            parent: above.map(|above| above.span),
        };
        OpenSpan::new(self.clone(), method, place)
    }

    /// Exports the spans of tasks that end after a revision, until the server shuts down.
    pub(crate) async fn follow(self, journal: Journal, after: Revision, closing: Closing) {
        let mut cursor = after;
        let mut head = journal.watch();
        loop {
            let is_closing = closing.has_begun();
            match journal.facts_after(cursor, BATCH).await {
                Ok(facts) => {
                    for fact in facts {
                        cursor = fact.revision();
                        self.export_end(&fact);
                    }
                }
                Err(ReadError::OutOfRange { newest, .. }) => cursor = newest,
                Err(error) => {
                    tracing::warn!(%error, "cannot read the ends of tasks for their spans");
                    tokio::time::sleep(READ_AGAIN).await;
                    // A damaged event has no span.
                    cursor = Revision(cursor.0 + 1).min(journal.head());
                }
            }
            if cursor < journal.head() {
                continue;
            }
            if is_closing {
                return;
            }
            tokio::select! {
                _ = head.changed() => {}
                () = closing.begun() => {}
            }
        }
    }

    fn export_end(&self, fact: &Fact) {
        match fact {
            Fact::Task(event) if event.kind == EventKind::Ended => self.export_task(event),
            Fact::Task(_) | Fact::SessionIdle(_) => {}
        }
    }

    fn export_task(&self, event: &Event) {
        if let Some(span) = task::span(&event.task) {
            self.export(span);
        }
    }

    /// Sends the spans that are left, once there are no more.
    pub(crate) async fn flush(self) {
        let flush = move || self.processor.shutdown_with_timeout(LAST_SPANS);
        if let Ok(Err(error)) = spawn_blocking(flush).await {
            tracing::warn!(%error, "the last spans were not exported");
        }
    }

    /// Puts a span among those to send, unless its trace is not recorded.
    fn export(&self, span: Ended) {
        if !span.context.is_sampled {
            return;
        }
        self.processor.on_end(SpanData {
            span_context: otel_context(span.context),
            parent_span_id: SpanId::from(span.parent.unwrap_or(0)),
            parent_span_is_remote: span.parent.is_some(),
            span_kind: span.kind,
            name: span.name.into(),
            start_time: span.begun,
            end_time: span.ended,
            attributes: span.attributes,
            dropped_attributes_count: 0,
            events: span.events,
            links: SpanLinks::default(),
            status: span.status,
            instrumentation_scope: self.scope.clone(),
        });
    }
}

/// Reports whether a text is a URL of a gRPC service. The library takes others, and fails later.
fn is_url(text: &str) -> bool {
    let Ok(url) = text.parse::<http::Uri>() else {
        return false;
    };
    matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some()
}

/// The server as the source of spans. The standard variables may name it and add attributes.
fn resource() -> Resource {
    let resource = Resource::builder().with_attributes([
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("process.pid", i64::from(std::process::id())),
    ]);
    match env::var_os(SERVICE_NAME) {
        Some(_) => resource.build(),
        None => resource.with_service_name("heeler").build(),
    }
}

fn otel_context(context: SpanContext) -> OtelContext {
    OtelContext::new(
        TraceId::from(context.trace),
        SpanId::from(context.span),
        TraceFlags::SAMPLED,
        false,
        TraceState::NONE,
    )
}

fn system_time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(at.0)
}
