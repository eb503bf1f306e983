//! A TaskSpec, in and out. An option of a task is read and shown here and nowhere else.

mod hosted;
mod ready;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use heeler_proto::v1::{self, task_spec::Command as CommandMessage};
use tonic::Code;

pub(crate) use hosted::register;

use super::{check, convert, pattern, refusal::Refusal};
use crate::{
    supervisor::RESERVED_PREFIX,
    task::{
        Command, DEFAULT_FOREGROUND_TIMEOUT, DEFAULT_GRACE, DEFAULT_REATTACH_WINDOW,
        DEFAULT_SOFT_GRACE, Environment, EnvironmentDefaults, Exclusive, ExclusiveMode, Foreground,
        Kind, OnDisconnect, OnForegroundTimeout, OnOutputLimit, OnStale, OrphanPolicy,
        OutputPolicy, Silence, SpawnRequest, Spec, StopPolicy, TaskId,
    },
};

/// Maximum length of a request id.
const REQUEST_ID: usize = 128;
/// The kernel's limit on one argument or variable.
const ARGUMENT: usize = 128 * 1024 - 1;
/// Maximum number of arguments.
const ARGUMENTS: usize = 4096;

/// Reads a request of Spawn.
pub(crate) fn request(request: v1::SpawnRequest) -> Result<SpawnRequest, Refusal> {
    let Some(mut message) = request.spec else {
        return Err(Refusal::field(
            "spec",
            "is required: the options of a task are fields of spec, not of the request itself",
        ));
    };
    let kind = match check::enumerated("spec.kind", message.kind)? {
        v1::TaskKind::Unspecified | v1::TaskKind::Shell => Kind::Shell,
        v1::TaskKind::Agent => Kind::Agent,
        v1::TaskKind::Hosted => {
            let problem = "is HOSTED: a worker registers such a task through Work";
            return Err(Refusal::field("spec.kind", problem));
        }
    };
    let command = command(message.command.take())?;
    read(request.request_id, message, kind, command)
}

/// Reads a request to do this work.
fn read(
    request_id: String,
    message: v1::TaskSpec,
    kind: Kind,
    command: Command,
) -> Result<SpawnRequest, Refusal> {
    let request_id = check::optional_text("request_id", request_id, REQUEST_ID)?;
    let (environment, variables) = environment(message.environment.unwrap_or_default())?;
    let queue = check::optional_text("spec.queue", message.queue, check::SHORT_TEXT)?;
    let exclusive = message.exclusive.map(exclusive).transpose()?;
    if let (Some(_), Some(ExclusiveMode::Replace)) = (&queue, exclusive.as_ref().map(|e| e.mode)) {
        return Err(Refusal::field(
            "spec.exclusive.mode",
            "cannot be REPLACE together with spec.queue",
        ));
    }
    let directory = check::optional_path("spec.working_directory", message.working_directory)?;
    let spec = Spec {
        kind,
        name: check::text("spec.name", message.name, check::LONG_TEXT)?,
        session_id: check::text("spec.session_id", message.session_id, check::SHORT_TEXT)?,
        parent: parent(&message.parent_id)?,
        labels: check::labels("spec.labels", message.labels)?,
        command,
        working_directory: directory.unwrap_or_default(),
        environment,
        timeout: check::timeout("spec.timeout", message.timeout)?,
        idle_timeout: check::timeout("spec.idle_timeout", message.idle_timeout)?,
        stop: stop_policy(message.stop.unwrap_or_default())?,
        foreground: message.foreground.map(foreground).transpose()?,
        silence: message.silence.map(silence).transpose()?,
        exclusive,
        queue,
        orphan_policy: orphan_policy(check::enumerated(
            "spec.orphan_policy",
            message.orphan_policy,
        )?),
        output: output(message.output.unwrap_or_default())?,
        input: message.input.map(ready::read_input).transpose()?,
        ready: message.ready.map(ready::read).transpose()?,
        had_ampersand: false,
    };
    Ok(SpawnRequest {
        request_id,
        spec,
        variables,
    })
}

/// Shows a task's specification. A hosted task has no options that concern processes.
pub(crate) fn show(spec: &Spec) -> v1::TaskSpec {
    let has_processes = spec.kind != Kind::Hosted;
    let parent = spec.parent.as_ref().map(TaskId::to_string);
    v1::TaskSpec {
        kind: show_kind(spec.kind).into(),
        name: spec.name.clone(),
        session_id: spec.session_id.clone(),
        parent_id: parent.unwrap_or_default(),
        labels: spec.labels.clone(),
        command: show_command(&spec.command),
        working_directory: spec.working_directory.display().to_string(),
        environment: has_processes.then(|| show_environment(&spec.environment)),
        timeout: spec.timeout.map(convert::duration),
        idle_timeout: spec.idle_timeout.map(convert::duration),
        stop: Some(v1::StopPolicy {
            grace: Some(convert::duration(spec.stop.grace)),
            signal: match has_processes {
                true => convert::signal(spec.stop.signal),
                false => String::new(),
            },
            soft_grace: Some(convert::duration(spec.stop.soft_grace)),
        }),
        foreground: spec.foreground.as_ref().map(show_foreground),
        silence: spec.silence.as_ref().map(show_silence),
        exclusive: spec.exclusive.as_ref().map(show_exclusive),
        queue: spec.queue.clone().unwrap_or_default(),
        orphan_policy: match has_processes {
            true => show_orphan_policy(spec.orphan_policy),
            false => v1::OrphanPolicy::Unspecified,
        }
        .into(),
        output: has_processes.then(|| show_output(&spec.output)),
        input: spec.input.map(ready::show_input),
        ready: spec.ready.as_ref().map(ready::show),
    }
}

fn show_kind(kind: Kind) -> v1::TaskKind {
    match kind {
        Kind::Shell => v1::TaskKind::Shell,
        Kind::Agent => v1::TaskKind::Agent,
        Kind::Hosted => v1::TaskKind::Hosted,
    }
}

/// A malformed id is that of no task, and so of no live parent.
fn parent(id: &str) -> Result<Option<TaskId>, Refusal> {
    if id.is_empty() {
        return Ok(None);
    }
    id.parse().map(Some).map_err(|_| {
        let shown = Refusal::shown(id);
        let message = format!("there is no parent task {shown}");
        let reason = v1::ErrorReason::ParentNotLive;
        Refusal::new(Code::FailedPrecondition, reason, message).with("parent_id", shown)
    })
}

fn command(command: Option<CommandMessage>) -> Result<Command, Refusal> {
    match command {
        None => Err(Refusal::field(
            "spec.command",
            "is required: set spec.argv or spec.shell",
        )),
        Some(CommandMessage::Argv(argv)) => {
            arguments("spec.argv.args", argv.args).map(Command::Argv)
        }
        Some(CommandMessage::Shell(shell)) => {
            if shell.script.trim().is_empty() {
                return Err(Refusal::field("spec.shell.script", "is empty"));
            }
            Ok(Command::Shell {
                script: check::os_text("spec.shell.script", shell.script, ARGUMENT)?,
                program: check::optional_path("spec.shell.program", shell.program)?,
            })
        }
    }
}

/// A program and its arguments.
fn arguments(field: &str, args: Vec<String>) -> Result<Vec<String>, Refusal> {
    if args.is_empty() {
        return Err(Refusal::field(field, "is empty"));
    }
    if args.len() > ARGUMENTS {
        let problem = format_args!("has more than {ARGUMENTS} arguments");
        return Err(Refusal::field(field, problem));
    }
    if args[0].is_empty() {
        let field = format!("{field}[0]");
        return Err(Refusal::field(field, "is empty: it names the program"));
    }
    let checked = args
        .into_iter()
        .enumerate()
        .map(|(at, arg)| check::os_text(&format!("{field}[{at}]"), arg, ARGUMENT));
    checked.collect()
}

fn show_command(command: &Command) -> Option<CommandMessage> {
    match command {
        Command::Argv(args) => {
            let args = args.clone();
            Some(CommandMessage::Argv(v1::ArgvCommand { args }))
        }
        Command::Shell { script, program } => {
            let program = program.as_ref().map(|path| path.display().to_string());
            Some(CommandMessage::Shell(v1::ShellCommand {
                script: script.clone(),
                program: program.unwrap_or_default(),
            }))
        }
        Command::Hosted { .. } => None,
    }
}

/// The environment without values, and the values by name.
fn environment(
    message: v1::TaskEnvironment,
) -> Result<(Environment, BTreeMap<String, String>), Refusal> {
    if !message.variable_names.is_empty() {
        return Err(Refusal::field(
            "spec.environment.variable_names",
            "is output only: set spec.environment.variables",
        ));
    }
    for (name, value) in &message.variables {
        let field = check::entry("spec.environment.variables", name);
        variable(&field, name)?;
        let limit = ARGUMENT - name.len().min(ARGUMENT - 1) - 1;
        check::os_text(&field, value.clone(), limit)?;
    }
    for (at, name) in message.remove.iter().enumerate() {
        variable(&format!("spec.environment.remove[{at}]"), name)?;
    }
    let defaults = match check::enumerated("spec.environment.defaults", message.defaults)? {
        v1::EnvironmentDefaults::Unspecified | v1::EnvironmentDefaults::NonInteractive => {
            EnvironmentDefaults::NonInteractive
        }
        v1::EnvironmentDefaults::None => EnvironmentDefaults::None,
    };
    let environment = Environment {
        remove: message.remove,
        defaults,
        variable_names: message.variables.keys().cloned().collect(),
    };
    Ok((environment, message.variables))
}

fn variable(field: &str, name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.contains(['=', '\0']) || name.len() > check::LONG_TEXT {
        return Err(Refusal::field(field, "is not a valid variable name"));
    }
    match name.starts_with(RESERVED_PREFIX) {
        true => Err(Refusal::field(
            field,
            "is reserved: variables that begin with HEELER_ are set by Heeler",
        )),
        false => Ok(()),
    }
}

fn show_environment(environment: &Environment) -> v1::TaskEnvironment {
    v1::TaskEnvironment {
        variables: BTreeMap::new(),
        remove: environment.remove.clone(),
        defaults: match environment.defaults {
            EnvironmentDefaults::NonInteractive => v1::EnvironmentDefaults::NonInteractive,
            EnvironmentDefaults::None => v1::EnvironmentDefaults::None,
        }
        .into(),
        variable_names: environment.variable_names.clone(),
    }
}

fn stop_policy(policy: v1::StopPolicy) -> Result<StopPolicy, Refusal> {
    let grace = check::optional_duration("spec.stop.grace", policy.grace)?;
    let signal = check::signal("spec.stop.signal", &policy.signal)?;
    let soft_grace = check::optional_duration("spec.stop.soft_grace", policy.soft_grace)?;
    Ok(StopPolicy {
        grace: grace.unwrap_or(DEFAULT_GRACE),
        signal: signal.unwrap_or(StopPolicy::default().signal),
        soft_grace: soft_grace.unwrap_or(DEFAULT_SOFT_GRACE),
    })
}

fn foreground(policy: v1::ForegroundPolicy) -> Result<Foreground, Refusal> {
    let timeout = check::timeout("spec.foreground.timeout", policy.timeout)?;
    let on_timeout = check::enumerated("spec.foreground.on_timeout", policy.on_timeout)?;
    let on_disconnect = check::enumerated("spec.foreground.on_disconnect", policy.on_disconnect)?;
    let on_disconnect = match on_disconnect {
        v1::DisconnectAction::Unspecified | v1::DisconnectAction::Cancel => OnDisconnect::Cancel,
        v1::DisconnectAction::Detach => OnDisconnect::Detach,
        v1::DisconnectAction::Keep => OnDisconnect::Keep,
    };
    Ok(Foreground {
        timeout: timeout.unwrap_or(DEFAULT_FOREGROUND_TIMEOUT),
        on_timeout: match on_timeout {
            v1::ForegroundTimeoutAction::Unspecified | v1::ForegroundTimeoutAction::Detach => {
                OnForegroundTimeout::Detach
            }
            v1::ForegroundTimeoutAction::Cancel => OnForegroundTimeout::Cancel,
        },
        on_disconnect,
        reattach_window: reattach_window(policy.reattach_window, on_disconnect)?,
    })
}

fn reattach_window(
    window: Option<prost_types::Duration>,
    on_disconnect: OnDisconnect,
) -> Result<Duration, Refusal> {
    const FIELD: &str = "spec.foreground.reattach_window";
    let window = check::optional_duration(FIELD, window)?.unwrap_or(DEFAULT_REATTACH_WINDOW);
    match on_disconnect {
        OnDisconnect::Cancel | OnDisconnect::Detach if window.is_zero() => Err(Refusal::field(
            FIELD,
            "is zero: no client could attach in time",
        )),
        OnDisconnect::Cancel | OnDisconnect::Detach | OnDisconnect::Keep => Ok(window),
    }
}

fn show_foreground(foreground: &Foreground) -> v1::ForegroundPolicy {
    v1::ForegroundPolicy {
        timeout: Some(convert::duration(foreground.timeout)),
        on_timeout: match foreground.on_timeout {
            OnForegroundTimeout::Detach => v1::ForegroundTimeoutAction::Detach,
            OnForegroundTimeout::Cancel => v1::ForegroundTimeoutAction::Cancel,
        }
        .into(),
        on_disconnect: match foreground.on_disconnect {
            OnDisconnect::Cancel => v1::DisconnectAction::Cancel,
            OnDisconnect::Detach => v1::DisconnectAction::Detach,
            OnDisconnect::Keep => v1::DisconnectAction::Keep,
        }
        .into(),
        reattach_window: Some(convert::duration(foreground.reattach_window)),
    }
}

fn silence(policy: v1::SilencePolicy) -> Result<Silence, Refusal> {
    const FIELD: &str = "spec.silence.stale_after";
    let stale_after = check::timeout(FIELD, policy.stale_after)?;
    let on_stale = check::enumerated("spec.silence.on_stale", policy.on_stale)?;
    Ok(Silence {
        stale_after: stale_after.ok_or_else(|| Refusal::field(FIELD, "is required"))?,
        on_stale: match on_stale {
            v1::StaleAction::Unspecified | v1::StaleAction::Notify => OnStale::Notify,
            v1::StaleAction::Cancel => OnStale::Cancel,
        },
    })
}

fn show_silence(silence: &Silence) -> v1::SilencePolicy {
    v1::SilencePolicy {
        stale_after: Some(convert::duration(silence.stale_after)),
        on_stale: match silence.on_stale {
            OnStale::Notify => v1::StaleAction::Notify,
            OnStale::Cancel => v1::StaleAction::Cancel,
        }
        .into(),
    }
}

fn exclusive(policy: v1::ExclusivePolicy) -> Result<Exclusive, Refusal> {
    const FIELD: &str = "spec.exclusive.key";
    let key = check::optional_text(FIELD, policy.key, check::SHORT_TEXT)?;
    let mode = check::enumerated("spec.exclusive.mode", policy.mode)?;
    Ok(Exclusive {
        key: key.ok_or_else(|| Refusal::field(FIELD, "is required"))?,
        mode: match mode {
            v1::ExclusiveMode::Unspecified | v1::ExclusiveMode::Reject => ExclusiveMode::Reject,
            v1::ExclusiveMode::Replace => ExclusiveMode::Replace,
            v1::ExclusiveMode::Queue => ExclusiveMode::Queue,
            v1::ExclusiveMode::Ensure => ExclusiveMode::Ensure,
        },
        variables: BTreeMap::new(),
    })
}

fn show_exclusive(exclusive: &Exclusive) -> v1::ExclusivePolicy {
    v1::ExclusivePolicy {
        key: exclusive.key.clone(),
        mode: match exclusive.mode {
            ExclusiveMode::Reject => v1::ExclusiveMode::Reject,
            ExclusiveMode::Replace => v1::ExclusiveMode::Replace,
            ExclusiveMode::Queue => v1::ExclusiveMode::Queue,
            ExclusiveMode::Ensure => v1::ExclusiveMode::Ensure,
        }
        .into(),
    }
}

fn orphan_policy(policy: v1::OrphanPolicy) -> OrphanPolicy {
    match policy {
        v1::OrphanPolicy::Unspecified | v1::OrphanPolicy::Track => OrphanPolicy::Track,
        v1::OrphanPolicy::Kill => OrphanPolicy::Kill,
        v1::OrphanPolicy::Abandon => OrphanPolicy::Abandon,
    }
}

fn show_orphan_policy(policy: OrphanPolicy) -> v1::OrphanPolicy {
    match policy {
        OrphanPolicy::Track => v1::OrphanPolicy::Track,
        OrphanPolicy::Kill => v1::OrphanPolicy::Kill,
        OrphanPolicy::Abandon => v1::OrphanPolicy::Abandon,
    }
}

fn output(policy: v1::OutputPolicy) -> Result<OutputPolicy, Refusal> {
    let on_limit = check::enumerated("spec.output.on_limit", policy.on_limit)?;
    let by_default = match policy.max_bytes {
        0 => OutputPolicy::default(),
        bytes @ ..OutputPolicy::MIN_MAX_BYTES => {
            let problem = format_args!("is {bytes}, less than 256 KiB");
            return Err(Refusal::field("spec.output.max_bytes", problem));
        }
        bytes => OutputPolicy::with_limit(bytes),
    };
    let head_bytes = policy.head_bytes.unwrap_or(by_default.head_bytes);
    if head_bytes > by_default.max_bytes - OutputPolicy::MIN_TAIL_BYTES {
        return Err(Refusal::field(
            "spec.output.head_bytes",
            "leaves less than 192 KiB of max_bytes for the latest output",
        ));
    }
    Ok(OutputPolicy {
        max_bytes: by_default.max_bytes,
        head_bytes,
        on_limit: match on_limit {
            v1::OutputLimitAction::Unspecified | v1::OutputLimitAction::Rotate => {
                OnOutputLimit::Rotate
            }
            v1::OutputLimitAction::Truncate => OnOutputLimit::Truncate,
            v1::OutputLimitAction::Kill => OnOutputLimit::Kill,
        },
        patterns: pattern::read_all("spec.output.patterns", policy.patterns)?,
    })
}

fn show_output(policy: &OutputPolicy) -> v1::OutputPolicy {
    v1::OutputPolicy {
        max_bytes: policy.max_bytes,
        head_bytes: Some(policy.head_bytes),
        on_limit: match policy.on_limit {
            OnOutputLimit::Rotate => v1::OutputLimitAction::Rotate,
            OnOutputLimit::Truncate => v1::OutputLimitAction::Truncate,
            OnOutputLimit::Kill => v1::OutputLimitAction::Kill,
        }
        .into(),
        patterns: policy.patterns.iter().map(pattern::show).collect(),
    }
}
