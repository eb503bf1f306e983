//! What to start, and how.

use std::{path::Path, time::Duration};

use heeler_proto::v1::{
    ArgvCommand, DisconnectAction, EnvDefaults, ExclusiveMode, ForegroundTimeoutAction,
    OrphanPolicy, Placement, ShellCommand, SpawnRequest, StaleAction, StopPolicy, TaskKind,
    spawn_request::Command,
};
use uuid::Uuid;

use crate::time;

/// What to start, and how.
///
/// Each one has a fresh `request_id` from the beginning, so that a lost answer can be asked for
/// again and nothing is started twice; [`Spawn::request_id`] replaces it by the caller's own, which
/// then also holds across crashes of the caller. Spawning a clone gives the same task.
///
/// ```
/// use std::time::Duration;
/// use heeler_client::Spawn;
///
/// let spawn = Spawn::shell("npm run dev")
///     .session("s1")
///     .working_directory("/srv/app")
///     .env("PORT", "3000")
///     .timeout(Duration::from_secs(3600));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Spawn {
    message: SpawnRequest,
}

impl Spawn {
    /// A script, run by `bash` where there is one, else by `/bin/sh`.
    pub fn shell(script: impl Into<String>) -> Self {
        let script = script.into();
        Self::new(Command::Shell(ShellCommand {
            script,
            program: String::new(),
        }))
    }

    /// A program and its arguments, run as they are.
    pub fn argv<S: Into<String>>(args: impl IntoIterator<Item = S>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::new(Command::Argv(ArgvCommand { args }))
    }

    fn new(command: Command) -> Self {
        let message = SpawnRequest {
            request_id: Uuid::now_v7().to_string(),
            command: Some(command),
            ..SpawnRequest::default()
        };
        Self { message }
    }

    /// Which shell runs the script: an absolute path. A program given as arguments has none.
    pub fn shell_program(mut self, path: impl Into<String>) -> Self {
        if let Some(Command::Shell(shell)) = &mut self.message.command {
            shell.program = path.into();
        }
        self
    }

    /// The conversation that the task belongs to.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.message.session_id = id.into();
        self
    }

    /// A name for people.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.message.name = name.into();
        self
    }

    /// Data for the client's own filters.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.message.labels.insert(key.into(), value.into());
        self
    }

    /// A variable of the task's environment.
    pub fn env(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.message.env.insert(key.into(), value.into());
        self
    }

    /// A variable to take out of the environment that the task would otherwise inherit.
    pub fn env_remove(mut self, key: impl Into<String>) -> Self {
        self.message.env_remove.push(key.into());
        self
    }

    /// Whether the task is told by its environment that nobody is looking.
    pub fn env_defaults(mut self, defaults: EnvDefaults) -> Self {
        self.message.env_defaults = defaults.into();
        self
    }

    /// The absolute path to start in. Bytes that are no UTF-8 are replaced, and so will not be found.
    pub fn working_directory(mut self, path: impl AsRef<Path>) -> Self {
        self.message.working_directory = path.as_ref().to_string_lossy().into_owned();
        self
    }

    /// In the foreground: it holds whoever attaches to it, until it is released. See [`Client::run`].
    ///
    /// [`Client::run`]: crate::Client::run
    pub fn foreground(mut self) -> Self {
        self.message.placement = Placement::Foreground.into();
        self
    }

    /// How long it may stay in the foreground: 60 s if not said, `Duration::MAX` for as long as it
    /// takes. Only with [`Spawn::foreground`], as the next three.
    pub fn foreground_timeout(mut self, timeout: Duration) -> Self {
        self.message.foreground_timeout = Some(time::to_proto(timeout));
        self
    }

    /// What happens then: it is detached, if not said.
    pub fn on_foreground_timeout(mut self, action: ForegroundTimeoutAction) -> Self {
        self.message.on_foreground_timeout = action.into();
        self
    }

    /// What happens when nobody holds it any more: it is stopped, if not said.
    pub fn on_disconnect(mut self, action: DisconnectAction) -> Self {
        self.message.on_disconnect = action.into();
        self
    }

    /// How long nobody may hold it before that happens: 10 s if not said.
    pub fn reattach_window(mut self, window: Duration) -> Self {
        self.message.reattach_window = Some(time::to_proto(window));
        self
    }

    /// What happens when the leader exits and others of its tree do not: the task goes on until they
    /// are gone, if not said.
    pub fn orphan_policy(mut self, policy: OrphanPolicy) -> Self {
        self.message.orphan_policy = policy.into();
        self
    }

    /// How long the task may run in the background.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.message.timeout = Some(time::to_proto(timeout));
        self
    }

    /// How long the task may write no output before it is stopped.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.message.idle_timeout = Some(time::to_proto(timeout));
        self
    }

    /// How long the task may write no output before it counts as stale, which an event tells.
    pub fn stale_after(mut self, span: Duration) -> Self {
        self.message.stale_after = Some(time::to_proto(span));
        self
    }

    /// What else happens to a stale task. Only with [`Spawn::stale_after`].
    pub fn stale_action(mut self, action: StaleAction) -> Self {
        self.message.stale_action = action.into();
        self
    }

    /// How long the tree may take to obey the stop signal before it is killed.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.stop_policy().grace = Some(time::to_proto(grace));
        self
    }

    /// The signal to ask with, e.g. `SIGINT`.
    pub fn stop_signal(mut self, name: impl Into<String>) -> Self {
        self.stop_policy().signal = name.into();
        self
    }

    /// The live task that spawns this one.
    pub fn parent(mut self, id: impl Into<String>) -> Self {
        self.message.parent_id = id.into();
        self
    }

    /// What kind of work it is.
    pub fn kind(mut self, kind: TaskKind) -> Self {
        self.message.kind = kind.into();
        self
    }

    /// The queue in which the task waits for its turn: any text up to 256 bytes.
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.message.queue = name.into();
        self
    }

    /// Of the tasks with this key, one lives at a time; `mode` says what happens if another has it.
    pub fn exclusive(mut self, key: impl Into<String>, mode: ExclusiveMode) -> Self {
        self.message.exclusive_key = key.into();
        self.message.exclusive_mode = mode.into();
        self
    }

    /// By what the daemon knows this request again: up to 128 bytes. Empty: it does not, and the
    /// call is repeated only while it cannot have been heard.
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.message.request_id = id.into();
        self
    }

    fn stop_policy(&mut self) -> &mut StopPolicy {
        self.message.stop_policy.get_or_insert_default()
    }
}

impl From<SpawnRequest> for Spawn {
    /// As it is: without a `request_id` of its own it is not safe to repeat.
    fn from(message: SpawnRequest) -> Self {
        Self { message }
    }
}

impl From<Spawn> for SpawnRequest {
    fn from(spawn: Spawn) -> Self {
        spawn.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spawn_has_a_request_id_of_its_own_unless_told() {
        let [first, second] = [Spawn::shell("true"), Spawn::shell("true")].map(SpawnRequest::from);
        assert!(!first.request_id.is_empty());
        assert_ne!(first.request_id, second.request_id);
        assert_eq!(
            SpawnRequest::from(Spawn::shell("true").request_id("r")).request_id,
            "r"
        );
    }

    #[test]
    fn a_spawn_that_says_nothing_of_stopping_leaves_it_to_the_daemon() {
        assert_eq!(SpawnRequest::from(Spawn::shell("true")).stop_policy, None);
        let request = SpawnRequest::from(Spawn::shell("true").grace(Duration::ZERO));
        let grace = request.stop_policy.unwrap().grace;
        assert_eq!(grace, Some(prost_types::Duration::default()));
    }
}
