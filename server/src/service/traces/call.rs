//! The span of an RPC.

use std::time::SystemTime;

use opentelemetry::{
    KeyValue,
    trace::{SpanKind, Status},
};
use opentelemetry_sdk::trace::SpanEvents;
use tonic::Code;

use super::{Ended, Traces};
use crate::{service::NAME, task::CallSpan};

/// The span of a call in progress.
#[derive(Debug)]
pub(in crate::service) struct OpenSpan {
    traces: Traces,
    method: &'static str,
    place: CallSpan,
    begun: SystemTime,
}

impl OpenSpan {
    pub(super) fn new(traces: Traces, method: &'static str, place: CallSpan) -> Self {
        Self {
            traces,
            method,
            place,
            begun: SystemTime::now(),
        }
    }

    /// Its place in the trace.
    pub(in crate::service) fn place(&self) -> CallSpan {
        self.place
    }

    /// Exports the span of a call that has ended like this.
    pub(in crate::service) fn end(self, code: Code, code_name: &'static str) {
        let method = format!("{NAME}/{}", self.method);
        self.traces.export(Ended {
            context: self.place.context,
            parent: self.place.parent,
            kind: SpanKind::Server,
            begun: self.begun,
            ended: SystemTime::now(),
            attributes: vec![
                KeyValue::new("rpc.system.name", "grpc"),
                KeyValue::new("rpc.method", method.clone()),
                KeyValue::new("rpc.response.status_code", code_name),
            ],
            name: method,
            events: SpanEvents::default(),
            status: match is_fault(code) {
                true => Status::error(code_name),
                false => Status::Unset,
            },
        });
    }
}

/// Reports whether a code makes the span of a server an error, by the conventions of OpenTelemetry for gRPC.
fn is_fault(code: Code) -> bool {
    match code {
        Code::Unknown
        | Code::DeadlineExceeded
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => true,
        Code::Ok
        | Code::Cancelled
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unauthenticated => false,
    }
}
