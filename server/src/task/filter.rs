//! A selection of tasks.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use super::{Fact, IdPrefix, Kind, Placement, Scope, State, Task, TaskId};

/// A selection of tasks: a task is selected if it matches every field that is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Filter {
    /// One of these ids.
    pub ids: Vec<TaskId>,
    pub session_id: Option<String>,
    /// One of these kinds.
    pub kinds: Vec<Kind>,
    /// One of these states.
    pub states: Vec<State>,
    /// All of these labels.
    pub labels: BTreeMap<String, String>,
    /// Spawned by this task.
    pub parent: Option<TaskId>,
    pub stale: Option<bool>,
    pub placement: Option<Placement>,
    /// Started in this directory or below it.
    pub directory: Option<PathBuf>,
    pub queue: Option<String>,
    pub name: Option<String>,
    pub id_prefix: Option<IdPrefix>,
    pub port: Option<PortFilter>,
    /// In this part of the tree of tasks. Set by the server, for a caller that is inside of a task.
    pub scope: Option<Scope>,
}

/// The tasks that listen on a port. A port is no fact of a task: the listeners are looked up for each
/// call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortFilter {
    pub port: u16,
    pub listeners: BTreeSet<TaskId>,
}

impl Filter {
    /// The names of the fields that are set, as in the contract.
    pub(crate) fn set_fields(&self) -> Vec<&'static str> {
        let Self {
            ids,
            session_id,
            kinds,
            states,
            labels,
            parent,
            stale,
            placement,
            directory,
            queue,
            name,
            id_prefix,
            port,
            // No field of the contract.
            scope: _,
        } = self;
        let fields = [
            ("task_ids", !ids.is_empty()),
            ("session_id", session_id.is_some()),
            ("kinds", !kinds.is_empty()),
            ("states", !states.is_empty()),
            ("labels", !labels.is_empty()),
            ("parent_id", parent.is_some()),
            ("stale", stale.is_some()),
            ("placement", placement.is_some()),
            ("directory", directory.is_some()),
            ("queue", queue.is_some()),
            ("name", name.is_some()),
            ("id_prefix", id_prefix.is_some()),
            ("port", port.is_some()),
        ];
        let set = fields.into_iter().filter(|(_, set)| *set);
        set.map(|(name, _)| name).collect()
    }

    /// True if it can match an event of a session: no field but the session is set.
    pub(crate) fn admits_sessions(&self) -> bool {
        let fields = self.set_fields();
        self.scope.is_none() && fields.iter().all(|field| *field == "session_id")
    }

    /// True if it matches the event's task or, for an event of a session, the session.
    pub(crate) fn admits(&self, fact: &Fact) -> bool {
        match fact {
            Fact::Task(event) => self.matches(&event.task),
            Fact::SessionIdle(idle) => {
                self.admits_sessions() && is_unset_or(&self.session_id, &idle.session_id)
            }
        }
    }

    /// True if it has the task's id, or no ids, and the same for the prefix.
    pub(crate) fn has_id_of(&self, task: &Task) -> bool {
        let prefix = self.id_prefix.as_ref();
        is_empty_or_has(&self.ids, &task.id) && prefix.is_none_or(|prefix| prefix.matches(&task.id))
    }

    pub(crate) fn matches(&self, task: &Task) -> bool {
        let spec = &task.spec;
        self.has_id_of(task)
            && is_unset_or(&self.session_id, &spec.session_id)
            && is_empty_or_has(&self.kinds, &spec.kind)
            && is_empty_or_has(&self.states, &task.state())
            && self
                .labels
                .iter()
                .all(|(key, value)| spec.labels.get(key) == Some(value))
            && (self.parent.is_none() || self.parent == spec.parent)
            && self.matches_record(task)
    }

    /// True if a field is set for which the journal has no column.
    pub(crate) fn has_record_fields(&self) -> bool {
        self.stale.is_some()
            || self.placement.is_some()
            || self.directory.is_some()
            || self.queue.is_some()
            || self.name.is_some()
            || self.port.is_some()
            || self.scope.is_some()
    }

    /// The part of [`Filter::matches`] for which the journal has no column.
    pub(crate) fn matches_record(&self, task: &Task) -> bool {
        let directory = normalised(&task.spec.working_directory);
        is_unset_or(&self.stale, &task.stale.is_some())
            && is_unset_or(&self.placement, &task.placement())
            && (self.directory.as_ref())
                .is_none_or(|wanted| directory.starts_with(normalised(wanted)))
            && (self.queue.is_none() || self.queue == task.spec.queue)
            && is_unset_or(&self.name, &task.spec.name)
            && (self.port.as_ref()).is_none_or(|port| port.listeners.contains(&task.id))
            && (self.scope.as_ref()).is_none_or(|scope| scope.contains(task))
    }
}

fn is_unset_or<T: PartialEq>(wanted: &Option<T>, actual: &T) -> bool {
    wanted.as_ref().is_none_or(|wanted| wanted == actual)
}

fn is_empty_or_has<T: PartialEq>(wanted: &[T], actual: &T) -> bool {
    wanted.is_empty() || wanted.contains(actual)
}

/// Resolves `.` and `..` by name, so that `/a/../b` is not below `/a`.
pub(super) fn normalised(path: &Path) -> PathBuf {
    let mut normalised = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normalised.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                normalised.push(part);
            }
        }
    }
    normalised
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L8
    #[test]
    fn a_directory_is_compared_by_its_resolved_name() {
        let below = |path: &str, directory: &str| {
            normalised(Path::new(path)).starts_with(normalised(Path::new(directory)))
        };
        assert!(below("/d11/../d1/./x", "/d1"));
        assert!(!below("/d11/../d1", "/d11"));
        assert!(!below("/d11", "/d1"), "a name is not a prefix");
        assert!(below("/../../a", "/a/"));
    }
}
