//! Accessors of what a task was spawned with. Nothing else in the tests names these fields.

use std::collections::BTreeMap;

use heeler_proto::v1::{BackgroundTask, background_task::Command};
use prost_types::Duration;

/// The specification of a task.
pub trait TaskSpecExt {
    fn name(&self) -> &str;
    fn session(&self) -> &str;
    fn parent(&self) -> &str;
    fn labels(&self) -> &BTreeMap<String, String>;
    /// The value of a label that the task must have.
    fn label(&self, key: &str) -> &str;
    /// The script of a task that must run one.
    fn script(&self) -> &str;
    fn working_directory(&self) -> &str;
    /// The names of the variables that the request set.
    fn env_names(&self) -> &[String];
    fn timeout(&self) -> Option<Duration>;
    fn grace(&self) -> Option<Duration>;
    fn stop_signal(&self) -> &str;
    fn foreground_timeout(&self) -> Option<Duration>;
    fn exclusive_key(&self) -> &str;
    fn queue(&self) -> &str;
    /// True if both run the same command.
    fn has_command_of(&self, other: &BackgroundTask) -> bool;
}

impl TaskSpecExt for BackgroundTask {
    fn name(&self) -> &str {
        &self.name
    }

    fn session(&self) -> &str {
        &self.session_id
    }

    fn parent(&self) -> &str {
        &self.parent_id
    }

    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    #[track_caller]
    fn label(&self, key: &str) -> &str {
        &self.labels[key]
    }

    #[track_caller]
    fn script(&self) -> &str {
        match &self.command {
            Some(Command::Shell(shell)) => &shell.script,
            other @ (Some(Command::Argv(_)) | None) => panic!("not a script: {other:?}"),
        }
    }

    fn working_directory(&self) -> &str {
        &self.working_directory
    }

    fn env_names(&self) -> &[String] {
        &self.env_names
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn grace(&self) -> Option<Duration> {
        self.stop_policy.as_ref().and_then(|policy| policy.grace)
    }

    fn stop_signal(&self) -> &str {
        let policy = self.stop_policy.as_ref();
        policy.map_or("", |policy| &policy.signal)
    }

    fn foreground_timeout(&self) -> Option<Duration> {
        self.foreground_timeout
    }

    fn exclusive_key(&self) -> &str {
        &self.exclusive_key
    }

    fn queue(&self) -> &str {
        &self.queue
    }

    fn has_command_of(&self, other: &BackgroundTask) -> bool {
        self.command == other.command
    }
}
