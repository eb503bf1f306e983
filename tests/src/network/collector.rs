//! A collector of traces: a real OTLP server that keeps what it gets.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{Span, Status, status::StatusCode},
};
use tokio::net::TcpSocket;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, transport::Server};

use crate::{daemon::SERVICE, eventually_some};

/// A collector that takes every span.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Collected>>>,
    /// Until it listens.
    socket: Option<TcpSocket>,
}

/// A span that has arrived, and its source.
#[derive(Debug, Clone)]
pub struct Collected {
    pub span: Span,
    pub resource: Resource,
}

impl Collector {
    /// A collector that has its address and refuses connections until it is started.
    pub fn down() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self {
            address: socket.local_addr().unwrap(),
            spans: Arc::default(),
            socket: Some(socket),
        }
    }

    pub fn start() -> Self {
        let mut collector = Self::down();
        collector.listen();
        collector
    }

    pub fn listen(&mut self) {
        let listener = self.socket.take().expect("it is down").listen(64).unwrap();
        let service = Service(Arc::clone(&self.spans));
        // It ends with the runtime of the test.
        tokio::spawn(
            Server::builder()
                .add_service(TraceServiceServer::new(service))
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The spans so far.
    pub fn spans(&self) -> Vec<Collected> {
        self.spans.lock().unwrap().clone()
    }

    /// Waits for a span.
    pub async fn span(&self, name: &str, found: impl Fn(&Collected) -> bool) -> Collected {
        eventually_some(name, || self.spans().into_iter().find(|one| found(one))).await
    }

    /// Waits for the span of a call.
    pub async fn call(&self, method: &str) -> Collected {
        let name = format!("{SERVICE}/{method}");
        self.span(&name, |one| one.span.name == name).await
    }

    /// Waits for the span of a task.
    pub async fn task(&self, id: &str) -> Collected {
        self.span(&format!("the span of {id}"), |one| one.is_of(id))
            .await
    }

    pub fn has_task(&self, id: &str) -> bool {
        self.spans().iter().any(|one| one.is_of(id))
    }
}

impl Collected {
    /// An attribute with a text.
    pub fn text(&self, key: &str) -> Option<String> {
        text(&self.span.attributes, key)
    }

    /// An attribute with a number.
    pub fn number(&self, key: &str) -> Option<i64> {
        let value = value(&self.span.attributes, key)?;
        let Value::IntValue(number) = value else {
            panic!("{key} is {value:?}");
        };
        Some(number)
    }

    /// The name of the service that it comes from.
    pub fn service(&self) -> Option<String> {
        text(&self.resource.attributes, "service.name")
    }

    fn is_of(&self, id: &str) -> bool {
        self.text("heeler.task.id").as_deref() == Some(id)
    }

    pub fn status(&self) -> StatusCode {
        let status = self.span.status.as_ref();
        status.map_or(StatusCode::Unset, Status::code)
    }

    /// Its begin and end, in microseconds since 1970.
    pub fn micros(&self) -> (i64, i64) {
        let micros = |nanos: u64| i64::try_from(nanos / 1000).unwrap();
        let span = &self.span;
        (
            micros(span.start_time_unix_nano),
            micros(span.end_time_unix_nano),
        )
    }

    pub fn trace(&self) -> String {
        digits(&self.span.trace_id)
    }

    pub fn id(&self) -> String {
        digits(&self.span.span_id)
    }

    /// The span above; empty without one.
    pub fn parent(&self) -> String {
        digits(&self.span.parent_span_id)
    }

    /// The names of its events, in order.
    pub fn events(&self) -> Vec<&str> {
        let events = self.span.events.iter();
        events.map(|event| event.name.as_str()).collect()
    }
}

fn value(attributes: &[KeyValue], key: &str) -> Option<Value> {
    let found = attributes.iter().find(|one| one.key == key)?;
    found.value.clone()?.value
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let value = value(attributes, key)?;
    let Value::StringValue(text) = value else {
        panic!("{key} is {value:?}");
    };
    Some(text)
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The service of a collector.
struct Service(Arc<Mutex<Vec<Collected>>>);

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, tonic::Status> {
        let mut spans = self.0.lock().unwrap();
        for from in request.into_inner().resource_spans {
            let resource = from.resource.unwrap_or_default();
            for span in from.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                spans.push(Collected {
                    span,
                    resource: resource.clone(),
                });
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
