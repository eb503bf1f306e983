//! Finding finished tasks: builds the statement that answers a filter and reads little else.
//!
//! Every statement walks one index in the order of the list and stops at the page's end. It takes the
//! index that is usually the narrowest of those that the filter allows; the rest of the filter is
//! checked row by row. Some statements sort what they find: a filter with ids, whose number is limited,
//! and [`Slice::EndedBetween`] and [`Slice::Within`], which read only the tasks that have ended since
//! the list, or a wait, began.

use std::collections::BTreeSet;

use rusqlite::{Connection, params_from_iter, types::Value};

use crate::{
    journal::{
        JournalError,
        record::{self, int, uint},
    },
    task::{EndState, Filter, IdKey, Kind, Revision, Seq, State, TaskId},
};

const END_STATES: [EndState; 5] = [
    EndState::Completed,
    EndState::Failed,
    EndState::Cancelled,
    EndState::TimedOut,
    EndState::Lost,
];
const KINDS: [Kind; 3] = [Kind::Shell, Kind::Agent, Kind::Hosted];

const SELECT: &str = "SELECT t.seq, t.revision FROM tasks AS t";

/// A range of finished tasks, as seen from the list's first page.
#[derive(Debug, Clone, Copy)]
pub(in crate::journal) enum Slice {
    /// Finished at that revision.
    EndedBy(Revision),
    /// Live at the first revision, finished at the second.
    EndedBetween(Revision, Revision),
    /// Ended after the first revision and before the second.
    Within(Revision, Revision),
}

/// A finished task, and the revision of its latest record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) seq: Seq,
    pub(super) latest: Revision,
}

/// Up to `limit` finished tasks that match, newest first.
pub(super) fn find(
    connection: &Connection,
    key: IdKey,
    filter: &Filter,
    slice: Slice,
    below: Option<Seq>,
    limit: usize,
) -> Result<Vec<Found>, JournalError> {
    let Some(search) = Search::new(key, filter, slice, below, limit) else {
        return Ok(Vec::new());
    };
    let run = || {
        let mut select = connection.prepare_cached(&search.text)?;
        let found = select.query_map(params_from_iter(search.values), |row| {
            Ok(Found {
                seq: Seq(uint(row.get(0)?)),
                // A damaged revision is that of no record: it costs its own task.
                latest: Revision(row.get(1).map_or(0, uint)),
            })
        })?;
        found.collect::<Result<_, _>>()
    };
    run().map_err(JournalError::storage("listing finished tasks"))
}

/// A statement and the values of its parameters.
#[derive(Debug)]
pub(in crate::journal) struct Search {
    pub(in crate::journal) text: String,
    values: Vec<Value>,
}

/// The index that a statement walks.
enum Route<'a> {
    /// An index whose condition is part of the filter.
    Index(&'static str),
    /// The tasks with the numbers that these ids encode. The record of a task has its id.
    Ids(&'a [TaskId]),
    /// The tasks with this label.
    Label(&'a str, &'a str),
    /// The tasks of certain kinds in certain terminal states: one walk for each pair, merged.
    States,
    /// All tasks, newest first.
    Newest,
}

impl<'a> Route<'a> {
    fn of(filter: &'a Filter, slice: Slice) -> Self {
        if matches!(slice, Slice::EndedBetween(..) | Slice::Within(..)) {
            Self::Index("tasks_ended")
        } else if !filter.ids.is_empty() {
            Self::Ids(&filter.ids)
        } else if filter.parent.is_some() {
            Self::Index("tasks_parent")
        } else if filter
            .session_id
            .as_ref()
            .is_some_and(|session| !session.is_empty())
        {
            Self::Index("tasks_session")
        } else if let Some((key, value)) = filter.labels.first_key_value() {
            Self::Label(key, value)
        } else if !filter.states.is_empty() || !filter.kinds.is_empty() {
            Self::States
        } else {
            Self::Newest
        }
    }
}

impl Search {
    /// None if no finished task is in one of the filter's states.
    pub(in crate::journal) fn new(
        id_key: IdKey,
        filter: &Filter,
        slice: Slice,
        below: Option<Seq>,
        limit: usize,
    ) -> Option<Self> {
        let (states, kinds) = (end_states(filter), kinds(filter));
        if states.is_empty() {
            return None;
        }
        let mut search = Self {
            text: String::new(),
            values: Vec::new(),
        };
        let limit = search.bind(i64::try_from(limit).unwrap_or(i64::MAX));
        let below = search.bind(below.map_or(i64::MAX, |seq| int(seq.0)));
        let rest = search.conditions(filter, slice, &below);
        let select = match Route::of(filter, slice) {
            Route::Index(index) => {
                let chosen = among(&states, &kinds);
                format!("{SELECT} INDEXED BY {index} WHERE {rest} AND {chosen}")
            }
            Route::Ids(ids) => {
                let chosen = among(&states, &kinds);
                let seqs: BTreeSet<i64> = ids.iter().map(|id| int(id_key.seq(id).0)).collect();
                let seqs = search.bind(serde_json::Value::from_iter(seqs).to_string());
                format!(
                    "SELECT t.seq, t.revision FROM json_each({seqs})
                     CROSS JOIN tasks AS t NOT INDEXED ON t.seq = json_each.value
                     WHERE {rest} AND {chosen}"
                )
            }
            Route::Label(key, value) => {
                let chosen = among(&states, &kinds);
                let (key, value) = (search.bind(key.to_owned()), search.bind(value.to_owned()));
                format!(
                    "SELECT l.seq, t.revision FROM labels AS l CROSS JOIN tasks AS t
                     WHERE l.key = {key} AND l.value = {value} AND l.seq < {below}
                     AND t.seq = l.seq AND {rest} AND {chosen}"
                )
            }
            Route::States => by_state(&states, &kinds, &rest),
            Route::Newest => format!("{SELECT} NOT INDEXED WHERE {rest}"),
        };
        search.text = format!("{select} ORDER BY 1 DESC LIMIT {limit}");
        Some(search)
    }

    fn bind(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    /// All conditions but those on kinds and states.
    fn conditions(&mut self, filter: &Filter, slice: Slice, below: &str) -> String {
        let mut all = vec![format!("t.seq < {below}"), self.time(slice)];
        if let Some(prefix) = &filter.id_prefix {
            // Its characters have no meaning in a pattern.
            let prefix = self.bind(prefix.as_str().to_owned());
            all.push(format!(
                "(t.id GLOB {prefix} || '*' OR t.id GLOB '*-' || {prefix} || '*')"
            ));
        }
        if let Some(parent) = &filter.parent {
            all.push(format!("t.parent_id = {}", self.bind(parent.to_string())));
        }
        if let Some(session) = &filter.session_id {
            // Repeats the condition of the index, which has no empty session.
            let not_empty = if session.is_empty() {
                ""
            } else {
                " AND t.session_id <> ''"
            };
            all.push(format!(
                "t.session_id = {}{not_empty}",
                self.bind(session.clone())
            ));
        }
        for (key, value) in &filter.labels {
            let (key, value) = (self.bind(key.clone()), self.bind(value.clone()));
            all.push(format!(
                "EXISTS (SELECT 1 FROM labels WHERE key = {key} AND value = {value} AND seq = t.seq)"
            ));
        }
        all.join(" AND ")
    }

    fn time(&mut self, slice: Slice) -> String {
        match slice {
            Slice::EndedBy(then) => format!("t.end_revision <= {}", self.bind(int(then.0))),
            Slice::EndedBetween(then, now) => {
                let (then, now) = (self.bind(int(then.0)), self.bind(int(now.0)));
                format!(
                    "t.end_revision > {then} AND t.end_revision <= {now}
                     AND t.created_revision <= {then}"
                )
            }
            Slice::Within(after, before) => {
                let (after, before) = (self.bind(int(after.0)), self.bind(int(before.0)));
                format!("t.end_revision > {after} AND t.end_revision < {before}")
            }
        }
    }
}

fn end_states(filter: &Filter) -> Vec<EndState> {
    let wanted = |end: &EndState| filter.states.contains(&State::Ended(*end));
    END_STATES
        .into_iter()
        .filter(|end| filter.states.is_empty() || wanted(end))
        .collect()
}

fn kinds(filter: &Filter) -> Vec<Kind> {
    let wanted = |kind: &Kind| filter.kinds.is_empty() || filter.kinds.contains(kind);
    KINDS.into_iter().filter(wanted).collect()
}

fn by_state(states: &[EndState], kinds: &[Kind], rest: &str) -> String {
    let walk = |state, kind| {
        format!(
            "{SELECT} INDEXED BY tasks_state
             WHERE t.end_state = '{}' AND t.kind = '{}' AND {rest}",
            record::end_state_name(state),
            record::kind_name(kind),
        )
    };
    let pairs = states
        .iter()
        .flat_map(|state| kinds.iter().map(move |kind| (*state, *kind)));
    let walks: Vec<String> = pairs.map(|(state, kind)| walk(state, kind)).collect();
    walks.join(" UNION ALL ")
}

fn among(states: &[EndState], kinds: &[Kind]) -> String {
    let states: Vec<_> = states
        .iter()
        .map(|state| record::end_state_name(*state))
        .collect();
    let kinds: Vec<_> = kinds.iter().map(|kind| record::kind_name(*kind)).collect();
    let (states, kinds) = (states.join("', '"), kinds.join("', '"));
    format!("t.end_state IN ('{states}') AND t.kind IN ('{kinds}')")
}
