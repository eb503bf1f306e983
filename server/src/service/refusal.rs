//! How a call is refused: one shape for every error, one exhaustive map from each kind of failure.

use std::{
    collections::HashMap,
    io::{self, ErrorKind},
};

use heeler_proto::v1::{self, ErrorReason};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::{
    journal::{DiskTrouble, JournalError, ReadError},
    supervisor::{QueueError, Refused, SpawnError},
};

const DOMAIN: &str = "heeler.dev";
/// The longest that a message may be.
const LONGEST_MESSAGE: usize = 1024;
/// The longest that a value or a field's name may be.
const LONGEST_VALUE: usize = 256;

const DISK_FULL: (Code, ErrorReason, &str) = (
    Code::ResourceExhausted,
    ErrorReason::StorageFull,
    "the disk of the state directory is full",
);
const DISK_READ_ONLY: (Code, ErrorReason, &str) = (
    Code::Unavailable,
    ErrorReason::StorageReadOnly,
    "the disk of the state directory takes no writes",
);

/// Why a call is refused. Nothing has been changed.
#[derive(Debug)]
pub struct Refusal {
    code: Code,
    reason: ErrorReason,
    message: String,
    metadata: Vec<(&'static str, String)>,
    field: Option<String>,
}

impl Refusal {
    pub(super) fn new(code: Code, reason: ErrorReason, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            metadata: Vec::new(),
            field: None,
        }
    }

    pub(super) fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.metadata.push((key, value.to_string()));
        self
    }

    /// A field that cannot be used; `problem` completes "`field` …".
    pub(super) fn field(field: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        let field = field.into();
        let message = format!("{field} {problem}");
        let mut refusal = Self::new(Code::InvalidArgument, ErrorReason::InvalidField, message)
            .with("field", &field);
        refusal.field = Some(field);
        refusal
    }

    pub(super) fn page_token() -> Self {
        let message = "page_token goes with another request, or is none";
        let mut refusal = Self::new(
            Code::InvalidArgument,
            ErrorReason::PageTokenMismatch,
            message,
        );
        refusal.field = Some("page_token".to_owned());
        refusal
    }

    pub(super) fn task_not_found(id: &str) -> Self {
        let shown: String = id.chars().take(64).flat_map(char::escape_default).collect();
        let message = format!("there is no task {shown}");
        Self::new(Code::NotFound, ErrorReason::TaskNotFound, message).with("task_id", shown)
    }

    pub(super) fn not_finished(task: &v1::BackgroundTask) -> Self {
        let message = format!("{} is not finished; cancel it first", task.id);
        Self::new(
            Code::FailedPrecondition,
            ErrorReason::TaskNotFinished,
            message,
        )
        .with("task_id", &task.id)
        .with(
            "state",
            task.state().as_str_name().trim_start_matches("TASK_STATE_"),
        )
    }

    pub(super) fn epoch_mismatch(given: &str, own: impl ToString) -> Self {
        let own = own.to_string();
        let shown: String = given
            .chars()
            .take(64)
            .flat_map(char::escape_default)
            .collect();
        let message =
            format!("revisions of state {shown} mean nothing to this server's state {own}");
        Self::new(
            Code::FailedPrecondition,
            ErrorReason::EpochMismatch,
            message,
        )
        .with("epoch", own)
    }

    /// A message that was not even read.
    pub(super) fn too_large(max: usize) -> Self {
        let message = format!("the request is too large: it may have {max} bytes");
        Self::new(Code::OutOfRange, ErrorReason::RequestTooLarge, message).with("max", max)
    }

    pub(super) fn not_serving(message: &str) -> Self {
        Self::new(Code::Unavailable, ErrorReason::NotServing, message)
    }

    pub(super) fn shutting_down() -> Self {
        Self::not_serving("the server is shutting down")
    }

    pub(super) fn storage(operation: &str, error: &dyn std::error::Error) -> Self {
        let error = chain(error);
        tracing::error!(operation, error, "the state directory failed");
        let message = format!("could not {operation}: {error}");
        Self::new(Code::Internal, ErrorReason::StorageFailed, message).with("operation", operation)
    }

    fn journal(error: &JournalError) -> Self {
        let refusal = Self::storage("use the journal", error);
        match error.disk_trouble() {
            Some(DiskTrouble::Full) => refusal.because(DISK_FULL),
            Some(DiskTrouble::ReadOnly) => refusal.because(DISK_READ_ONLY),
            Some(DiskTrouble::Damaged) => Self {
                code: Code::DataLoss,
                ..refusal
            },
            Some(DiskTrouble::Other) | None => refusal,
        }
    }

    fn because(mut self, (code, reason, why): (Code, ErrorReason, &str)) -> Self {
        (self.code, self.reason) = (code, reason);
        self.message = format!("{why}: {}", self.message);
        self
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
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Errors travel in headers, of which a client takes some kilobytes.
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

impl From<JournalError> for Refusal {
    fn from(error: JournalError) -> Self {
        match &error {
            JournalError::NotFound { id } => Self::task_not_found(id.as_str()),
            JournalError::Closed => Self::shutting_down(),
            JournalError::Unwritable { id, .. } => Self::field(
                "working_directory",
                format_args!("or another text of {id} cannot be recorded"),
            ),
            JournalError::Damaged { revision, .. } => {
                let message = format!("{error}; what follows it can be read after it");
                Self::new(Code::DataLoss, ErrorReason::StorageFailed, message)
                    .with("operation", "read the journal")
                    .with("revision", revision.0)
            }
            JournalError::Open { .. }
            | JournalError::Misplaced { .. }
            | JournalError::NotFinished { .. }
            | JournalError::RequestTaken { .. }
            | JournalError::Foreign { .. }
            | JournalError::Newer { .. }
            | JournalError::Emptied { .. }
            | JournalError::Mixed { .. }
            | JournalError::Corrupt { .. }
            | JournalError::Unopened { .. }
            | JournalError::ReadOnly { .. }
            | JournalError::Storage { .. } => Self::journal(&error),
        }
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::OutOfRange { oldest, newest } => {
                let message = format!(
                    "no such revision: there are events {} to {}",
                    oldest.0, newest.0
                );
                Self::new(Code::OutOfRange, ErrorReason::RevisionOutOfRange, message)
                    .with("oldest", oldest.0)
                    .with("newest", newest.0)
            }
            ReadError::Journal(error) => error.into(),
        }
    }
}

impl From<SpawnError> for Refusal {
    fn from(error: SpawnError) -> Self {
        let message = error.to_string();
        let os_error = error.os_error().unwrap_or_default();
        let failed = |reason| Self::new(Code::FailedPrecondition, reason, message.clone());
        match error {
            SpawnError::ParentNotLive(id) => {
                failed(ErrorReason::ParentNotLive).with("parent_id", id)
            }
            SpawnError::WorkingDirectory { path, .. } => {
                failed(ErrorReason::WorkingDirectoryUnusable)
                    .with("path", path.display())
                    .with("os_error", os_error)
            }
            SpawnError::Program(unusable) => failed(ErrorReason::ProgramUnusable)
                .with("program", unusable.program)
                .with("os_error", os_error),
            SpawnError::Failed { task_id, failure } => {
                let refusal = failed(ErrorReason::SpawnFailed)
                    .with("task_id", task_id)
                    .with("operation", failure.operation)
                    .with("os_error", os_error);
                // Where the disk is the reason, it is the same as for a journal.
                let disk = io::Error::from_raw_os_error(failure.errno).kind();
                let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
                if full.contains(&disk) {
                    refusal.because(DISK_FULL)
                } else if disk == ErrorKind::ReadOnlyFilesystem {
                    refusal.because(DISK_READ_ONLY)
                } else {
                    refusal
                }
            }
            SpawnError::Refused(refused) => refused.into(),
            SpawnError::RequestIdReused {
                request_id,
                task_id,
            } => Self::new(Code::AlreadyExists, ErrorReason::RequestIdReused, message)
                .with("request_id", request_id)
                .with("task_id", task_id),
            SpawnError::Journal(error) => error.into(),
            SpawnError::ShuttingDown => Self::shutting_down(),
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        let exhausted = |reason| Self::new(Code::ResourceExhausted, reason, message.clone());
        match refused {
            Refused::Server { running, max } => exhausted(ErrorReason::TaskLimitReached)
                .with("running", running)
                .with("max", max),
            Refused::Session {
                session_id,
                running,
                max,
            } => exhausted(ErrorReason::SessionLimitReached)
                .with("session_id", session_id)
                .with("running", running)
                .with("max", max),
            Refused::Label {
                label,
                value,
                running,
                max,
            } => exhausted(ErrorReason::LabelLimitReached)
                .with("label", label)
                .with("value", value)
                .with("running", running)
                .with("max", max),
            Refused::QueueFull { waiting, max } => exhausted(ErrorReason::QueueFull)
                .with("waiting", waiting)
                .with("max", max),
            Refused::KeyHeld { key, holder } => {
                let reason = ErrorReason::ExclusiveKeyHeld;
                Self::new(Code::FailedPrecondition, reason, message)
                    .with("exclusive_key", key)
                    .with("task_id", holder)
            }
        }
    }
}

impl From<QueueError> for Refusal {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::TooMany(max) => {
                let reason = v1::ErrorReason::QueueFull;
                Self::new(Code::ResourceExhausted, reason, error.to_string()).with("max", max)
            }
            QueueError::Journal(error) => error.into(),
        }
    }
}
