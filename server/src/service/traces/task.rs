//! The span of a task, from its creation to its end, with the points of its life as events.

use opentelemetry::{
    KeyValue,
    trace::{Event as SpanEvent, SpanKind, Status},
};
use opentelemetry_sdk::trace::SpanEvents;

use super::{Ended, system_time};
use crate::{
    service::wire,
    task::{Command, EndState, Ended as TaskEnd, Outcome, Task, Timestamp},
};

/// The span of a task that has ended, if the server that created it exported traces.
pub(super) fn span(task: &Task) -> Option<Ended> {
    let (span, end) = (task.span.as_deref()?, task.ended.as_ref()?);
    Some(Ended {
        context: span.context,
        parent: Some(span.parent),
        kind: SpanKind::Internal,
        name: name(task),
        begun: system_time(task.created),
        ended: system_time(end.at),
        attributes: attributes(task, end),
        events: events(task),
        status: status(task, end),
    })
}

/// The task's own name, else that of its program.
fn name(task: &Task) -> String {
    let kind = wire::task::kind_name(task.spec.kind).to_lowercase();
    match (&task.spec.command, task.spec.name.as_str()) {
        (Command::Argv(argv), "") => {
            let program = argv.first().map_or("", String::as_str);
            let program = program.rsplit('/').next().unwrap_or(program);
            format!("{kind} {program}")
        }
        (Command::Shell { .. } | Command::Hosted { .. }, "") => kind,
        (_, name) => format!("{kind} {name}"),
    }
}

/// The identity of the task and its end. Arguments, scripts and variables may be secret: they are left out.
fn attributes(task: &Task, end: &TaskEnd) -> Vec<KeyValue> {
    let mut all = vec![
        KeyValue::new("heeler.task.id", task.id.as_str().to_owned()),
        KeyValue::new("heeler.task.uid", task.uid.to_string()),
        KeyValue::new("heeler.task.kind", wire::task::kind_name(task.spec.kind)),
        KeyValue::new("heeler.task.state", wire::task::state_name(task)),
        KeyValue::new(
            "heeler.task.end_reason",
            wire::task::end_reason_name(end.reason),
        ),
        KeyValue::new("heeler.task.output_bytes", number(task.output_bytes)),
        KeyValue::new("heeler.task.cpu_seconds", end.cpu.as_secs_f64()),
    ];
    if !task.spec.session_id.is_empty() {
        all.push(KeyValue::new("session.id", task.spec.session_id.clone()));
    }
    if let Some(parent) = &task.spec.parent {
        all.push(KeyValue::new(
            "heeler.task.parent_id",
            parent.as_str().to_owned(),
        ));
    }
    if let Some(leader) = task.started.as_ref().and_then(|started| started.leader()) {
        all.push(KeyValue::new("process.pid", i64::from(leader.pid)));
    }
    if task.attempt() > 1 {
        all.push(KeyValue::new(
            "heeler.task.attempts",
            i64::from(task.attempt()),
        ));
    }
    match task.leader_end.as_ref().map(|end| &end.outcome) {
        Some(Outcome::Exited(code)) => {
            all.push(KeyValue::new("process.exit.code", i64::from(*code)));
        }
        Some(Outcome::Signalled { signal, .. }) => {
            all.push(KeyValue::new("heeler.task.signal", i64::from(signal.0)));
        }
        Some(Outcome::SpawnFailed(_) | Outcome::Unknown(_) | Outcome::Worker(_)) | None => {}
    }
    all
}

/// The points of its life, in order.
fn events(task: &Task) -> SpanEvents {
    let admitted = task.queued.as_ref().and_then(|queued| queued.admitted);
    let points = [
        ("admitted", admitted),
        (
            "started",
            task.started.as_ref().map(|started| started.at.wall),
        ),
        ("ready", task.ready),
        ("not ready", task.not_ready),
        (
            "detached",
            task.detached.as_ref().map(|detached| detached.at),
        ),
        (
            "stopping",
            task.stop.as_ref().map(|stop| stop.requested.wall),
        ),
        (
            "leader ended",
            task.leader_end.as_ref().map(|end| end.at.wall),
        ),
    ];
    let mut points: Vec<(&str, Timestamp)> = points
        .into_iter()
        .filter_map(|(name, at)| Some((name, at?)))
        .collect();
    points.sort_by_key(|(_, at)| *at);
    let mut events = SpanEvents::default();
    events.events = points
        .into_iter()
        .map(|(name, at)| SpanEvent::new(name, system_time(at), Vec::new(), 0))
        .collect();
    events
}

/// A cancel was asked for, so it is no error.
fn status(task: &Task, end: &TaskEnd) -> Status {
    match end.state {
        EndState::Completed => Status::Ok,
        EndState::Cancelled => Status::Unset,
        EndState::Failed | EndState::TimedOut | EndState::Lost => {
            let reason = wire::task::end_reason_name(end.reason);
            match task.leader_end.as_ref().map(|end| &end.outcome) {
                Some(Outcome::Exited(code)) => Status::error(format!("{reason}: exit code {code}")),
                Some(
                    Outcome::Signalled { .. }
                    | Outcome::SpawnFailed(_)
                    | Outcome::Unknown(_)
                    | Outcome::Worker(_),
                )
                | None => Status::error(reason),
            }
        }
    }
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
