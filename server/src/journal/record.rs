//! How facts are written down, and how every format that ever was is read.
//!
//! A record is the JSON of [`Task`], a request that of [`SpawnRequest`]; each row says its format. An
//! event of a session has a record of its own kind.
//! The rules that keep old rows readable, by which the types in [`crate::task`] may change:
//!
//! - An unknown field is ignored; a new one is an `Option` or has `#[serde(default)]`. The format
//!   stays.
//! - Anything else (a field that goes, or changes its name, type or meaning) is a new format, with
//!   an arm of its own in [`task`] or [`request`] that reads the old one. Rows are never rewritten.
//!
//! `Task::revision` is not trusted to the record: it is that of the row.

use serde::Deserialize;

use super::error::RecordError;
use crate::task::{Activity, EndState, EventKind, Kind, Revision, SpawnRequest, Task};

/// The format of what is written today.
pub(super) const FORMAT: i64 = 1;

/// The task that a record holds, as it was at this revision.
pub(super) fn task(format: i64, record: &[u8], revision: Revision) -> Result<Task, RecordError> {
    match format {
        1 => Ok(Task {
            revision,
            ..serde_json::from_slice(record)?
        }),
        unknown => Err(RecordError::UnknownFormat(unknown)),
    }
}

/// The request that a body holds.
pub(super) fn request(format: i64, body: &[u8]) -> Result<SpawnRequest, RecordError> {
    match format {
        1 => Ok(serde_json::from_slice(body)?),
        unknown => Err(RecordError::UnknownFormat(unknown)),
    }
}

/// What a row is called that is of a session and not of a task.
pub(super) const SESSION_IDLE: &str = "session_idle";

/// The record of a session that has become idle.
#[derive(Debug, Deserialize)]
struct IdleRecord {
    session_id: String,
}

pub(super) fn encode_idle(session_id: &str) -> String {
    serde_json::json!({ "session_id": session_id }).to_string()
}

/// The session that a record says is idle.
pub(super) fn idle_session(format: i64, record: &[u8]) -> Result<String, RecordError> {
    match format {
        1 => Ok(serde_json::from_slice::<IdleRecord>(record)?.session_id),
        unknown => Err(RecordError::UnknownFormat(unknown)),
    }
}

pub(super) fn encode_activity(activity: Activity) -> String {
    let Activity { agents, shells } = activity;
    format!(r#"{{"agents":{agents},"shells":{shells}}}"#)
}

/// How many tasks of a session are live, as a row has it.
pub(super) fn decode_activity(text: &[u8]) -> Result<Activity, RecordError> {
    Ok(serde_json::from_slice(text)?)
}

/// A number as SQLite has it; its largest stands for all above.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number as it came from SQLite, where none below 0 was ever put.
pub(super) fn uint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// How a kind of task is called in the file.
pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Shell => "shell",
        Kind::Agent => "agent",
    }
}

/// How a terminal state is called in the file.
pub(super) fn end_state_name(state: EndState) -> &'static str {
    match state {
        EndState::Completed => "completed",
        EndState::Failed => "failed",
        EndState::Cancelled => "cancelled",
        EndState::TimedOut => "timed_out",
        EndState::Lost => "lost",
    }
}

/// How a kind of event is called in the file.
pub(super) fn event_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Created => "created",
        EventKind::Admitted => "admitted",
        EventKind::Started => "started",
        EventKind::Stopping => "stopping",
        EventKind::LeaderExited => "leader_exited",
        EventKind::Detached => "detached",
        EventKind::Stale => "stale",
        EventKind::Active => "active",
        EventKind::KillOverdue => "kill_overdue",
        EventKind::Ended => "ended",
        EventKind::Removed => "removed",
    }
}

/// Which kind of event is called so in the file.
pub(super) fn event_kind(name: &str) -> Result<EventKind, RecordError> {
    match name {
        "created" => Ok(EventKind::Created),
        "admitted" => Ok(EventKind::Admitted),
        "started" => Ok(EventKind::Started),
        "stopping" => Ok(EventKind::Stopping),
        "leader_exited" => Ok(EventKind::LeaderExited),
        "detached" => Ok(EventKind::Detached),
        "stale" => Ok(EventKind::Stale),
        "active" => Ok(EventKind::Active),
        "kill_overdue" => Ok(EventKind::KillOverdue),
        "ended" => Ok(EventKind::Ended),
        "removed" => Ok(EventKind::Removed),
        unknown => Err(RecordError::UnknownKind(unknown.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::State;

    /// As the first version wrote it. Never to be changed: there are files with such records.
    const FORMAT_1: &str = include_str!("record/format-1.json");

    /// R8
    #[test]
    fn a_record_of_the_first_format_is_read() {
        let task = task(1, FORMAT_1.as_bytes(), Revision(7)).unwrap();
        assert_eq!(task.id.as_str(), "shell-k3v7q2mzha");
        assert_eq!(task.state(), State::Ended(EndState::Cancelled));
        assert_eq!(task.spec.labels["repo"], "heeler");
        assert_eq!(task.revision, Revision(7), "the row's revision counts");
    }

    /// R8
    #[test]
    fn a_field_that_is_not_known_is_ignored() {
        let newer = FORMAT_1.replacen('{', r#"{"mood": {"good": true}, "#, 1);
        let (newer, older) = (newer.as_bytes(), FORMAT_1.as_bytes());
        assert_eq!(
            task(1, newer, Revision(1)).unwrap(),
            task(1, older, Revision(1)).unwrap()
        );
    }

    #[test]
    fn every_kind_of_event_reads_back_from_its_name() {
        let kinds = [
            EventKind::Created,
            EventKind::Admitted,
            EventKind::Started,
            EventKind::Stopping,
            EventKind::LeaderExited,
            EventKind::Detached,
            EventKind::Stale,
            EventKind::Active,
            EventKind::KillOverdue,
            EventKind::Ended,
            EventKind::Removed,
        ];
        for kind in kinds {
            assert_eq!(event_kind(event_name(kind)).unwrap(), kind);
        }
    }
}
