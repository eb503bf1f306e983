//! The rule by which a task is ready.

use std::time::Duration;

use heeler_proto::v1::{ArgvCommand, ReadyPolicy, ReadyTimeoutAction, ready_policy::Probe};

use super::Spawn;
use crate::time;

/// ```
/// use std::time::Duration;
/// use heeler_client::Spawn;
///
/// let spawn = Spawn::shell("npm run dev")
///     .ready_when_listening(3000)
///     .ready_timeout(Duration::from_secs(30));
/// ```
impl Spawn {
    /// Ready when a process of the task listens on this TCP port; 0 for any port. The latest of the
    /// conditions counts.
    pub fn ready_when_listening(self, port: u16) -> Self {
        self.ready_when(Probe::Port(port.into()))
    }

    /// Ready when a GET of this `http:` URL is answered with a status from 200 to 399.
    pub fn ready_when_answered(self, url: impl Into<String>) -> Self {
        self.ready_when(Probe::HttpUrl(url.into()))
    }

    /// Ready when this program, with its arguments, exits with 0.
    pub fn ready_when_succeeds<S: Into<String>>(self, args: impl IntoIterator<Item = S>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        self.ready_when(Probe::Command(ArgvCommand { args }))
    }

    /// Ready when a line of the output matches this regular expression.
    pub fn ready_when_matched(self, regex: impl Into<String>) -> Self {
        self.ready_when(Probe::Pattern(regex.into()))
    }

    fn ready_when(mut self, probe: Probe) -> Self {
        self.ready().probe = Some(probe);
        self
    }

    /// Time between two looks: 1 s unless set. The first ones follow faster. A pattern has none.
    pub fn ready_interval(mut self, interval: Duration) -> Self {
        self.ready().interval = Some(time::to_proto(interval));
        self
    }

    /// Time from the start within which the task must be ready.
    pub fn ready_timeout(mut self, timeout: Duration) -> Self {
        self.ready().timeout = Some(time::to_proto(timeout));
        self
    }

    /// Action when that time is over, besides the NOT_READY event: NOTIFY unless set.
    pub fn on_ready_timeout(mut self, action: ReadyTimeoutAction) -> Self {
        self.ready().on_timeout = action.into();
        self
    }

    fn ready(&mut self) -> &mut ReadyPolicy {
        self.spec.ready.get_or_insert_default()
    }
}
