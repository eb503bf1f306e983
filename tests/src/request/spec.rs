//! Accessors of what a task was spawned with. Nothing else in the tests names these fields.

use std::collections::BTreeMap;

use heeler_proto::v1::{BackgroundTask, ForegroundPolicy, TaskKind, TaskSpec, task_spec::Command};
use prost_types::Duration;

/// The specification of a task.
pub trait TaskSpecExt {
    /// The specification, which every task must have.
    fn spec(&self) -> &TaskSpec;
    fn kind(&self) -> TaskKind;
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
    /// The foreground policy of a task that must have started in the foreground.
    fn foreground(&self) -> &ForegroundPolicy;
    fn exclusive_key(&self) -> &str;
    fn queue(&self) -> &str;
    /// True if both run the same command.
    fn has_command_of(&self, other: &BackgroundTask) -> bool;
}

impl TaskSpecExt for BackgroundTask {
    #[track_caller]
    fn spec(&self) -> &TaskSpec {
        self.spec.as_ref().expect("a specification")
    }

    fn kind(&self) -> TaskKind {
        self.spec().kind()
    }

    fn name(&self) -> &str {
        &self.spec().name
    }

    fn session(&self) -> &str {
        &self.spec().session_id
    }

    fn parent(&self) -> &str {
        &self.spec().parent_id
    }

    fn labels(&self) -> &BTreeMap<String, String> {
        &self.spec().labels
    }

    #[track_caller]
    fn label(&self, key: &str) -> &str {
        &self.spec().labels[key]
    }

    #[track_caller]
    fn script(&self) -> &str {
        match &self.spec().command {
            Some(Command::Shell(shell)) => &shell.script,
            other @ (Some(Command::Argv(_)) | None) => panic!("not a script: {other:?}"),
        }
    }

    fn working_directory(&self) -> &str {
        &self.spec().working_directory
    }

    fn env_names(&self) -> &[String] {
        let environment = self.spec().environment.as_ref();
        environment.map_or(&[], |environment| &environment.variable_names)
    }

    fn timeout(&self) -> Option<Duration> {
        self.spec().timeout
    }

    fn grace(&self) -> Option<Duration> {
        self.spec().stop.as_ref().and_then(|policy| policy.grace)
    }

    fn stop_signal(&self) -> &str {
        let policy = self.spec().stop.as_ref();
        policy.map_or("", |policy| &policy.signal)
    }

    #[track_caller]
    fn foreground(&self) -> &ForegroundPolicy {
        let policy = self.spec().foreground.as_ref();
        policy.expect("a foreground policy")
    }

    fn exclusive_key(&self) -> &str {
        let exclusive = self.spec().exclusive.as_ref();
        exclusive.map_or("", |exclusive| &exclusive.key)
    }

    fn queue(&self) -> &str {
        &self.spec().queue
    }

    fn has_command_of(&self, other: &BackgroundTask) -> bool {
        self.spec().command == other.spec().command
    }
}
