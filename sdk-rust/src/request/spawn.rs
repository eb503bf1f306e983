//! The task to start.

mod input;
mod ready;
mod restart;

use std::{path::Path, time::Duration};

use heeler_proto::v1::{
    ArgvCommand, DisconnectAction, EnvironmentDefaults, ExclusiveMode, ExclusivePolicy,
    ForegroundPolicy, ForegroundTimeoutAction, OrphanPolicy, OutputLimitAction, OutputPattern,
    OutputPolicy, ShellCommand, SilencePolicy, SpawnRequest, StaleAction, StopPolicy,
    TaskEnvironment, TaskKind, TaskRights, TaskSpec, task_spec::Command,
};
use uuid::Uuid;

use crate::time;

/// The task to start.
///
/// Each has a fresh `request_id`, so that a lost answer can be asked for again and nothing is started
/// twice. [`Spawn::request_id`] replaces it by the caller's own, which then also holds across crashes
/// of the caller. Spawning a clone returns the same task.
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
    request_id: String,
    spec: TaskSpec,
}

impl Spawn {
    /// A script, run by `bash` if there is one, else by `/bin/sh`.
    pub fn shell(script: impl Into<String>) -> Self {
        let script = script.into();
        Self::new(Command::Shell(ShellCommand {
            script,
            program: String::new(),
        }))
    }

    /// A program and its arguments, run without a shell.
    pub fn argv<S: Into<String>>(args: impl IntoIterator<Item = S>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::new(Command::Argv(ArgvCommand { args }))
    }

    fn new(command: Command) -> Self {
        Self::from(TaskSpec {
            command: Some(command),
            ..TaskSpec::default()
        })
    }

    /// The absolute path of the shell that runs the script. No effect on [`Spawn::argv`].
    pub fn shell_program(mut self, path: impl Into<String>) -> Self {
        if let Some(Command::Shell(shell)) = &mut self.spec.command {
            shell.program = path.into();
        }
        self
    }

    /// The conversation that the task belongs to.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.spec.session_id = id.into();
        self
    }

    /// A name for people.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// Data for the client's own filters.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.spec.labels.insert(key.into(), value.into());
        self
    }

    /// An environment variable to set.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let variables = &mut self.environment().variables;
        variables.insert(name.into(), value.into());
        self
    }

    /// An environment variable to remove.
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.environment().remove.push(name.into());
        self
    }

    /// The default variables: NON_INTERACTIVE unless set, NONE for a task with a terminal.
    pub fn env_defaults(mut self, defaults: EnvironmentDefaults) -> Self {
        self.environment().defaults = defaults.into();
        self
    }

    /// The absolute path of the directory to start in. Bytes that are not UTF-8 are replaced, so such a
    /// directory is not found.
    pub fn working_directory(mut self, path: impl AsRef<Path>) -> Self {
        self.spec.working_directory = path.as_ref().to_string_lossy().into_owned();
        self
    }

    /// Starts the task in the foreground: a client attaches to it and waits. See [`Client::run`].
    ///
    /// [`Client::run`]: crate::Client::run
    pub fn foreground(mut self) -> Self {
        self.foreground_policy();
        self
    }

    /// Starts in the foreground, for at most this long: 60 s unless set, `Duration::MAX` for no limit.
    pub fn foreground_timeout(mut self, timeout: Duration) -> Self {
        self.foreground_policy().timeout = Some(time::to_proto(timeout));
        self
    }

    /// Starts in the foreground, with this action when that time is over: DETACH unless set.
    pub fn on_foreground_timeout(mut self, action: ForegroundTimeoutAction) -> Self {
        self.foreground_policy().on_timeout = action.into();
        self
    }

    /// Starts in the foreground, with this action when the last attached client disconnects: CANCEL
    /// unless set.
    pub fn on_disconnect(mut self, action: DisconnectAction) -> Self {
        self.foreground_policy().on_disconnect = action.into();
        self
    }

    /// Starts in the foreground, with this time to attach first or again: 10 s unless set.
    pub fn reattach_window(mut self, window: Duration) -> Self {
        self.foreground_policy().reattach_window = Some(time::to_proto(window));
        self
    }

    /// Treatment of processes that outlive the leader: TRACK unless set.
    pub fn orphan_policy(mut self, policy: OrphanPolicy) -> Self {
        self.spec.orphan_policy = policy.into();
        self
    }

    /// The calls that processes of the task may make: CHILDREN unless set.
    pub fn rights(mut self, rights: TaskRights) -> Self {
        self.spec.rights = rights.into();
        self
    }

    /// Maximum time in the background.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = Some(time::to_proto(timeout));
        self
    }

    /// Maximum time without output or activity of a worker, after which the task is stopped.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.spec.idle_timeout = Some(time::to_proto(timeout));
        self
    }

    /// Time without output or activity of a worker after which the task is stale, which an event announces.
    pub fn stale_after(mut self, span: Duration) -> Self {
        self.silence().stale_after = Some(time::to_proto(span));
        self
    }

    /// Action when the task becomes stale, besides the event. Needs [`Spawn::stale_after`].
    pub fn on_stale(mut self, action: StaleAction) -> Self {
        self.silence().on_stale = action.into();
        self
    }

    /// Time between the stop signal and the kill: 5 s unless set.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.stop_policy().grace = Some(time::to_proto(grace));
        self
    }

    /// Time before the stop signal for a worker that listens to finish its present tool call: 10 s unless
    /// set.
    pub fn soft_grace(mut self, grace: Duration) -> Self {
        self.stop_policy().soft_grace = Some(time::to_proto(grace));
        self
    }

    /// Name of the stop signal, such as `SIGINT`: SIGTERM unless set.
    pub fn stop_signal(mut self, name: impl Into<String>) -> Self {
        self.stop_policy().signal = name.into();
        self
    }

    /// The live task that spawns this one.
    pub fn parent(mut self, id: impl Into<String>) -> Self {
        self.spec.parent_id = id.into();
        self
    }

    /// The kind of work: SHELL unless set.
    pub fn kind(mut self, kind: TaskKind) -> Self {
        self.spec.kind = kind.into();
        self
    }

    /// The queue in which the task waits for a slot: any text up to 256 bytes.
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.spec.queue = name.into();
        self
    }

    /// A key that only one live task has at a time, and the behaviour if it has a holder.
    pub fn exclusive(mut self, key: impl Into<String>, mode: ExclusiveMode) -> Self {
        self.spec.exclusive = Some(ExclusivePolicy {
            key: key.into(),
            mode: mode.into(),
        });
        self
    }

    /// The most disk space for the output, in bytes: 64 MiB unless set, 256 KiB at least.
    pub fn max_output(mut self, bytes: u64) -> Self {
        self.output_policy().max_bytes = bytes;
        self
    }

    /// Bytes of output that are kept from the beginning when the rest rotates: 1 MiB unless set.
    pub fn output_head(mut self, bytes: u64) -> Self {
        self.output_policy().head_bytes = Some(bytes);
        self
    }

    /// Action when the output reaches its limit: ROTATE unless set.
    pub fn on_output_limit(mut self, action: OutputLimitAction) -> Self {
        self.output_policy().on_limit = action.into();
        self
    }

    /// A pattern to look for in the output, which MATCHED events tell of. Several calls add up.
    pub fn pattern(mut self, pattern: OutputPattern) -> Self {
        self.output_policy().patterns.push(pattern);
        self
    }

    /// Makes the call safe to repeat: up to 128 bytes. Empty: the call is repeated only if the daemon
    /// cannot have received it.
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.request_id = id.into();
        self
    }

    fn environment(&mut self) -> &mut TaskEnvironment {
        self.spec.environment.get_or_insert_default()
    }

    fn foreground_policy(&mut self) -> &mut ForegroundPolicy {
        self.spec.foreground.get_or_insert_default()
    }

    fn output_policy(&mut self) -> &mut OutputPolicy {
        self.spec.output.get_or_insert_default()
    }

    fn silence(&mut self) -> &mut SilencePolicy {
        self.spec.silence.get_or_insert_default()
    }

    fn stop_policy(&mut self) -> &mut StopPolicy {
        self.spec.stop.get_or_insert_default()
    }
}

impl From<TaskSpec> for Spawn {
    /// A task with this specification, and a fresh `request_id`.
    fn from(spec: TaskSpec) -> Self {
        let request_id = Uuid::now_v7().to_string();
        Self { request_id, spec }
    }
}

impl From<Spawn> for SpawnRequest {
    fn from(spawn: Spawn) -> Self {
        Self {
            request_id: spawn.request_id,
            spec: Some(spawn.spec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(spawn: Spawn) -> TaskSpec {
        SpawnRequest::from(spawn).spec.unwrap()
    }

    #[test]
    fn each_spawn_has_its_own_request_id_unless_set() {
        let [first, second] = [Spawn::shell("true"), Spawn::shell("true")].map(SpawnRequest::from);
        assert!(!first.request_id.is_empty());
        assert_ne!(first.request_id, second.request_id);
        let chosen = SpawnRequest::from(Spawn::shell("true").request_id("r"));
        assert_eq!(chosen.request_id, "r");
    }

    #[test]
    fn a_group_is_absent_until_one_of_its_options_is_set() {
        let plain = spec(Spawn::shell("true"));
        assert_eq!(plain.stop, None);
        assert_eq!(plain.foreground, None);
        assert_eq!(plain.silence, None);
        assert_eq!(plain.environment, None);
        let grace = spec(Spawn::shell("true").grace(Duration::ZERO))
            .stop
            .unwrap()
            .grace;
        assert_eq!(grace, Some(prost_types::Duration::default()));
        let waits = Spawn::shell("true").on_disconnect(DisconnectAction::Keep);
        assert!(spec(waits).foreground.is_some());
    }
}
