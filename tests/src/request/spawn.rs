//! Builders of Spawn requests. Nothing else in the tests names a field of [`SpawnRequest`] or of its
//! [`TaskSpec`].

use std::collections::BTreeMap;

use heeler_proto::v1::{
    ArgvCommand, ExclusiveMode, ExclusivePolicy, ForegroundPolicy, OutputPolicy, ReadyPolicy,
    ShellCommand, SilencePolicy, SpawnRequest, StopPolicy, TaskEnvironment, TaskSpec,
    ready_policy::Probe, task_spec::Command,
};
use prost_types::Duration;

use super::secs;

/// A program and its arguments.
pub fn argv<T: Into<String>>(args: impl IntoIterator<Item = T>) -> SpawnRequest {
    let args = args.into_iter().map(Into::into).collect();
    command(Command::Argv(ArgvCommand { args }))
}

/// A script for the default shell.
pub fn shell(script: impl Into<String>) -> SpawnRequest {
    shell_by("", script)
}

/// A script for the shell at this path.
pub fn shell_by(program: impl Into<String>, script: impl Into<String>) -> SpawnRequest {
    let shell = ShellCommand {
        script: script.into(),
        program: program.into(),
    };
    command(Command::Shell(shell))
}

fn command(command: Command) -> SpawnRequest {
    let mut request = SpawnRequest::default();
    spec(&mut request).command = Some(command);
    request
}

/// A foreground request without a command. Its reattach window is long enough for a slow machine.
pub fn foreground() -> SpawnRequest {
    SpawnRequest::default()
        .in_foreground()
        .with_reattach_window(secs(60))
}

/// The request with an exclusive key.
pub fn exclusive(key: &str, mode: ExclusiveMode, request: SpawnRequest) -> SpawnRequest {
    request.with_exclusive_key(key).with_exclusive_mode(mode)
}

/// The request with a queue.
pub fn queued(queue: &str, request: SpawnRequest) -> SpawnRequest {
    request.with_queue(queue)
}

/// Names and values of variables or labels.
pub trait Pairs: IntoIterator<Item = (Self::Name, Self::Value)> {
    type Name: Into<String>;
    type Value: Into<String>;
}

impl<N: Into<String>, V: Into<String>, I: IntoIterator<Item = (N, V)>> Pairs for I {
    type Name = N;
    type Value = V;
}

fn map(pairs: impl Pairs) -> BTreeMap<String, String> {
    let pairs = pairs.into_iter();
    pairs
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// Builder methods of the generated message. An option of a group adds the group. An enum is given as
/// its value or, to test a refusal, as a number that has no name.
pub trait SpawnRequestExt: Sized {
    /// Takes the command of another request.
    fn with_command_of(self, other: SpawnRequest) -> Self;
    fn with_request_id(self, id: impl Into<String>) -> Self;
    fn with_session(self, id: impl Into<String>) -> Self;
    fn with_name(self, name: impl Into<String>) -> Self;
    fn with_kind(self, kind: impl Into<i32>) -> Self;
    fn with_parent(self, id: impl Into<String>) -> Self;
    fn with_labels(self, labels: impl Pairs) -> Self;
    fn with_working_directory(self, path: impl Into<String>) -> Self;
    fn with_env(self, env: impl Pairs) -> Self;
    fn with_env_remove<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self;
    fn with_env_defaults(self, defaults: impl Into<i32>) -> Self;
    /// Sets the names that only a task may carry, to test the refusal.
    fn with_env_names<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self;
    fn with_timeout(self, timeout: Duration) -> Self;
    fn with_grace(self, grace: Duration) -> Self;
    fn with_stop_signal(self, signal: impl Into<String>) -> Self;
    /// Starts in the foreground, with the defaults of the policy.
    fn in_foreground(self) -> Self;
    fn with_foreground_timeout(self, timeout: Duration) -> Self;
    fn with_on_foreground_timeout(self, action: impl Into<i32>) -> Self;
    fn with_on_disconnect(self, action: impl Into<i32>) -> Self;
    fn with_reattach_window(self, window: Duration) -> Self;
    fn with_orphan_policy(self, policy: impl Into<i32>) -> Self;
    fn with_idle_timeout(self, timeout: Duration) -> Self;
    fn with_stale_after(self, silence: Duration) -> Self;
    fn with_stale_action(self, action: impl Into<i32>) -> Self;
    fn with_exclusive_key(self, key: impl Into<String>) -> Self;
    fn with_exclusive_mode(self, mode: impl Into<i32>) -> Self;
    fn with_queue(self, name: impl Into<String>) -> Self;
    fn with_max_output(self, bytes: u64) -> Self;
    fn with_output_head(self, bytes: u64) -> Self;
    fn with_on_output_limit(self, action: impl Into<i32>) -> Self;
    fn with_ready(self, probe: Probe) -> Self;
    fn with_ready_interval(self, interval: Duration) -> Self;
    fn with_ready_timeout(self, timeout: Duration) -> Self;
    fn with_ready_action(self, action: impl Into<i32>) -> Self;
    fn with_input_after(self, silence: Duration) -> Self;
    /// Gives the task a stdin to write to.
    fn with_input(self) -> Self;
    fn with_terminal(self, columns: u32, rows: u32) -> Self;
}

impl SpawnRequestExt for SpawnRequest {
    fn with_command_of(mut self, other: SpawnRequest) -> Self {
        spec(&mut self).command = other.spec.and_then(|spec| spec.command);
        self
    }

    fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.request_id = id.into();
        self
    }

    fn with_session(mut self, id: impl Into<String>) -> Self {
        spec(&mut self).session_id = id.into();
        self
    }

    fn with_name(mut self, name: impl Into<String>) -> Self {
        spec(&mut self).name = name.into();
        self
    }

    fn with_kind(mut self, kind: impl Into<i32>) -> Self {
        spec(&mut self).kind = kind.into();
        self
    }

    fn with_parent(mut self, id: impl Into<String>) -> Self {
        spec(&mut self).parent_id = id.into();
        self
    }

    fn with_labels(mut self, labels: impl Pairs) -> Self {
        spec(&mut self).labels = map(labels);
        self
    }

    fn with_working_directory(mut self, path: impl Into<String>) -> Self {
        spec(&mut self).working_directory = path.into();
        self
    }

    fn with_env(mut self, env: impl Pairs) -> Self {
        environment(&mut self).variables = map(env);
        self
    }

    fn with_env_remove<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        environment(&mut self).remove = names.into_iter().map(Into::into).collect();
        self
    }

    fn with_env_defaults(mut self, defaults: impl Into<i32>) -> Self {
        environment(&mut self).defaults = defaults.into();
        self
    }

    fn with_env_names<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        environment(&mut self).variable_names = names.into_iter().map(Into::into).collect();
        self
    }

    fn with_timeout(mut self, timeout: Duration) -> Self {
        spec(&mut self).timeout = Some(timeout);
        self
    }

    fn with_grace(mut self, grace: Duration) -> Self {
        stop(&mut self).grace = Some(grace);
        self
    }

    fn with_stop_signal(mut self, signal: impl Into<String>) -> Self {
        stop(&mut self).signal = signal.into();
        self
    }

    fn in_foreground(mut self) -> Self {
        spec(&mut self).foreground.get_or_insert_default();
        self
    }

    fn with_foreground_timeout(mut self, timeout: Duration) -> Self {
        foreground_policy(&mut self).timeout = Some(timeout);
        self
    }

    fn with_on_foreground_timeout(mut self, action: impl Into<i32>) -> Self {
        foreground_policy(&mut self).on_timeout = action.into();
        self
    }

    fn with_on_disconnect(mut self, action: impl Into<i32>) -> Self {
        foreground_policy(&mut self).on_disconnect = action.into();
        self
    }

    fn with_reattach_window(mut self, window: Duration) -> Self {
        foreground_policy(&mut self).reattach_window = Some(window);
        self
    }

    fn with_orphan_policy(mut self, policy: impl Into<i32>) -> Self {
        spec(&mut self).orphan_policy = policy.into();
        self
    }

    fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        spec(&mut self).idle_timeout = Some(timeout);
        self
    }

    fn with_stale_after(mut self, silence: Duration) -> Self {
        silence_policy(&mut self).stale_after = Some(silence);
        self
    }

    fn with_stale_action(mut self, action: impl Into<i32>) -> Self {
        silence_policy(&mut self).on_stale = action.into();
        self
    }

    fn with_exclusive_key(mut self, key: impl Into<String>) -> Self {
        exclusive_policy(&mut self).key = key.into();
        self
    }

    fn with_exclusive_mode(mut self, mode: impl Into<i32>) -> Self {
        exclusive_policy(&mut self).mode = mode.into();
        self
    }

    fn with_queue(mut self, name: impl Into<String>) -> Self {
        spec(&mut self).queue = name.into();
        self
    }

    fn with_max_output(mut self, bytes: u64) -> Self {
        output_policy(&mut self).max_bytes = bytes;
        self
    }

    fn with_output_head(mut self, bytes: u64) -> Self {
        output_policy(&mut self).head_bytes = Some(bytes);
        self
    }

    fn with_on_output_limit(mut self, action: impl Into<i32>) -> Self {
        output_policy(&mut self).on_limit = action.into();
        self
    }

    fn with_ready(mut self, probe: Probe) -> Self {
        ready_policy(&mut self).probe = Some(probe);
        self
    }

    fn with_ready_interval(mut self, interval: Duration) -> Self {
        ready_policy(&mut self).interval = Some(interval);
        self
    }

    fn with_ready_timeout(mut self, timeout: Duration) -> Self {
        ready_policy(&mut self).timeout = Some(timeout);
        self
    }

    fn with_ready_action(mut self, action: impl Into<i32>) -> Self {
        ready_policy(&mut self).on_timeout = action.into();
        self
    }

    fn with_input_after(mut self, silence: Duration) -> Self {
        let policy = spec(&mut self).input.get_or_insert_default();
        policy.notify_after = Some(silence);
        self
    }

    fn with_input(mut self) -> Self {
        spec(&mut self).input.get_or_insert_default();
        self
    }

    fn with_terminal(mut self, columns: u32, rows: u32) -> Self {
        let terminal = spec(&mut self).terminal.get_or_insert_default();
        (terminal.columns, terminal.rows) = (columns, rows);
        self
    }
}

fn spec(request: &mut SpawnRequest) -> &mut TaskSpec {
    request.spec.get_or_insert_default()
}

fn environment(request: &mut SpawnRequest) -> &mut TaskEnvironment {
    spec(request).environment.get_or_insert_default()
}

fn stop(request: &mut SpawnRequest) -> &mut StopPolicy {
    spec(request).stop.get_or_insert_default()
}

fn foreground_policy(request: &mut SpawnRequest) -> &mut ForegroundPolicy {
    spec(request).foreground.get_or_insert_default()
}

fn silence_policy(request: &mut SpawnRequest) -> &mut SilencePolicy {
    spec(request).silence.get_or_insert_default()
}

fn output_policy(request: &mut SpawnRequest) -> &mut OutputPolicy {
    spec(request).output.get_or_insert_default()
}

fn ready_policy(request: &mut SpawnRequest) -> &mut ReadyPolicy {
    spec(request).ready.get_or_insert_default()
}

fn exclusive_policy(request: &mut SpawnRequest) -> &mut ExclusivePolicy {
    spec(request).exclusive.get_or_insert_default()
}
