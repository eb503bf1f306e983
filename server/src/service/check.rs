//! Input from outside, checked at the edge: each function takes a field's name and its value, and
//! gives the server's own type or a refusal that names the field.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use heeler_proto::v1;

use super::refusal::Refusal;
use crate::{
    process::{launch::RESERVED_PREFIX, signal_number},
    task::{EndState, EventKind, FactKind, Filter, Kind, Signal, State, TaskId},
};

/// The longest that a session, a request id or a label's key may be.
pub(super) const SHORT_TEXT: usize = 256;
/// The longest that a request id may be.
pub(super) const REQUEST_ID: usize = 128;
/// The longest that a reason may be.
pub(super) const REASON: usize = 4 * 1024;
/// The longest that a name or a label's value may be.
pub(super) const LONG_TEXT: usize = 16 * 1024;
/// The most that the kernel takes as one argument or variable.
pub(super) const ARGUMENT: usize = 128 * 1024 - 1;
/// The most arguments.
pub(super) const ARGUMENTS: usize = 4096;
/// The longest span that protobuf's own Duration may have, in which a longer one is told.
const LONGEST_DURATION: Duration = Duration::from_secs(315_576_000_000);
/// The most labels.
const LABELS: usize = 64;
/// The most ids in one request.
const IDS: usize = 1000;

/// Text of bounded length.
pub(super) fn text(field: &str, value: String, limit: usize) -> Result<String, Refusal> {
    if value.len() > limit {
        return Err(Refusal::field(
            field,
            format_args!("is longer than {limit} bytes"),
        ));
    }
    Ok(value)
}

/// Text that the operating system is to have.
pub(super) fn os_text(field: &str, value: String, limit: usize) -> Result<String, Refusal> {
    if value.contains('\0') {
        return Err(Refusal::field(field, "contains a NUL"));
    }
    text(field, value, limit)
}

/// Text that counts as absent when it is blank.
pub(super) fn note(field: &str, value: String, limit: usize) -> Result<Option<String>, Refusal> {
    let value = text(field, value, limit)?;
    Ok((!value.trim().is_empty()).then_some(value))
}

/// A session that must be named.
pub(super) fn session(value: String) -> Result<String, Refusal> {
    match value.is_empty() {
        true => Err(Refusal::field("session_id", "is required")),
        false => text("session_id", value, SHORT_TEXT),
    }
}

/// A span of time that is not negative.
pub(super) fn duration(field: &str, value: prost_types::Duration) -> Result<Duration, Refusal> {
    let nanos = u32::try_from(value.nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000);
    match (u64::try_from(value.seconds), nanos) {
        (Ok(seconds), Some(nanos)) => Ok(Duration::new(seconds, nanos).min(LONGEST_DURATION)),
        (Err(_), _) | (_, None) => Err(Refusal::field(field, "is negative or malformed")),
    }
}

/// An absolute path.
pub(super) fn absolute_path(field: &str, value: String) -> Result<PathBuf, Refusal> {
    let value = os_text(field, value, 4095)?;
    let path = PathBuf::from(value);
    match path.is_absolute() {
        true => Ok(path),
        false => Err(Refusal::field(field, "is not an absolute path")),
    }
}

/// A signal by name; empty: the default.
pub(super) fn signal(field: &str, value: &str) -> Result<Option<Signal>, Refusal> {
    if value.is_empty() {
        return Ok(None);
    }
    match signal_number(value) {
        Some(number) => Ok(Some(Signal(number))),
        None => Err(Refusal::field(field, "is no signal, such as SIGINT")),
    }
}

/// The id of a task that must be named. What is no id names no task.
pub(super) fn task_id(field: &str, value: &str) -> Result<TaskId, Refusal> {
    if value.is_empty() {
        return Err(Refusal::field(field, "is required"));
    }
    value.parse().map_err(|_| Refusal::task_not_found(value))
}

/// Ids, at least one, each once.
pub(super) fn task_ids(field: &str, values: &[String]) -> Result<Vec<TaskId>, Refusal> {
    if values.is_empty() {
        return Err(Refusal::field(field, "is required"));
    }
    if values.len() > IDS {
        return Err(Refusal::field(
            field,
            format_args!("has more than {IDS} ids"),
        ));
    }
    let mut ids = Vec::with_capacity(values.len());
    for (at, value) in values.iter().enumerate() {
        let id = task_id(&format!("{field}[{at}]"), value)?;
        if ids.contains(&id) {
            return Err(Refusal::field(format!("{field}[{at}]"), "is named twice"));
        }
        ids.push(id);
    }
    Ok(ids)
}

/// A number that is one of an enum's.
pub(super) fn enumerated<E: TryFrom<i32>>(field: &str, value: i32) -> Result<E, Refusal> {
    E::try_from(value).map_err(|_| Refusal::field(field, format_args!("has no value {value}")))
}

/// Variables to set: a name without `=`, not one of ours.
pub(super) fn env(vars: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Refusal> {
    for (name, value) in &vars {
        let field = format!("env[{name:?}]");
        variable(&field, name)?;
        os_text(
            &field,
            value.clone(),
            ARGUMENT - name.len().min(ARGUMENT - 1) - 1,
        )?;
    }
    Ok(vars)
}

/// Variables to take away.
pub(super) fn env_remove(names: Vec<String>) -> Result<Vec<String>, Refusal> {
    for (at, name) in names.iter().enumerate() {
        variable(&format!("env_remove[{at}]"), name)?;
    }
    Ok(names)
}

fn variable(field: &str, name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.contains(['=', '\0']) || name.len() > LONG_TEXT {
        return Err(Refusal::field(field, "is no name of a variable"));
    }
    match name.starts_with(RESERVED_PREFIX) {
        true => Err(Refusal::field(
            field,
            "is reserved: HEELER_ names are Heeler's own",
        )),
        false => Ok(()),
    }
}

/// Labels, as many and as long as they may be.
pub(super) fn labels(
    field: &str,
    labels: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Refusal> {
    if labels.len() > LABELS {
        return Err(Refusal::field(
            field,
            format_args!("has more than {LABELS} labels"),
        ));
    }
    for (key, value) in &labels {
        let shown: String = key.chars().take(64).collect();
        let entry = format!("{field}[{shown:?}]");
        if key.is_empty() {
            return Err(Refusal::field(entry, "has an empty key"));
        }
        text(&entry, key.clone(), SHORT_TEXT)?;
        text(&entry, value.clone(), LONG_TEXT)?;
    }
    Ok(labels)
}

/// A condition on tasks.
pub(super) fn filter(field: &str, filter: v1::TaskFilter) -> Result<Filter, Refusal> {
    let named = |part: &str| format!("{field}.{part}");
    if filter.task_ids.len() > IDS {
        let problem = format_args!("has more than {IDS} ids");
        return Err(Refusal::field(named("task_ids"), problem));
    }
    let mut ids = Vec::with_capacity(filter.task_ids.len());
    for (at, id) in filter.task_ids.iter().enumerate() {
        let named = named(&format!("task_ids[{at}]"));
        ids.push(
            id.parse()
                .map_err(|error| Refusal::field(named, format_args!("is none: {error}")))?,
        );
    }
    let mut kinds = Vec::new();
    for (at, kind) in filter.kinds.into_iter().enumerate() {
        let named = named(&format!("kinds[{at}]"));
        kinds.extend(filter_kind(&named, enumerated(&named, kind)?)?);
    }
    let mut states = Vec::new();
    for (at, state) in filter.states.into_iter().enumerate() {
        let named = named(&format!("states[{at}]"));
        states.push(filter_state(&named, enumerated(&named, state)?)?);
    }
    let parent = match filter.parent_id.as_str() {
        "" => None,
        id => Some(id.parse().map_err(|error| {
            Refusal::field(named("parent_id"), format_args!("is none: {error}"))
        })?),
    };
    let session = text(&named("session_id"), filter.session_id, SHORT_TEXT)?;
    Ok(Filter {
        ids,
        session_id: (!session.is_empty()).then_some(session),
        kinds,
        states: states.into_iter().flatten().collect(),
        labels: labels(&named("labels"), filter.labels)?,
        parent,
    })
}

fn filter_kind(field: &str, kind: v1::TaskKind) -> Result<Option<Kind>, Refusal> {
    match kind {
        v1::TaskKind::Unspecified => Err(Refusal::field(field, "is unspecified")),
        v1::TaskKind::Shell => Ok(Some(Kind::Shell)),
        v1::TaskKind::Agent => Ok(Some(Kind::Agent)),
        v1::TaskKind::Hosted => Err(Refusal::field(field, "cannot be HOSTED yet")),
    }
}

fn filter_state(field: &str, state: v1::TaskState) -> Result<Option<State>, Refusal> {
    Ok(Some(match state {
        v1::TaskState::Unspecified => return Err(Refusal::field(field, "is unspecified")),
        v1::TaskState::Queued => State::Queued,
        v1::TaskState::Starting => State::Starting,
        v1::TaskState::Running => State::Running,
        v1::TaskState::Stopping => State::Stopping,
        v1::TaskState::Completed => State::Ended(EndState::Completed),
        v1::TaskState::Failed => State::Ended(EndState::Failed),
        v1::TaskState::Cancelled => State::Ended(EndState::Cancelled),
        v1::TaskState::TimedOut => State::Ended(EndState::TimedOut),
        v1::TaskState::Lost => State::Ended(EndState::Lost),
    }))
}

/// Event types to watch, with a filter by which each of them can come.
pub(super) fn event_kinds(values: Vec<i32>, filter: &Filter) -> Result<Vec<FactKind>, Refusal> {
    let kind = |(at, value): (usize, i32)| {
        let field = format!("types[{at}]");
        let of_a_task = |kind| Ok(FactKind::Task(kind));
        match enumerated(&field, value)? {
            v1::TaskEventType::Unspecified => Err(Refusal::field(field, "is unspecified")),
            v1::TaskEventType::Created => of_a_task(EventKind::Created),
            v1::TaskEventType::Admitted => of_a_task(EventKind::Admitted),
            v1::TaskEventType::Started => of_a_task(EventKind::Started),
            v1::TaskEventType::Stopping => of_a_task(EventKind::Stopping),
            v1::TaskEventType::LeaderExited => of_a_task(EventKind::LeaderExited),
            v1::TaskEventType::Detached => of_a_task(EventKind::Detached),
            v1::TaskEventType::Stale => of_a_task(EventKind::Stale),
            v1::TaskEventType::Active => of_a_task(EventKind::Active),
            v1::TaskEventType::KillOverdue => of_a_task(EventKind::KillOverdue),
            v1::TaskEventType::Ended => of_a_task(EventKind::Ended),
            v1::TaskEventType::Removed => of_a_task(EventKind::Removed),
            v1::TaskEventType::SessionIdle if filter.is_of_tasks() => Err(Refusal::field(
                field,
                "is SESSION_IDLE, which does not go with a filter by more than session_id",
            )),
            v1::TaskEventType::SessionIdle => Ok(FactKind::SessionIdle),
        }
    };
    values.into_iter().enumerate().map(kind).collect()
}
