//! Counts of calls, for the metrics.

use std::sync::atomic::AtomicI64;

use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
};
use tonic::{Code, Status, body::Body};

use crate::service::traces::OpenSpan;

/// The counters of all calls; its clones are the same counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallMeters {
    /// Calls that have ended.
    pub(crate) ended: Family<Ended, Counter>,
    /// Calls in progress, streams included.
    pub(crate) open: Family<Method, Gauge<i64, AtomicI64>>,
}

/// The labels of calls that have ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Ended {
    method: &'static str,
    code: &'static str,
}

/// The label of calls in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Method {
    method: &'static str,
}

/// A call in progress, until it is dropped.
#[derive(Debug)]
pub(super) struct OpenCall {
    meters: CallMeters,
    method: &'static str,
    /// Its span, if the server exports traces.
    span: Option<OpenSpan>,
    /// None as long as there is no answer: if its client has left by then, the call is cancelled.
    code: Option<Code>,
}

impl CallMeters {
    pub(super) fn begin(&self, method: &'static str, span: Option<OpenSpan>) -> OpenCall {
        self.open.get_or_create(&Method { method }).inc();
        OpenCall {
            meters: self.clone(),
            method,
            span,
            code: None,
        }
    }
}

impl OpenCall {
    /// Counts the call by the status of its answer, which follows the last message.
    pub(super) fn until_answered(mut self, response: Response<Body>) -> Response<Body> {
        if self.has_ended(response.headers()) {
            return response;
        }
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                if let Some(trailers) = frame.trailers_ref() {
                    self.has_ended(trailers);
                }
                frame
            }))
        })
    }

    /// Counts the call as refused.
    pub(super) fn refused(mut self, code: Code) {
        self.code = Some(code);
    }

    /// Notes the status of the call, if the headers have it.
    fn has_ended(&mut self, headers: &HeaderMap) -> bool {
        let code = headers.get(Status::GRPC_STATUS);
        self.code = code.map(|code| Code::from_bytes(code.as_bytes()));
        self.code.is_some()
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let (method, status) = (self.method, self.code.unwrap_or(Code::Cancelled));
        self.meters.open.get_or_create(&Method { method }).dec();
        let code = code_name(status);
        if let Some(span) = self.span.take() {
            span.end(status, code);
        }
        self.meters
            .ended
            .get_or_create(&Ended { method, code })
            .inc();
    }
}

/// The name of a code, as in gRPC's documentation.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
