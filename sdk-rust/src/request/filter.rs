//! A selection of tasks.

use heeler_proto::v1::{Placement, TaskFilter, TaskKind, TaskState};

/// A selection of tasks: a task is selected if it matches every field that is set.
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

    /// One of these ids. Several calls add up.
    pub fn task(mut self, id: impl Into<String>) -> Self {
        self.message.task_ids.push(id.into());
        self
    }

    /// One of these ids. Several calls add up.
    pub fn tasks<S: Into<String>>(mut self, ids: impl IntoIterator<Item = S>) -> Self {
        self.message
            .task_ids
            .extend(ids.into_iter().map(Into::into));
        self
    }

    /// This session.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.message.session_id = id.into();
        self
    }

    /// One of these kinds. Several calls add up.
    pub fn kind(mut self, kind: TaskKind) -> Self {
        self.message.kinds.push(kind.into());
        self
    }

    /// One of these states. Several calls add up.
    pub fn state(mut self, state: TaskState) -> Self {
        self.message.states.push(state.into());
        self
    }

    /// With this label. Several calls must all match.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.message.labels.insert(key.into(), value.into());
        self
    }

    /// Spawned by this task.
    pub fn parent(mut self, id: impl Into<String>) -> Self {
        self.message.parent_id = id.into();
        self
    }

    /// Stale, or not stale.
    pub fn stale(mut self, stale: bool) -> Self {
        self.message.stale = Some(stale);
        self
    }

    /// In the foreground, or in the background.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.message.placement = placement.into();
        self
    }

    /// Started in this directory or below it: an absolute path.
    pub fn directory(mut self, path: impl Into<String>) -> Self {
        self.message.directory = path.into();
        self
    }

    /// With a process that listens on this TCP port, so a live task. Not for a wait or a watch.
    pub fn port(mut self, port: u16) -> Self {
        self.message.port = port.into();
        self
    }

    /// In this queue.
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.message.queue = name.into();
        self
    }

    /// With this name, exactly.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.message.name = name.into();
        self
    }

    /// With an id that begins so, or whose characters after the dash do.
    pub fn id_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.message.id_prefix = prefix.into();
        self
    }
}

impl From<Filter> for TaskFilter {
    fn from(filter: Filter) -> Self {
        filter.message
    }
}
