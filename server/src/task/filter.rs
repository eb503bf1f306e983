//! Which tasks are meant.

use std::collections::BTreeMap;

use super::{Fact, Kind, State, Task, TaskId};

/// A condition on tasks: every part that is set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// One of these ids.
    pub ids: Vec<TaskId>,
    /// This session.
    pub session_id: Option<String>,
    /// One of these kinds.
    pub kinds: Vec<Kind>,
    /// One of these states.
    pub states: Vec<State>,
    /// All of these labels.
    pub labels: BTreeMap<String, String>,
    /// Spawned by this task.
    pub parent: Option<TaskId>,
}

impl Filter {
    /// Whether it says anything but which session.
    pub fn is_of_tasks(&self) -> bool {
        let Self {
            ids,
            session_id: _,
            kinds,
            states,
            labels,
            parent,
        } = self;
        !ids.is_empty()
            || !kinds.is_empty()
            || !states.is_empty()
            || !labels.is_empty()
            || parent.is_some()
    }

    /// Whether it happened to one of those that are meant: to a task, or to a session as a whole,
    /// which nobody means who is particular about its tasks.
    pub fn admits(&self, fact: &Fact) -> bool {
        match fact {
            Fact::Task(event) => self.matches(&event.task),
            Fact::SessionIdle(idle) => {
                let session_id = self.session_id.as_ref();
                !self.is_of_tasks() && session_id.is_none_or(|wanted| *wanted == idle.session_id)
            }
        }
    }

    /// Whether the task is one of those that are meant.
    pub fn matches(&self, task: &Task) -> bool {
        let spec = &task.spec;
        (self.ids.is_empty() || self.ids.contains(&task.id))
            && self
                .session_id
                .as_ref()
                .is_none_or(|wanted| *wanted == spec.session_id)
            && (self.kinds.is_empty() || self.kinds.contains(&spec.kind))
            && (self.states.is_empty() || self.states.contains(&task.state()))
            && self
                .labels
                .iter()
                .all(|(key, value)| spec.labels.get(key) == Some(value))
            && self
                .parent
                .as_ref()
                .is_none_or(|wanted| spec.parent.as_ref() == Some(wanted))
    }
}
