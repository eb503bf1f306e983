//! Errors in the form of the Connect protocol.

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use http::StatusCode;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tonic::{Code, Status};
use tonic_types::pb;

/// The messages of an error's details.
static DETAILS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(tonic_types::pb::FILE_DESCRIPTOR_SET)
        .expect("a library contains its own descriptors")
});

/// The error as JSON: code, message and details. Each detail has its bytes, and its content as JSON beside
/// them for people.
pub(super) fn json(status: &Status) -> Value {
    let details = pb::Status::decode(status.details()).unwrap_or_default();
    let details: Vec<Value> = details.details.iter().map(detail).collect();
    let mut error = json!({"code": code(status.code()).0, "message": status.message()});
    if !details.is_empty() {
        error["details"] = details.into();
    }
    error
}

fn detail(any: &prost_types::Any) -> Value {
    let name = any.type_url.rsplit('/').next().unwrap_or(&any.type_url);
    let mut detail = json!({"type": name, "value": STANDARD_NO_PAD.encode(&any.value)});
    let described = DETAILS.get_message_by_name(name).and_then(|message| {
        let content = DynamicMessage::decode(message, any.value.as_slice()).ok()?;
        serde_json::to_value(content).ok()
    });
    if let Some(content) = described {
        detail["debug"] = content;
    }
    detail
}

/// The HTTP status of an error.
pub(super) fn http_status(status: &Status) -> StatusCode {
    StatusCode::from_u16(code(status.code()).1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The name of a code, and its HTTP status.
fn code(code: Code) -> (&'static str, u16) {
    match code {
        // An error without a code.
        Code::Ok | Code::Unknown => ("unknown", 500),
        Code::Cancelled => ("canceled", 499),
        Code::InvalidArgument => ("invalid_argument", 400),
        Code::DeadlineExceeded => ("deadline_exceeded", 504),
        Code::NotFound => ("not_found", 404),
        Code::AlreadyExists => ("already_exists", 409),
        Code::PermissionDenied => ("permission_denied", 403),
        Code::ResourceExhausted => ("resource_exhausted", 429),
        Code::FailedPrecondition => ("failed_precondition", 400),
        Code::Aborted => ("aborted", 409),
        Code::OutOfRange => ("out_of_range", 400),
        Code::Unimplemented => ("unimplemented", 501),
        Code::Internal => ("internal", 500),
        Code::Unavailable => ("unavailable", 503),
        Code::DataLoss => ("data_loss", 500),
        Code::Unauthenticated => ("unauthenticated", 401),
    }
}
