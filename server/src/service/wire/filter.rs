//! A TaskFilter, and the event types that go with it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use heeler_proto::v1;

use super::{check, refusal::Refusal};
use crate::task::{
    EndState, EventKind, FactKind, Filter, IdPrefix, Kind, ParseIdPrefixError, Placement,
    PortFilter, State, TaskId,
};

/// Maximum number of ids.
const IDS: usize = 1000;
/// More values than any of the enums has.
const VALUES: usize = 100;

/// The filter of a call that reads: absent, it selects everything.
pub(crate) fn reading(filter: Option<v1::TaskFilter>) -> Result<Filter, Refusal> {
    read(filter.unwrap_or_default(), |field, id| {
        let malformed = |error| format!("is not a valid task id: {error}");
        id.parse()
            .map_err(|error| Refusal::field(field, malformed(error)))
    })
}

/// The filter of a call that acts on tasks or waits for them: it must be there, and each task that it
/// names must exist.
pub(crate) fn acting(filter: Option<v1::TaskFilter>) -> Result<Filter, Refusal> {
    let Some(filter) = filter else {
        return Err(Refusal::field(
            "filter",
            "is required: it selects the tasks, such as by task_ids or session_id",
        ));
    };
    let filter = read(filter, check::task_id)?;
    for (at, id) in filter.ids.iter().enumerate() {
        if filter.ids[..at].contains(id) {
            let field = format!("filter.task_ids[{at}]");
            return Err(Refusal::field(field, "is named twice"));
        }
    }
    Ok(filter)
}

/// As [`acting`], and something must be set.
pub(crate) fn selecting(filter: Option<v1::TaskFilter>) -> Result<Filter, Refusal> {
    match acting(filter)? {
        filter if filter == Filter::default() => Err(Refusal::field(
            "filter",
            "is empty and would select every task: set at least one of its fields",
        )),
        filter => Ok(filter),
    }
}

type ReadId = fn(&str, &str) -> Result<TaskId, Refusal>;

fn read(filter: v1::TaskFilter, id: ReadId) -> Result<Filter, Refusal> {
    let placement = check::enumerated("filter.placement", filter.placement)?;
    Ok(Filter {
        ids: ids(&filter.task_ids, id)?,
        session_id: check::optional_text(
            "filter.session_id",
            filter.session_id,
            check::SHORT_TEXT,
        )?,
        kinds: each("filter.kinds", &filter.kinds, kind)?,
        states: each("filter.states", &filter.states, state)?,
        labels: check::labels("filter.labels", filter.labels)?,
        parent: parent(&filter.parent_id)?,
        stale: filter.stale,
        placement: match placement {
            v1::Placement::Unspecified => None,
            v1::Placement::Background => Some(Placement::Background),
            v1::Placement::Foreground => Some(Placement::Foreground),
        },
        directory: check::optional_path("filter.directory", filter.directory)?,
        queue: check::optional_text("filter.queue", filter.queue, check::SHORT_TEXT)?,
        name: check::optional_text("filter.name", filter.name, check::LONG_TEXT)?,
        id_prefix: id_prefix(&filter.id_prefix)?,
        port: port(filter.port)?,
        scope: None,
    })
}

fn port(port: u32) -> Result<Option<PortFilter>, Refusal> {
    match port {
        0 => Ok(None),
        port => Ok(Some(PortFilter {
            port: check::port("filter.port", port)?,
            listeners: BTreeSet::new(),
        })),
    }
}

/// Refuses a filter by port, for the reason given: a port is no part of a task's recorded state.
pub(crate) fn without_port(filter: Filter, problem: &str) -> Result<Filter, Refusal> {
    match filter.port {
        Some(_) => Err(Refusal::field("filter.port", problem)),
        None => Ok(filter),
    }
}

fn ids(values: &[String], id: ReadId) -> Result<Vec<TaskId>, Refusal> {
    const FIELD: &str = "filter.task_ids";
    if values.len() > IDS {
        return Err(Refusal::field(
            FIELD,
            format_args!("has more than {IDS} ids"),
        ));
    }
    let read = |(at, value): (usize, &String)| {
        let field = format!("{FIELD}[{at}]");
        match value.as_str() {
            "" => Err(Refusal::field(field, "is empty")),
            value => id(&field, value),
        }
    };
    values.iter().enumerate().map(read).collect()
}

fn parent(id: &str) -> Result<Option<TaskId>, Refusal> {
    match id {
        "" => Ok(None),
        id => id.parse().map(Some).map_err(|error| {
            let problem = format!("is not a valid task id: {error}");
            Refusal::field("filter.parent_id", problem)
        }),
    }
}

fn id_prefix(prefix: &str) -> Result<Option<IdPrefix>, Refusal> {
    match prefix {
        "" => Ok(None),
        prefix => (prefix.parse().map(Some))
            .map_err(|error: ParseIdPrefixError| Refusal::field("filter.id_prefix", error)),
    }
}

/// The values of a repeated enum, each with its own path.
fn each<E: TryFrom<i32>, T>(
    field: &str,
    values: &[i32],
    convert: impl Fn(E) -> Option<T>,
) -> Result<Vec<T>, Refusal> {
    if values.len() > VALUES {
        let problem = format!("has more than {VALUES} values");
        return Err(Refusal::field(field, problem));
    }
    let read = |(at, value): (usize, &i32)| {
        let field = format!("{field}[{at}]");
        let value = convert(check::enumerated(&field, *value)?);
        value.ok_or_else(|| Refusal::field(field, "is unspecified"))
    };
    values.iter().enumerate().map(read).collect()
}

fn kind(kind: v1::TaskKind) -> Option<Kind> {
    match kind {
        v1::TaskKind::Unspecified => None,
        v1::TaskKind::Shell => Some(Kind::Shell),
        v1::TaskKind::Agent => Some(Kind::Agent),
        v1::TaskKind::Hosted => Some(Kind::Hosted),
    }
}

fn state(state: v1::TaskState) -> Option<State> {
    match state {
        v1::TaskState::Unspecified => None,
        v1::TaskState::Queued => Some(State::Queued),
        v1::TaskState::Starting => Some(State::Starting),
        v1::TaskState::Running => Some(State::Running),
        v1::TaskState::Stopping => Some(State::Stopping),
        v1::TaskState::Completed => Some(State::Ended(EndState::Completed)),
        v1::TaskState::Failed => Some(State::Ended(EndState::Failed)),
        v1::TaskState::Cancelled => Some(State::Ended(EndState::Cancelled)),
        v1::TaskState::TimedOut => Some(State::Ended(EndState::TimedOut)),
        v1::TaskState::Lost => Some(State::Ended(EndState::Lost)),
    }
}

/// The event types to watch. SESSION_IDLE is refused with a filter that never matches it.
pub(crate) fn event_kinds(values: &[i32], filter: &Filter) -> Result<Vec<FactKind>, Refusal> {
    let kinds = each("types", values, event_kind)?;
    let idle = kinds.iter().position(|kind| *kind == FactKind::SessionIdle);
    match idle {
        Some(at) if !filter.admits_sessions() => Err(Refusal::field(
            format!("types[{at}]"),
            "is SESSION_IDLE, which a filter by more than session_id never matches",
        )),
        Some(_) | None => Ok(kinds),
    }
}

fn event_kind(kind: v1::TaskEventType) -> Option<FactKind> {
    Some(FactKind::Task(match kind {
        v1::TaskEventType::Unspecified => return None,
        v1::TaskEventType::SessionIdle => return Some(FactKind::SessionIdle),
        v1::TaskEventType::Created => EventKind::Created,
        v1::TaskEventType::Admitted => EventKind::Admitted,
        v1::TaskEventType::Started => EventKind::Started,
        v1::TaskEventType::Stopping => EventKind::Stopping,
        v1::TaskEventType::LeaderExited => EventKind::LeaderExited,
        v1::TaskEventType::Detached => EventKind::Detached,
        v1::TaskEventType::Stale => EventKind::Stale,
        v1::TaskEventType::Active => EventKind::Active,
        v1::TaskEventType::Restarting => EventKind::Restarting,
        v1::TaskEventType::Restarted => EventKind::Restarted,
        v1::TaskEventType::Ready => EventKind::Ready,
        v1::TaskEventType::NotReady => EventKind::NotReady,
        v1::TaskEventType::NeedsInput => EventKind::NeedsInput,
        v1::TaskEventType::Progress => EventKind::Progress,
        v1::TaskEventType::KillOverdue => EventKind::KillOverdue,
        v1::TaskEventType::OutputLimit => EventKind::OutputLimit,
        v1::TaskEventType::Matched => EventKind::Matched,
        v1::TaskEventType::Updated => EventKind::Updated,
        v1::TaskEventType::Ended => EventKind::Ended,
        v1::TaskEventType::Removed => EventKind::Removed,
    }))
}
