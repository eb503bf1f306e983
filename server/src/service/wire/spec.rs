//! A TaskSpec, in and out. An option of a task is read and shown here and nowhere else.

mod environment;
mod hosted;
mod output;
mod ready;
mod restart;
mod terminal;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use heeler_proto::v1::{self, task_spec::Command as CommandMessage};
use tonic::Code;

pub(crate) use hosted::register;
pub(crate) use terminal::size as terminal_size;

use super::{check, convert, refusal::Refusal};
use crate::task::{
    Command, DEFAULT_FOREGROUND_TIMEOUT, DEFAULT_GRACE, DEFAULT_REATTACH_WINDOW,
    DEFAULT_SOFT_GRACE, EnvironmentDefaults, Exclusive, ExclusiveMode, Foreground, Kind,
    OnDisconnect, OnForegroundTimeout, OnStale, OrphanPolicy, Rights, Silence, SpawnRequest, Spec,
    StopPolicy, TaskId,
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
    let terminal = message.terminal.map(terminal::read).transpose()?;
    let defaults = match terminal {
        Some(_) => EnvironmentDefaults::None,
        None => EnvironmentDefaults::default(),
    };
    let environment = message.environment.unwrap_or_default();
    let (environment, variables) = environment::read(environment, defaults)?;
    let queue = check::optional_text("spec.queue", message.queue, check::SHORT_TEXT)?;
    let exclusive = message.exclusive.map(exclusive).transpose()?;
    if let (Some(_), Some(ExclusiveMode::Replace)) = (&queue, exclusive.as_ref().map(|e| e.mode)) {
        return Err(Refusal::field(
            "spec.exclusive.mode",
            "cannot be REPLACE together with spec.queue",
        ));
    }
    let directory = check::optional_path("spec.working_directory", message.working_directory)?;
    let has_foreground = message.foreground.is_some();
    let has_input = message.input.is_some() || terminal.is_some();
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
        output: output::read(message.output.unwrap_or_default())?,
        input: message.input.map(ready::read_input).transpose()?,
        terminal,
        ready: message.ready.map(ready::read).transpose()?,
        restart: match message.restart {
            Some(_) if has_foreground => {
                let problem = "cannot be combined with spec.foreground";
                return Err(Refusal::field("spec.restart", problem));
            }
            Some(_) if has_input => {
                let problem = "cannot be combined with spec.input or spec.terminal";
                return Err(Refusal::field("spec.restart", problem));
            }
            Some(policy) => Some(restart::read(policy)?),
            None => None,
        },
        rights: rights(check::enumerated("spec.rights", message.rights)?),
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
        environment: has_processes.then(|| environment::show(&spec.environment)),
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
        output: has_processes.then(|| output::show(&spec.output)),
        input: spec.input.map(ready::show_input),
        terminal: spec.terminal.as_ref().map(terminal::show),
        ready: spec.ready.as_ref().map(ready::show),
        restart: spec.restart.as_ref().map(restart::show),
        rights: match has_processes {
            true => show_rights(spec.rights),
            false => v1::TaskRights::Unspecified,
        }
        .into(),
    }
}

pub(super) fn show_kind(kind: Kind) -> v1::TaskKind {
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

fn rights(rights: v1::TaskRights) -> Rights {
    match rights {
        v1::TaskRights::Unspecified | v1::TaskRights::Children => Rights::Children,
        v1::TaskRights::Report => Rights::Report,
        v1::TaskRights::None => Rights::None,
        v1::TaskRights::All => Rights::All,
    }
}

fn show_rights(rights: Rights) -> v1::TaskRights {
    match rights {
        Rights::None => v1::TaskRights::None,
        Rights::Report => v1::TaskRights::Report,
        Rights::Children => v1::TaskRights::Children,
        Rights::All => v1::TaskRights::All,
    }
}

/// The name of rights in the metadata of a refusal.
pub(super) fn rights_name(rights: Rights) -> &'static str {
    let name = show_rights(rights).as_str_name();
    name.strip_prefix("TASK_RIGHTS_").unwrap_or(name)
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
