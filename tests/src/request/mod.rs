//! Builders of requests, accessors of a task's specification, filters and spans of time.

mod call;
mod spawn;
mod spec;

use std::time::Duration;

use heeler_proto::v1::{TaskFilter, TaskState};

pub use call::{
    cancel, cancel_matching, cancel_session, detach, detach_matching, detach_session, force, grace,
    read, read_tail, remove, remove_finished, wait, wait_for_session, wait_matching,
};
pub use spawn::{SpawnRequestExt, argv, exclusive, foreground, queued, shell, shell_by};
pub use spec::TaskSpecExt;

/// The states that are not terminal.
pub const LIVE: [TaskState; 4] = [
    TaskState::Queued,
    TaskState::Starting,
    TaskState::Running,
    TaskState::Stopping,
];

/// The tasks with these ids.
pub fn ids<T: Into<String>>(ids: impl IntoIterator<Item = T>) -> TaskFilter {
    TaskFilter {
        task_ids: ids.into_iter().map(Into::into).collect(),
        ..Default::default()
    }
}

/// The tasks of a session.
pub fn session(id: &str) -> TaskFilter {
    TaskFilter {
        session_id: id.to_owned(),
        ..Default::default()
    }
}

/// The live tasks.
pub fn live() -> TaskFilter {
    TaskFilter {
        states: LIVE.map(i32::from).to_vec(),
        ..Default::default()
    }
}

pub fn secs(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

pub fn millis(millis: u64) -> prost_types::Duration {
    Duration::from_millis(millis)
        .try_into()
        .expect("a small number")
}

/// Microseconds since 1970 of a time that must be set.
pub fn micros(time: &Option<prost_types::Timestamp>) -> i64 {
    let time = time.as_ref().expect("a time");
    time.seconds * 1_000_000 + i64::from(time.nanos) / 1_000
}
