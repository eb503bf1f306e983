//! The failures of the layers below, each mapped to its refusal. The matches are exhaustive: a new kind
//! of failure does not compile until it has one.

use std::{
    io::{self, ErrorKind},
    sync::Arc,
};

use heeler_proto::v1::{self, ErrorReason};
use tonic::Code;

use super::{refusal::Refusal, task};
use crate::{
    journal::{DiskTrouble, JournalError, ReadError},
    supervisor::{ClosedBy, InputError, OwnError, QueueError, Refused, SpawnError, WorkError},
};

const DISK_FULL: (Code, ErrorReason, &str) = (
    Code::ResourceExhausted,
    ErrorReason::StorageFull,
    "the disk of the state directory is full",
);
const DISK_READ_ONLY: (Code, ErrorReason, &str) = (
    Code::Unavailable,
    ErrorReason::StorageReadOnly,
    "the disk of the state directory is read-only",
);

impl From<JournalError> for Refusal {
    fn from(error: JournalError) -> Self {
        Self::from(&error)
    }
}

impl From<Arc<JournalError>> for Refusal {
    fn from(error: Arc<JournalError>) -> Self {
        Self::from(&*error)
    }
}

/// The reason why something that took effect is not recorded.
pub(in crate::service) fn unrecorded(error: &JournalError) -> v1::Unrecorded {
    let refusal = Refusal::from(error);
    v1::Unrecorded {
        reason: refusal.reason().into(),
        message: refusal.message().to_owned(),
    }
}

impl From<&JournalError> for Refusal {
    fn from(error: &JournalError) -> Self {
        match error {
            JournalError::NotFound { id } => Self::task_not_found(id.as_str()),
            JournalError::Closed => Self::shutting_down(),
            JournalError::Unwritable { id, .. } => Self::field(
                "spec",
                format_args!("of task {id} contains text that cannot be encoded"),
            ),
            JournalError::Damaged { revision, .. } => {
                let message = format!("{error}; events after it can be read");
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
            | JournalError::Older { .. }
            | JournalError::Reserved
            | JournalError::Request { .. }
            | JournalError::Emptied { .. }
            | JournalError::Mixed { .. }
            | JournalError::Corrupt { .. }
            | JournalError::Unopened { .. }
            | JournalError::ReadOnly { .. }
            | JournalError::Storage { .. } => journal(error),
        }
    }
}

fn journal(error: &JournalError) -> Refusal {
    let refusal = Refusal::storage("use the journal", error);
    match error.disk_trouble() {
        Some(DiskTrouble::Full) => refusal.because(DISK_FULL),
        Some(DiskTrouble::ReadOnly) => refusal.because(DISK_READ_ONLY),
        Some(DiskTrouble::Damaged) => refusal.with_code(Code::DataLoss),
        Some(DiskTrouble::Other) | None => refusal,
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::OutOfRange { oldest, newest } => {
                let message = format!(
                    "no such revision: the server has events {} to {}",
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
            SpawnError::TooDeep { depth, max } => failed(ErrorReason::DepthLimitReached)
                .with("depth", depth)
                .with("max", max),
            SpawnError::AbandonNotAllowed(caller) => {
                tracing::warn!(task = %caller, "refused a task that abandons its orphans");
                let reason = ErrorReason::RightsInsufficient;
                Self::new(Code::PermissionDenied, reason, message)
                    .with("caller_task_id", caller)
                    .with("rights", "CHILDREN")
                    .with("needed", "ALL")
            }
            SpawnError::HostNotAllowed(refused) => {
                failed(ErrorReason::ProbeHostNotAllowed).with("host", refused.host)
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
                    .with("stage", task::stage_name(failure.stage))
                    .with("os_error", os_error);
                // A full disk is the same refusal whatever could not be written to it.
                let disk = io::Error::from_raw_os_error(failure.errno).kind();
                let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
                if full.contains(&disk) {
                    refusal.because(DISK_FULL)
                } else if disk == ErrorKind::ReadOnlyFilesystem {
                    refusal.because(DISK_READ_ONLY)
                } else if is_out_of_resources(failure.errno) {
                    refusal.with_code(Code::ResourceExhausted)
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
            SpawnError::Interrupted => Self::interrupted(),
        }
    }
}

/// True if a start failed at the system's limit of processes (EAGAIN) or of memory.
fn is_out_of_resources(errno: i32) -> bool {
    let kind = io::Error::from_raw_os_error(errno).kind();
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::OutOfMemory)
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
            Refused::KeyDiffers { key, holder, field } => {
                let reason = ErrorReason::ExclusiveKeyDiffers;
                Self::new(Code::FailedPrecondition, reason, message)
                    .with("exclusive_key", key)
                    .with("task_id", holder)
                    .with("field", field)
            }
            Refused::KeyNotYours { key, caller } => {
                tracing::warn!(task = %caller, key, "refused a key from inside of a task");
                Self::new(Code::PermissionDenied, ErrorReason::NotYourTask, message)
                    .with("exclusive_key", key)
                    .with("caller_task_id", caller)
            }
        }
    }
}

impl From<WorkError> for Refusal {
    fn from(error: WorkError) -> Self {
        let message = error.to_string();
        let failed = |reason| Self::new(Code::FailedPrecondition, reason, message.clone());
        match error {
            WorkError::Finished(task) => failed(ErrorReason::TaskFinished)
                .with("task_id", &task.id)
                .with("state", task::state_name(&task)),
            WorkError::Connected(id) => failed(ErrorReason::WorkerConnected).with("task_id", id),
            WorkError::ResultDelivered(id) => {
                failed(ErrorReason::ResultDelivered).with("task_id", id)
            }
            WorkError::Replaced(id) => {
                Self::new(Code::Aborted, ErrorReason::WorkerReplaced, message).with("task_id", id)
            }
            WorkError::MailboxFull {
                id,
                waiting,
                max,
                waiting_bytes,
                max_bytes,
            } => Self::new(Code::ResourceExhausted, ErrorReason::MailboxFull, message)
                .with("task_id", id)
                .with("waiting", waiting)
                .with("max", max)
                .with("waiting_bytes", waiting_bytes)
                .with("max_bytes", max_bytes),
            WorkError::MessageIdReused { id, message_id } => {
                Self::new(Code::AlreadyExists, ErrorReason::MessageIdReused, message)
                    .with("task_id", id)
                    .with("message_id", message_id)
            }
            WorkError::Journal(error) => error.into(),
            WorkError::ShuttingDown => Self::shutting_down(),
        }
    }
}

impl From<InputError> for Refusal {
    fn from(error: InputError) -> Self {
        let message = error.to_string();
        let failed = |reason| Self::new(Code::FailedPrecondition, reason, message.clone());
        match error {
            InputError::Finished(task) => failed(ErrorReason::TaskFinished)
                .with("task_id", &task.id)
                .with("state", task::state_name(&task)),
            InputError::Missing(id) => failed(ErrorReason::InputMissing).with("task_id", id),
            InputError::Closed { id, offset, by } => failed(ErrorReason::InputClosed)
                .with("task_id", id)
                .with("offset", offset)
                .with(
                    "closed_by",
                    match by {
                        ClosedBy::Writer => "writer",
                        ClosedBy::Task => "task",
                    },
                ),
            InputError::Gap { id, expected } => {
                Self::new(Code::OutOfRange, ErrorReason::InputGap, message)
                    .with("task_id", id)
                    .with("offset", expected)
            }
            InputError::Held { id, writer } => failed(ErrorReason::InputHeld)
                .with("task_id", id)
                .with("writer_id", writer),
            InputError::TakenOver { id, writer } => {
                Self::new(Code::Aborted, ErrorReason::InputTakenOver, message)
                    .with("task_id", id)
                    .with("writer_id", writer)
            }
            InputError::NoTerminal(id) => failed(ErrorReason::TerminalMissing).with("task_id", id),
            InputError::NotAnswered(_) => Self::not_serving(&message),
            InputError::Journal(error) => error.into(),
            InputError::ShuttingDown => Self::shutting_down(),
        }
    }
}

impl From<QueueError> for Refusal {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::TooMany(max) => {
                let reason = ErrorReason::QueueFull;
                Self::new(Code::ResourceExhausted, reason, error.to_string()).with("max", max)
            }
            QueueError::Journal(error) => error.into(),
        }
    }
}

impl From<OwnError> for Refusal {
    fn from(error: OwnError) -> Self {
        match error {
            OwnError::TooMany(max) => {
                let reason = ErrorReason::OwnedSessionsFull;
                Self::new(Code::ResourceExhausted, reason, error.to_string()).with("max", max)
            }
            OwnError::Journal(error) => error.into(),
        }
    }
}
