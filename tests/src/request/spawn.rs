//! Builders of Spawn requests. Nothing else in the tests names a field of [`SpawnRequest`].

use std::collections::BTreeMap;

use heeler_proto::v1::{
    ArgvCommand, ExclusiveMode, Placement, ShellCommand, SpawnRequest, StopPolicy,
    spawn_request::Command,
};
use prost_types::Duration;

use super::secs;

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
    shell_by("", script)
}

/// A script for the shell at this path.
pub fn shell_by(program: impl Into<String>, script: impl Into<String>) -> SpawnRequest {
    let shell = ShellCommand {
        script: script.into(),
        program: program.into(),
    };
    SpawnRequest {
        command: Some(Command::Shell(shell)),
        ..Default::default()
    }
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

/// Builder methods of the generated message. An enum is given as its value or, to test a refusal, as
/// a number that has no name.
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
    fn with_timeout(self, timeout: Duration) -> Self;
    fn with_grace(self, grace: Duration) -> Self;
    fn with_stop_signal(self, signal: impl Into<String>) -> Self;
    fn with_placement(self, placement: impl Into<i32>) -> Self;
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
}

impl SpawnRequestExt for SpawnRequest {
    fn with_command_of(mut self, other: SpawnRequest) -> Self {
        self.command = other.command;
        self
    }

    fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.request_id = id.into();
        self
    }

    fn with_session(mut self, id: impl Into<String>) -> Self {
        self.session_id = id.into();
        self
    }

    fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    fn with_kind(mut self, kind: impl Into<i32>) -> Self {
        self.kind = kind.into();
        self
    }

    fn with_parent(mut self, id: impl Into<String>) -> Self {
        self.parent_id = id.into();
        self
    }

    fn with_labels(mut self, labels: impl Pairs) -> Self {
        self.labels = map(labels);
        self
    }

    fn with_working_directory(mut self, path: impl Into<String>) -> Self {
        self.working_directory = path.into();
        self
    }

    fn with_env(mut self, env: impl Pairs) -> Self {
        self.env = map(env);
        self
    }

    fn with_env_remove<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.env_remove = names.into_iter().map(Into::into).collect();
        self
    }

    fn with_env_defaults(mut self, defaults: impl Into<i32>) -> Self {
        self.env_defaults = defaults.into();
        self
    }

    fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn with_grace(mut self, grace: Duration) -> Self {
        policy(&mut self).grace = Some(grace);
        self
    }

    fn with_stop_signal(mut self, signal: impl Into<String>) -> Self {
        policy(&mut self).signal = signal.into();
        self
    }

    fn with_placement(mut self, placement: impl Into<i32>) -> Self {
        self.placement = placement.into();
        self
    }

    fn in_foreground(self) -> Self {
        self.with_placement(Placement::Foreground)
    }

    fn with_foreground_timeout(mut self, timeout: Duration) -> Self {
        self.foreground_timeout = Some(timeout);
        self
    }

    fn with_on_foreground_timeout(mut self, action: impl Into<i32>) -> Self {
        self.on_foreground_timeout = action.into();
        self
    }

    fn with_on_disconnect(mut self, action: impl Into<i32>) -> Self {
        self.on_disconnect = action.into();
        self
    }

    fn with_reattach_window(mut self, window: Duration) -> Self {
        self.reattach_window = Some(window);
        self
    }

    fn with_orphan_policy(mut self, policy: impl Into<i32>) -> Self {
        self.orphan_policy = policy.into();
        self
    }

    fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    fn with_stale_after(mut self, silence: Duration) -> Self {
        self.stale_after = Some(silence);
        self
    }

    fn with_stale_action(mut self, action: impl Into<i32>) -> Self {
        self.stale_action = action.into();
        self
    }

    fn with_exclusive_key(mut self, key: impl Into<String>) -> Self {
        self.exclusive_key = key.into();
        self
    }

    fn with_exclusive_mode(mut self, mode: impl Into<i32>) -> Self {
        self.exclusive_mode = mode.into();
        self
    }

    fn with_queue(mut self, name: impl Into<String>) -> Self {
        self.queue = name.into();
        self
    }
}

fn policy(request: &mut SpawnRequest) -> &mut StopPolicy {
    request.stop_policy.get_or_insert_default()
}
