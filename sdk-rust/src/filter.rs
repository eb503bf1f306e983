//! Which tasks are meant.

use heeler_proto::v1::{TaskFilter, TaskKind, TaskState};

/// Which tasks are meant. Everything that is set must match; nothing set matches all.
///
/// ```
/// use heeler_client::{Filter, v1::TaskKind};
///
/// let agents = Filter::all().session("s1").kind(TaskKind::Agent).label("team", "red");
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    message: TaskFilter,
}

impl Filter {
    /// Every task.
    pub fn all() -> Self {
        Self::default()
    }

    /// This task, or another that was named like this.
    pub fn task(mut self, id: impl Into<String>) -> Self {
        self.message.task_ids.push(id.into());
        self
    }

    /// Of this session.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.message.session_id = id.into();
        self
    }

    /// Of this kind, or of another that was named like this.
    pub fn kind(mut self, kind: TaskKind) -> Self {
        self.message.kinds.push(kind.into());
        self
    }

    /// In this state, or in another that was named like this.
    pub fn state(mut self, state: TaskState) -> Self {
        self.message.states.push(state.into());
        self
    }

    /// With this label at this value.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.message.labels.insert(key.into(), value.into());
        self
    }

    /// Spawned by this task.
    pub fn parent(mut self, id: impl Into<String>) -> Self {
        self.message.parent_id = id.into();
        self
    }
}

impl From<Filter> for TaskFilter {
    fn from(filter: Filter) -> Self {
        filter.message
    }
}
