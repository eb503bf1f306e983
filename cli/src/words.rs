//! The contract's facts in words for people. No text here is trusted: what comes from a task is made
//! harmless by whoever prints it.

use heeler_client::{
    time,
    v1::{
        Actor, ArgvCommand, BackgroundTask, DetachCause, Detachment, EndReason, Outcome, Placement,
        ProcessInfo, Proof, ProofMethod, SessionActivity, ShellCommand, StopRecord, TaskEventType,
        TaskState, background_task::Command, outcome::Result as Ended,
    },
};
use prost_types::Timestamp;

use crate::duration;

/// `RUNNING`, `TIMED_OUT` and so on.
pub(crate) fn state(task: &BackgroundTask) -> &'static str {
    let name = task.state().as_str_name();
    name.strip_prefix("TASK_STATE_").unwrap_or(name)
}

/// `STARTED`, `ENDED` and so on.
pub(crate) fn event_type(kind: TaskEventType) -> &'static str {
    let name = kind.as_str_name();
    name.strip_prefix("TASK_EVENT_TYPE_").unwrap_or(name)
}

/// How many tasks of a session are live, such as `s1: 1 agent, 2 shells`.
pub(crate) fn activity(activity: &SessionActivity) -> String {
    let counts = [
        (activity.agents, "agent"),
        (activity.shells, "shell"),
        (activity.hosted, "hosted task"),
    ];
    let some = counts.iter().filter(|(count, _)| *count > 0);
    let named = some.map(|(count, name)| match count {
        1 => format!("1 {name}"),
        _ => format!("{count} {name}s"),
    });
    let named: Vec<String> = named.collect();
    let live = match named.is_empty() {
        true => "none".to_owned(),
        false => named.join(", "),
    };
    format!("{}: {live}", activity.session_id)
}

/// Whether it is over.
pub(crate) fn is_over(task: &BackgroundTask) -> bool {
    match task.state() {
        TaskState::Completed
        | TaskState::Failed
        | TaskState::Cancelled
        | TaskState::TimedOut
        | TaskState::Lost => true,
        TaskState::Unspecified
        | TaskState::Queued
        | TaskState::Starting
        | TaskState::Running
        | TaskState::Stopping => false,
    }
}

/// How the leader ended, in a word: the exit code, the signal, or why there is none.
pub(crate) fn exit(task: &BackgroundTask) -> String {
    match ended(task) {
        Some(Ended::ExitCode(code)) => code.to_string(),
        Some(Ended::Signal(signal)) => signal.name.clone(),
        Some(Ended::SpawnError(_)) => "no start".to_owned(),
        Some(Ended::Unknown(_)) => "unknown".to_owned(),
        None => String::new(),
    }
}

/// How the leader ended, in a clause.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    match &outcome.result {
        Some(Ended::ExitCode(code)) => format!("exit code {code}"),
        Some(Ended::Signal(signal)) if signal.core_dumped => {
            format!("ended by {}, core dumped", signal.name)
        }
        Some(Ended::Signal(signal)) => format!("ended by {}", signal.name),
        Some(Ended::SpawnError(error)) => {
            format!("never ran: {}: {}", error.operation, error.message)
        }
        Some(Ended::Unknown(unknown)) if unknown.detail.is_empty() => {
            "nobody saw how it ended".to_owned()
        }
        Some(Ended::Unknown(unknown)) => format!("nobody saw how it ended: {}", unknown.detail),
        None => "not known to this version".to_owned(),
    }
}

/// The task's end as its own exit code would tell it: 128+n for signal n. None if it has none.
pub(crate) fn exit_code(task: &BackgroundTask) -> Option<u8> {
    match ended(task)? {
        Ended::ExitCode(code) => u8::try_from(*code & 0xff).ok(),
        Ended::Signal(signal) => u8::try_from(128 + (signal.number & 0x7f)).ok(),
        Ended::SpawnError(_) | Ended::Unknown(_) => None,
    }
}

fn ended(task: &BackgroundTask) -> Option<&Ended> {
    task.outcome.as_ref()?.result.as_ref()
}

/// The state, and how the leader ended where it has.
pub(crate) fn state_and_outcome(task: &BackgroundTask) -> String {
    match &task.outcome {
        Some(it) => format!("{}, {}", state(task), outcome(it)),
        None => state(task).to_owned(),
    }
}

/// What a glance at a live task should show beyond its state.
pub(crate) fn note(task: &BackgroundTask) -> String {
    if is_over(task) {
        return String::new();
    }
    let mut notes = Vec::new();
    if task.placement() == Placement::Foreground {
        notes.push("fg".to_owned());
    }
    if task.stale {
        notes.push("stale".to_owned());
    }
    if !task.queue.is_empty() {
        notes.push(format!("q:{}", task.queue));
    }
    if task.state() == TaskState::Queued && !task.exclusive_key.is_empty() {
        notes.push(format!("k:{}", task.exclusive_key));
    }
    notes.join(" ")
}

/// How long a task may be silent before it is stale, which it is.
pub(crate) fn silence(task: &BackgroundTask) -> String {
    let span = task.stale_after.map(time::from_proto);
    span.map(|span| format!("silent for {}", duration::precise(span)))
        .unwrap_or_default()
}

/// What a task waits for, or has waited for.
pub(crate) fn waited(task: &BackgroundTask) -> String {
    let mut waits = Vec::new();
    if !task.queue.is_empty() {
        waits.push(format!("queue {}", task.queue));
    }
    if !task.exclusive_key.is_empty() {
        waits.push(format!("key {}", task.exclusive_key));
    }
    waits.join(", ")
}

/// Why a task is over, or what asked it to stop.
pub(crate) fn reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Unspecified => "not known to this version",
        EndReason::Exited => "it exited by itself",
        EndReason::Signalled => "a signal from elsewhere",
        EndReason::SpawnFailed => "it never ran",
        EndReason::Cancelled => "a cancel",
        EndReason::Replaced => "another task took its key",
        EndReason::Deadline => "its timeout",
        EndReason::IdleDeadline => "it was silent for too long",
        EndReason::OutputLimit => "it wrote too much",
        EndReason::OutOfMemory => "the kernel, for want of memory",
        EndReason::ClientDisconnected => "its holder went away",
        EndReason::SessionEnded => "its session ended",
        EndReason::ServerShutdown => "the daemon stopped its tasks",
        EndReason::HostGone => "its host went away",
        EndReason::SupervisionLost => "its supervision broke",
    }
}

/// Who asked for a stop, and why.
pub(crate) fn asked(stop: &StopRecord) -> String {
    by(reason(stop.cause()), stop.actor.as_ref(), &stop.reason)
}

/// How a task came from the foreground into the background.
pub(crate) fn detached(detachment: &Detachment) -> String {
    let cause = match detachment.cause() {
        DetachCause::Unspecified => "by means not known to this version",
        DetachCause::Requested => "a detach",
        DetachCause::ForegroundTimeout => return "its foreground timeout".to_owned(),
        DetachCause::ClientDisconnected => return "its holder went away".to_owned(),
    };
    by(cause, detachment.actor.as_ref(), &detachment.reason)
}

/// What happened, by whom, and why.
fn by(what: &str, actor: Option<&Actor>, why: &str) -> String {
    let mut text = what.to_owned();
    if let Some(actor) = actor.filter(|actor| !is_daemon(actor)) {
        if !actor.name.is_empty() {
            text.push_str(&format!(" by {}", actor.name));
        }
        match (actor.uid, actor.pid) {
            (Some(uid), Some(pid)) => text.push_str(&format!(" (uid {uid}, pid {pid})")),
            (Some(uid), None) => text.push_str(&format!(" (uid {uid})")),
            (None, Some(pid)) => text.push_str(&format!(" (pid {pid})")),
            (None, None) => {}
        }
    }
    if !why.is_empty() {
        text.push_str(&format!(": {why}"));
    }
    text
}

/// Whether nobody asked: the daemon kept to a rule, and what it did says which.
fn is_daemon(actor: &Actor) -> bool {
    actor.name == "heeler" && actor.uid.is_none() && actor.pid.is_none()
}

/// What shows that a tree is empty, or who is left of it.
pub(crate) fn proof(proof: &Proof) -> String {
    if !proof.survivors.is_empty() {
        let names: Vec<_> = proof.survivors.iter().map(process).collect();
        return format!("NOT gone, {} left: {}", names.len(), names.join("; "));
    }
    let evidence = match proof.method() {
        ProofMethod::Unspecified => "by means not known to this version",
        ProofMethod::CgroupEmpty => "its cgroup has no member and its shim no child",
        ProofMethod::NoChildren => "its shim has no child and no process carries its mark",
        ProofMethod::Sweep => "no process was in its cgroup or carried its mark",
        ProofMethod::NeverStarted => "nothing was ever started",
        ProofMethod::Reboot => "the machine was restarted since",
    };
    format!("proven gone: {evidence}")
}

fn process(process: &ProcessInfo) -> String {
    format!("{} {}", process.pid, process.command)
}

/// What it runs, as one would type it.
pub(crate) fn command(task: &BackgroundTask) -> String {
    match &task.command {
        Some(Command::Argv(ArgvCommand { args })) => {
            let quoted: Vec<_> = args.iter().map(|arg| quote(arg)).collect();
            quoted.join(" ")
        }
        Some(Command::Shell(ShellCommand { script, .. })) => script.clone(),
        None => String::new(),
    }
}

fn quote(arg: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_^".contains(c);
    match arg {
        "" => "''".to_owned(),
        arg if arg.chars().all(plain) => arg.to_owned(),
        arg => format!("'{}'", arg.replace('\'', r"'\''")),
    }
}

/// A moment in UTC, to the millisecond.
pub(crate) fn moment(at: Timestamp) -> String {
    let millis = at.nanos.div_euclid(1_000_000);
    let whole = Timestamp { nanos: 0, ..at }.to_string();
    format!("{}.{millis:03}Z", whole.trim_end_matches('Z'))
}

/// How long ago it was.
pub(crate) fn age(at: Option<Timestamp>) -> String {
    match at {
        Some(at) => duration::rough(time::since(std::time::SystemTime::now().into(), at)),
        None => String::new(),
    }
}

/// A size in binary units.
pub(crate) fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return match unit {
                "B" => format!("{bytes} B"),
                unit => format!("{size:.1} {unit}"),
            };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

#[cfg(test)]
mod tests;
