//! Short ways to write requests, and to read times.

use std::time::Duration;

use heeler_proto::v1::{
    ArgvCommand, ExclusiveMode, Placement, ShellCommand, SpawnRequest, TaskFilter, TaskState,
    spawn_request::Command,
};

/// A program and its arguments.
pub fn argv<T: Into<String>>(args: impl IntoIterator<Item = T>) -> SpawnRequest {
    let args = args.into_iter().map(Into::into).collect();
    SpawnRequest {
        command: Some(Command::Argv(ArgvCommand { args })),
        ..Default::default()
    }
}

/// A script for the default shell.
pub fn shell(script: impl Into<String>) -> SpawnRequest {
    let shell = ShellCommand {
        script: script.into(),
        program: String::new(),
    };
    SpawnRequest {
        command: Some(Command::Shell(shell)),
        ..Default::default()
    }
}

/// The same in the foreground, to be filled in.
pub fn foreground(request: SpawnRequest) -> SpawnRequest {
    SpawnRequest {
        placement: Placement::Foreground.into(),
        ..request
    }
}

/// In the foreground, with a holder's window that a slow machine keeps; its command is to be filled in.
pub fn held() -> SpawnRequest {
    SpawnRequest {
        reattach_window: Some(secs(60)),
        ..foreground(SpawnRequest::default())
    }
}

/// The tasks of a session.
pub fn session(id: &str) -> TaskFilter {
    TaskFilter {
        session_id: id.to_owned(),
        ..Default::default()
    }
}

/// The states that are not terminal.
pub const LIVE: [TaskState; 4] = [
    TaskState::Queued,
    TaskState::Starting,
    TaskState::Running,
    TaskState::Stopping,
];

/// Every live task.
pub fn live() -> TaskFilter {
    TaskFilter {
        states: LIVE.map(i32::from).to_vec(),
        ..Default::default()
    }
}

/// A span of seconds.
pub fn secs(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

/// A span of milliseconds.
pub fn millis(millis: u64) -> prost_types::Duration {
    Duration::from_millis(millis)
        .try_into()
        .expect("a small number")
}

/// Microseconds since 1970 of a time that must be there.
pub fn micros(time: &Option<prost_types::Timestamp>) -> i64 {
    let time = time.as_ref().expect("a time");
    time.seconds * 1_000_000 + i64::from(time.nanos) / 1_000
}

/// The same, of which only one may be live that has this key.
pub fn exclusive(key: &str, mode: ExclusiveMode, request: SpawnRequest) -> SpawnRequest {
    SpawnRequest {
        exclusive_key: key.to_owned(),
        exclusive_mode: mode.into(),
        ..request
    }
}

/// The same, in a queue.
pub fn queued(queue: &str, request: SpawnRequest) -> SpawnRequest {
    SpawnRequest {
        queue: queue.to_owned(),
        ..request
    }
}
