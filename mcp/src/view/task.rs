//! A task as a row: its id first, then what a model decides by.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use heeler_client::{
    time,
    v1::{BackgroundTask, Readiness, TaskState, outcome::Result as Ended, task_spec::Command},
};
use rmcp::schemars::JsonSchema;
use serde::Serialize;

use super::{cut, span, word};

/// The longest command and name that a row repeats, in characters.
const LONGEST_COMMAND: usize = 200;
const LONGEST_NAME: usize = 60;

/// A task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
pub(crate) struct TaskView {
    /// The id, which every other tool takes.
    pub(crate) id: String,
    /// queued, starting, running, stopping, completed, failed, cancelled, timed_out or lost.
    pub(crate) state: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    /// The command line, cut at 200 characters.
    command: String,
    /// foreground or background.
    placement: String,
    /// Seconds since its start; of a finished task, from start to end.
    seconds: f64,
    /// Bytes of output in all. Absent while it runs: heeler_output says how many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_bytes: Option<u64>,
    /// pending, ready or not_ready. Absent without a ready condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    /// The end in words, such as `exited with 3` or `killed by SIGKILL`. Absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// The cause of the end, such as exited, cancelled or timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_reason: Option<String>,
    /// True while it is silent for longer than it should be.
    #[serde(skip_serializing_if = "is_false")]
    stale: bool,
    /// True while it waits for input.
    #[serde(skip_serializing_if = "is_false")]
    needs_input: bool,
    /// TCP ports that it listens on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<u32>,
    /// The present activity, as its worker reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<String>,
}

impl TaskView {
    pub(crate) fn of(task: &BackgroundTask) -> Self {
        let spec = task.spec.clone().unwrap_or_default();
        let intent = task
            .progress
            .as_ref()
            .map(|progress| cut(&progress.intent, 200));
        Self {
            id: task.id.clone(),
            state: word(task.state().as_str_name(), "TASK_STATE_"),
            name: cut(&spec.name, LONGEST_NAME),
            command: cut(&command(spec.command.as_ref()), LONGEST_COMMAND),
            placement: word(task.placement().as_str_name(), "PLACEMENT_"),
            seconds: (age(task).as_secs_f64() * 10.0).round() / 10.0,
            output_bytes: is_finished(task).then_some(task.output_bytes),
            ready: ready(task),
            exit_code: exit_code(task),
            outcome: outcome(task),
            end_reason: is_finished(task)
                .then(|| word(task.end_reason().as_str_name(), "END_REASON_")),
            stale: task.stale,
            needs_input: task.needs_input,
            ports: Vec::new(),
            activity: intent.filter(|intent| !intent.is_empty()),
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.end_reason.is_some()
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    pub(crate) fn ready(&self) -> Option<&str> {
        self.ready.as_deref()
    }

    /// True if it has a ready condition that does not hold.
    pub(crate) fn is_not_ready(&self) -> bool {
        self.ready().is_some_and(|ready| ready != "ready")
    }

    pub(crate) fn with_ports(mut self, mut ports: Vec<u32>) -> Self {
        ports.sort_unstable();
        ports.dedup();
        ports.truncate(20);
        self.ports = ports;
        self
    }
}

impl fmt::Display for TaskView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.state)?;
        if let Some(outcome) = &self.outcome {
            write!(f, " ({outcome})")?;
        }
        write!(f, " after {}", span(Duration::from_secs_f64(self.seconds)))?;
        if let Some(ready) = &self.ready {
            write!(f, ", {}", ready.replace('_', " "))?;
        }
        if !self.ports.is_empty() {
            let ports: Vec<_> = self.ports.iter().map(u32::to_string).collect();
            write!(f, ", listens on {}", ports.join(", "))?;
        }
        for (is_set, text) in [(self.stale, "STALE"), (self.needs_input, "WAITS FOR INPUT")] {
            if is_set {
                write!(f, ", {text}")?;
            }
        }
        if !self.is_finished() && self.placement == "foreground" {
            f.write_str(", in the foreground")?;
        }
        if !self.name.is_empty() {
            write!(f, " [{}]", self.name)?;
        }
        write!(f, ": {}", self.command)?;
        match &self.activity {
            Some(activity) => write!(f, " — {activity}"),
            None => Ok(()),
        }
    }
}

/// True in a terminal state.
pub(crate) fn is_finished(task: &BackgroundTask) -> bool {
    match task.state() {
        TaskState::Unspecified
        | TaskState::Queued
        | TaskState::Starting
        | TaskState::Running
        | TaskState::Stopping => false,
        TaskState::Completed
        | TaskState::Failed
        | TaskState::Cancelled
        | TaskState::TimedOut
        | TaskState::Lost => true,
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn command(command: Option<&Command>) -> String {
    match command {
        Some(Command::Shell(shell)) => shell.script.clone(),
        Some(Command::Argv(argv)) => argv.args.join(" "),
        None => "(hosted work)".to_owned(),
    }
}

fn age(task: &BackgroundTask) -> Duration {
    let Some(start) = task.start_time.or(task.create_time) else {
        return Duration::ZERO;
    };
    match task.end_time {
        Some(end) => time::since(end, start),
        None => SystemTime::now()
            .duration_since(time::to_system(start))
            .unwrap_or_default(),
    }
}

fn ready(task: &BackgroundTask) -> Option<String> {
    match task.readiness() {
        Readiness::Unspecified => None,
        ready @ (Readiness::Pending | Readiness::Ready | Readiness::NotReady) => {
            Some(word(ready.as_str_name(), "READINESS_"))
        }
    }
}

fn exit_code(task: &BackgroundTask) -> Option<i32> {
    match task.outcome.as_ref()?.result.as_ref()? {
        Ended::ExitCode(code) => Some(*code),
        Ended::Signal(_) | Ended::SpawnError(_) | Ended::Unknown(_) | Ended::Worker(_) => None,
    }
}

fn outcome(task: &BackgroundTask) -> Option<String> {
    Some(match task.outcome.as_ref()?.result.as_ref()? {
        Ended::ExitCode(code) => format!("exited with {code}"),
        Ended::Signal(signal) => format!("killed by {}", signal.name),
        Ended::SpawnError(error) => format!("never started: {} {}", error.message, error.path),
        Ended::Unknown(_) => "exit unknown".to_owned(),
        Ended::Worker(_) => {
            let result = task.result.as_ref();
            let text = result
                .map(|result| cut(&result.text, 200))
                .unwrap_or_default();
            format!("the worker's result: {text}")
        }
    })
}
