//! A refusal: one shape for every error that a client receives.

use std::{collections::HashMap, error::Error, fmt};

use heeler_proto::v1::ErrorReason;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::{spec, task};
use crate::{
    service::LARGEST_REQUEST,
    task::{Rights, Task, TaskId},
};

const DOMAIN: &str = "heeler.dev";
/// Maximum length of a message. Errors are sent in headers, which clients limit to a few kilobytes.
const LONGEST_MESSAGE: usize = 1024;
/// Maximum length of a value or a field's path.
const LONGEST_VALUE: usize = 256;

/// The reason why a call is refused. The call has changed nothing.
#[derive(Debug)]
pub struct Refusal {
    code: Code,
    reason: ErrorReason,
    message: String,
    metadata: Vec<(&'static str, String)>,
    field: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: Code, reason: ErrorReason, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            metadata: Vec::new(),
            field: None,
        }
    }

    pub(crate) fn reason(&self) -> ErrorReason {
        self.reason
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.metadata.push((key, value.to_string()));
        self
    }

    /// A bad argument; `problem` completes the sentence that begins with the field.
    pub(crate) fn field(field: impl Into<String>, problem: impl fmt::Display) -> Self {
        let field = field.into();
        let message = format!("{field} {problem}");
        let mut refusal = Self::new(Code::InvalidArgument, ErrorReason::InvalidField, message)
            .with("field", &field);
        refusal.field = Some(field);
        refusal
    }

    /// The same refusal of a message inside another one: the path of a bad field begins with `outer`.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        if let Some(field) = &mut self.field {
            *field = format!("{outer}.{field}");
            self.message = format!("{outer}.{}", self.message);
            self.metadata = vec![("field", field.clone())];
        }
        self
    }

    /// The path of a call is that of no method.
    pub(crate) fn method_unknown(path: &str) -> Self {
        let shown = Self::shown(path);
        let message = format!("the service has no method {shown}");
        Self::new(Code::Unimplemented, ErrorReason::MethodUnknown, message).with("method", shown)
    }

    pub(crate) fn page_token() -> Self {
        let message = "page_token is malformed, or belongs to a different request";
        let mut refusal = Self::new(
            Code::InvalidArgument,
            ErrorReason::PageTokenMismatch,
            message,
        );
        refusal.field = Some("page_token".to_owned());
        refusal
    }

    pub(crate) fn task_not_found(id: &str) -> Self {
        let shown = Self::shown(id);
        let message = format!("there is no task {shown}");
        Self::new(Code::NotFound, ErrorReason::TaskNotFound, message).with("task_id", shown)
    }

    /// A caller inside of a task has named its own task, or one that is no descendant of it.
    pub(crate) fn not_your_task(id: &TaskId, own: &TaskId) -> Self {
        tracing::warn!(task = %own, other = %id, "refused a call from inside of a task on another task");
        let message = match id == own {
            true => format!("task {id} makes the call itself: it may act on its descendants only"),
            false => format!("task {id} is not a descendant of {own}, which makes the call"),
        };
        Self::new(Code::PermissionDenied, ErrorReason::NotYourTask, message)
            .with("task_id", id)
            .with("caller_task_id", own)
    }

    /// A caller inside of a task has not the rights for the call.
    pub(crate) fn rights_insufficient(own: &TaskId, rights: Rights, needed: Rights) -> Self {
        let (rights, needed) = (spec::rights_name(rights), spec::rights_name(needed));
        tracing::warn!(task = %own, rights, needed, "refused a call from inside of a task");
        let message =
            format!("task {own}, which makes the call, has the rights {rights}: it needs {needed}");
        let reason = ErrorReason::RightsInsufficient;
        Self::new(Code::PermissionDenied, reason, message)
            .with("caller_task_id", own)
            .with("rights", rights)
            .with("needed", needed)
    }

    pub(crate) fn not_finished(task: &Task) -> Self {
        let message = format!("task {} is not finished: cancel it first", task.id);
        Self::new(
            Code::FailedPrecondition,
            ErrorReason::TaskNotFinished,
            message,
        )
        .with("task_id", &task.id)
        .with("state", task::state_name(task))
    }

    pub(crate) fn epoch_mismatch(given: &str, own: impl ToString) -> Self {
        let own = own.to_string();
        let shown = Self::shown(given);
        let message = format!(
            "revisions of epoch {shown} are not valid in the server's epoch {own}: list again"
        );
        Self::new(
            Code::FailedPrecondition,
            ErrorReason::EpochMismatch,
            message,
        )
        .with("epoch", own)
    }

    /// A message that was not read.
    pub(crate) fn too_large(max: usize) -> Self {
        let message = format!("the request is larger than {max} bytes");
        Self::new(Code::OutOfRange, ErrorReason::RequestTooLarge, message).with("max", max)
    }

    /// A message of a stream that could not be read.
    pub(crate) fn unreadable(status: &Status) -> Self {
        let reason = ErrorReason::RequestUnreadable;
        let code = status.code();
        if code == Code::OutOfRange {
            return Self::too_large(LARGEST_REQUEST);
        }
        if code == Code::DeadlineExceeded {
            return Self::new(code, reason, status.message());
        }
        let message = format!("a message of the stream is not valid: {}", status.message());
        Self::new(Code::InvalidArgument, reason, message)
    }

    pub(crate) fn not_serving(message: &str) -> Self {
        Self::new(Code::Unavailable, ErrorReason::NotServing, message)
    }

    pub(crate) fn shutting_down() -> Self {
        Self::not_serving("the server is shutting down")
    }

    /// A panic of the server has ended the call.
    pub(crate) fn interrupted() -> Self {
        Self::not_serving("a failure of the server has interrupted the call; try again")
    }

    pub(crate) fn storage(operation: &str, error: &dyn Error) -> Self {
        let error = chain(error);
        tracing::error!(
            operation,
            error,
            "could not read or write the state directory"
        );
        let message = format!("could not {operation}: {error}");
        Self::new(Code::Internal, ErrorReason::StorageFailed, message).with("operation", operation)
    }

    /// The same refusal with another code and reason, and with the cause put first.
    pub(super) fn because(mut self, (code, reason, why): (Code, ErrorReason, &str)) -> Self {
        (self.code, self.reason) = (code, reason);
        self.message = format!("{why}: {}", self.message);
        self
    }

    pub(super) fn with_code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// A client's text, cut and escaped, for a message.
    pub(crate) fn shown(text: &str) -> String {
        text.chars()
            .take(64)
            .flat_map(char::escape_default)
            .collect()
    }

    #[cfg(test)]
    pub(super) fn bad_field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    fn details(&self) -> ErrorDetails {
        let metadata: HashMap<String, String> = self
            .metadata
            .iter()
            .map(|(key, value)| ((*key).to_owned(), cut(value, LONGEST_VALUE)))
            .collect();
        let reason = self.reason.as_str_name();
        let reason = reason.strip_prefix("ERROR_REASON_").unwrap_or(reason);
        let mut details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
        if let Some(field) = &self.field {
            details.add_bad_request_violation(cut(field, LONGEST_VALUE), self.message.clone());
        }
        details
    }
}

/// An error with its causes, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn cut(text: &str, limit: usize) -> String {
    match text.len() > limit {
        true => format!("{}…", &text[..text.floor_char_boundary(limit)]),
        false => text.to_owned(),
    }
}

impl From<Refusal> for Status {
    fn from(mut refusal: Refusal) -> Self {
        refusal.message = cut(&refusal.message, LONGEST_MESSAGE);
        let details = refusal.details();
        Status::with_error_details(refusal.code, refusal.message, details)
    }
}
