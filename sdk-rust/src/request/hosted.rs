//! The hosted task to register.

use std::time::Duration;

use heeler_proto::v1::{
    ExclusiveMode, SpawnRequest, StaleAction, TaskKind, TaskSpec, WorkRegister,
};

use super::Spawn;
use crate::time;

/// A task whose work runs inside this program: see [`Client::host`].
///
/// As with [`Spawn`], each has a fresh `request_id`.
///
/// [`Client::host`]: crate::Client::host
///
/// ```
/// use std::time::Duration;
/// use heeler_client::Hosted;
///
/// let hosted = Hosted::new().session("s1").name("review").stale_after(Duration::from_secs(60));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Hosted {
    spawn: Spawn,
    lease: Option<Duration>,
}

impl Default for Hosted {
    fn default() -> Self {
        Self::new()
    }
}

impl Hosted {
    pub fn new() -> Self {
        Self::from(TaskSpec::default())
    }

    /// The time without a sign of this program after which the task is LOST: from 1 s to 1 h, 30 s unless
    /// set.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The conversation that the task belongs to.
    pub fn session(self, id: impl Into<String>) -> Self {
        self.with(|spawn| spawn.session(id))
    }

    /// A name for people.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.with(|spawn| spawn.name(name))
    }

    /// Data for the client's own filters.
    pub fn label(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|spawn| spawn.label(key, value))
    }

    /// The live task that this one is a child of.
    pub fn parent(self, id: impl Into<String>) -> Self {
        self.with(|spawn| spawn.parent(id))
    }

    /// Maximum time from the start on.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|spawn| spawn.timeout(timeout))
    }

    /// Maximum time without a heartbeat or progress, after which the task is stopped.
    pub fn idle_timeout(self, timeout: Duration) -> Self {
        self.with(|spawn| spawn.idle_timeout(timeout))
    }

    /// Time without a heartbeat or progress after which the task is stale, which an event announces.
    pub fn stale_after(self, span: Duration) -> Self {
        self.with(|spawn| spawn.stale_after(span))
    }

    /// Action when the task becomes stale, besides the event. Needs [`Hosted::stale_after`].
    pub fn on_stale(self, action: StaleAction) -> Self {
        self.with(|spawn| spawn.on_stale(action))
    }

    /// Time for a soft stop: 10 s unless set.
    pub fn soft_grace(self, grace: Duration) -> Self {
        self.with(|spawn| spawn.soft_grace(grace))
    }

    /// Time between the final request to stop and the end without a result: 5 s unless set.
    pub fn grace(self, grace: Duration) -> Self {
        self.with(|spawn| spawn.grace(grace))
    }

    /// The queue in which the task waits for a slot.
    pub fn queue(self, name: impl Into<String>) -> Self {
        self.with(|spawn| spawn.queue(name))
    }

    /// A key that only one live task has at a time, and the behaviour if it has a holder.
    pub fn exclusive(self, key: impl Into<String>, mode: ExclusiveMode) -> Self {
        self.with(|spawn| spawn.exclusive(key, mode))
    }

    /// Makes the registration safe to repeat, also across crashes of the caller.
    pub fn request_id(self, id: impl Into<String>) -> Self {
        self.with(|spawn| spawn.request_id(id))
    }

    fn with(mut self, set: impl FnOnce(Spawn) -> Spawn) -> Self {
        self.spawn = set(self.spawn);
        self
    }
}

impl From<TaskSpec> for Hosted {
    /// A task with this specification, and a fresh `request_id`.
    fn from(spec: TaskSpec) -> Self {
        let spawn = Spawn::from(spec).kind(TaskKind::Hosted);
        let lease = None;
        Self { spawn, lease }
    }
}

impl From<Hosted> for WorkRegister {
    fn from(hosted: Hosted) -> Self {
        let SpawnRequest { request_id, spec } = hosted.spawn.into();
        Self {
            request_id,
            spec,
            lease: hosted.lease.map(time::to_proto),
        }
    }
}
