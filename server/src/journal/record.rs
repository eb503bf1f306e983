//! The encoding of records.
//!
//! A record is the JSON of a [`Task`], a request that of a [`SpawnRequest`]; a session that has become
//! idle has a record of its own kind. Each row names its format. The rules by which the types in
//! [`crate::task`] may change without making rows unreadable:
//!
//! - An unknown field is ignored; a new one is an `Option` or has `#[serde(default)]`. The format stays.
//! - Any other change (a field that goes, or changes its name, type or meaning) is a new format. Before
//!   the first release there is only one; after it, the old one stays readable.
//!
//! `Task::revision` is taken from the row, not from the record.

use serde::{
    Deserialize,
    de::{
        DeserializeOwned, IntoDeserializer,
        value::{Error, StrDeserializer},
    },
};

use super::RecordError;
use crate::task::{
    Activity, Actor, BlockKind, EndState, EventKind, Kind, Progress, Revision, SpawnRequest, Task,
};

/// The format of every record.
pub(super) const FORMAT: i64 = 1;

/// The kind of a row that is about a session, not a task.
pub(super) const SESSION_IDLE: &str = "session_idle";

/// Decodes a task as it was at this revision.
pub(super) fn task(format: i64, record: &[u8], revision: Revision) -> Result<Task, RecordError> {
    Ok(Task {
        revision,
        ..decode(format, record)?
    })
}

pub(super) fn request(format: i64, body: &[u8]) -> Result<SpawnRequest, RecordError> {
    decode(format, body)
}

#[derive(Debug, Deserialize)]
struct IdleRecord {
    session_id: String,
}

pub(super) fn encode_idle(session_id: &str) -> String {
    serde_json::json!({ "session_id": session_id }).to_string()
}

/// Decodes the id of a session that has become idle.
pub(super) fn idle_session(format: i64, record: &[u8]) -> Result<String, RecordError> {
    Ok(decode::<IdleRecord>(format, record)?.session_id)
}

pub(super) fn encode_activity(activity: &Activity) -> String {
    serde_json::to_string(activity).expect("an activity consists of numbers")
}

pub(super) fn decode_activity(text: &[u8]) -> Result<Activity, RecordError> {
    Ok(serde_json::from_slice(text)?)
}

/// Decodes the progress of a task.
pub(super) fn progress(format: i64, record: &[u8]) -> Result<Progress, RecordError> {
    decode(format, record)
}

/// Decodes the sender of a message.
pub(super) fn sender(record: &[u8]) -> Result<Actor, RecordError> {
    decode(FORMAT, record)
}

fn decode<T: DeserializeOwned>(format: i64, json: &[u8]) -> Result<T, RecordError> {
    match format {
        FORMAT => Ok(serde_json::from_slice(json)?),
        unknown => Err(RecordError::UnknownFormat(unknown)),
    }
}

/// A number for SQLite, which has none above `i64::MAX`.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number from SQLite; none below 0 was ever stored.
pub(super) fn uint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The name of a kind of task in the file.
pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Shell => "shell",
        Kind::Agent => "agent",
        Kind::Hosted => "hosted",
    }
}

/// The name of a terminal state in the file.
pub(super) fn end_state_name(state: EndState) -> &'static str {
    match state {
        EndState::Completed => "completed",
        EndState::Failed => "failed",
        EndState::Cancelled => "cancelled",
        EndState::TimedOut => "timed_out",
        EndState::Lost => "lost",
    }
}

/// The name of a kind of event in the file: the same as in JSON.
pub(super) fn event_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Created => "created",
        EventKind::Admitted => "admitted",
        EventKind::Started => "started",
        EventKind::Stopping => "stopping",
        EventKind::LeaderExited => "leader_exited",
        EventKind::Detached => "detached",
        EventKind::Stale => "stale",
        EventKind::Restarting => "restarting",
        EventKind::Restarted => "restarted",
        EventKind::Ready => "ready",
        EventKind::NotReady => "not_ready",
        EventKind::NeedsInput => "needs_input",
        EventKind::Active => "active",
        EventKind::Progress => "progress",
        EventKind::KillOverdue => "kill_overdue",
        EventKind::OutputLimit => "output_limit",
        EventKind::Matched => "matched",
        EventKind::Updated => "updated",
        EventKind::Ended => "ended",
        EventKind::Removed => "removed",
    }
}

/// The kind of event with this name.
pub(super) fn event_kind(name: &str) -> Result<EventKind, RecordError> {
    named(name)
}

/// The name of a kind of block in the file: the same as in JSON.
pub(super) fn block_name(kind: BlockKind) -> &'static str {
    match kind {
        BlockKind::Text => "text",
        BlockKind::Thought => "thought",
        BlockKind::ToolCall => "tool_call",
        BlockKind::ToolResult => "tool_result",
        BlockKind::Note => "note",
    }
}

/// The kind of block with this name.
pub(super) fn block_kind(name: &str) -> Result<BlockKind, RecordError> {
    named(name)
}

fn named<'a, T: Deserialize<'a>>(name: &'a str) -> Result<T, RecordError> {
    let deserializer: StrDeserializer<'_, Error> = name.into_deserializer();
    T::deserialize(deserializer).map_err(|_| RecordError::UnknownKind(name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Moment, Monotonic, State, Timestamp};

    /// A record of format 1. From the first release on it is never changed: files will have such records.
    const FORMAT_1: &str = include_str!("record/format-1.json");

    /// R8
    #[test]
    fn a_record_of_format_1_is_read_and_one_of_another_format_is_not() {
        let task = task(1, FORMAT_1.as_bytes(), Revision(7)).unwrap();
        assert_eq!(task.id.as_str(), "shell-k3v7q2mzha");
        assert_eq!(task.state(), State::Ended(EndState::Cancelled));
        assert_eq!(task.spec.labels["repo"], "heeler");
        let started = task.started.as_ref().map(|started| started.at);
        let wall = Timestamp(1_763_000_000_001_000);
        let mono = Monotonic(9_988_770_000);
        assert_eq!(started, Some(Moment { wall, mono }));
        assert_eq!(task.revision, Revision(7), "from the row");
        let newer = super::task(2, FORMAT_1.as_bytes(), Revision(7));
        assert!(matches!(newer, Err(RecordError::UnknownFormat(2))));
    }

    /// R8
    #[test]
    fn an_unknown_field_is_ignored() {
        let newer = FORMAT_1.replacen('{', r#"{"mood": {"good": true}, "#, 1);
        let (newer, older) = (newer.as_bytes(), FORMAT_1.as_bytes());
        assert_eq!(
            task(1, newer, Revision(1)).unwrap(),
            task(1, older, Revision(1)).unwrap()
        );
    }

    #[test]
    fn every_kind_of_event_is_read_back_from_its_name() {
        let kinds = [
            EventKind::Created,
            EventKind::Admitted,
            EventKind::Started,
            EventKind::Stopping,
            EventKind::LeaderExited,
            EventKind::Detached,
            EventKind::Stale,
            EventKind::Restarting,
            EventKind::Restarted,
            EventKind::Ready,
            EventKind::NotReady,
            EventKind::NeedsInput,
            EventKind::Active,
            EventKind::Progress,
            EventKind::KillOverdue,
            EventKind::OutputLimit,
            EventKind::Matched,
            EventKind::Updated,
            EventKind::Ended,
            EventKind::Removed,
        ];
        for kind in kinds {
            assert_eq!(event_kind(event_name(kind)).unwrap(), kind);
        }
    }
}
