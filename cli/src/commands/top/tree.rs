//! The order of the rows: each task below its parent, and siblings by the chosen key.

use std::{
    cmp::{Ordering, Reverse},
    collections::{HashMap, HashSet},
};

use heeler_client::v1::BackgroundTask;

use crate::render::spec;

/// The key by which siblings are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// By session, each with its newest task first.
    Session,
    Newest,
    State,
    Name,
}

impl Sort {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Session => Self::Newest,
            Self::Newest => Self::State,
            Self::State => Self::Name,
            Self::Name => Self::Session,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Newest => "newest",
            Self::State => "state",
            Self::Name => "name",
        }
    }

    fn compare(self, one: &BackgroundTask, other: &BackgroundTask) -> Ordering {
        let by_key = match self {
            Self::Session => spec::session(one).cmp(spec::session(other)),
            Self::Newest => Ordering::Equal,
            Self::State => one.state.cmp(&other.state),
            Self::Name => spec::name(one).cmp(spec::name(other)),
        };
        let age = |task: &BackgroundTask| {
            let created = task.create_time.unwrap_or_default();
            (Reverse((created.seconds, created.nanos)), task.id.clone())
        };
        by_key.then_with(|| age(one).cmp(&age(other)))
    }
}

/// A task and the number of its ancestors among the rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) task: &'a BackgroundTask,
    pub(super) depth: usize,
}

/// Puts each task below its parent. A task whose parent is not among them is at the top level.
pub(super) fn arrange(mut tasks: Vec<&BackgroundTask>, sort: Sort) -> Vec<Row<'_>> {
    tasks.sort_by(|one, other| sort.compare(one, other));
    let ids: HashSet<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let mut children: HashMap<&str, Vec<&BackgroundTask>> = HashMap::new();
    // The last one is taken first.
    let mut waiting = Vec::new();
    for task in tasks.iter().rev() {
        let parent = spec::parent(task);
        match ids.contains(parent) {
            true => children.entry(parent).or_default().push(task),
            false => waiting.push(Row { task, depth: 0 }),
        }
    }
    let mut rows = Vec::with_capacity(tasks.len());
    while let Some(row) = waiting.pop() {
        rows.push(row);
        let below = children.remove(row.task.id.as_str()).unwrap_or_default();
        let depth = row.depth + 1;
        waiting.extend(below.into_iter().map(|task| Row { task, depth }));
    }
    rows
}
