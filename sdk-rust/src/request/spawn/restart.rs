//! Restarts on failure.

use std::time::Duration;

use heeler_proto::v1::RestartPolicy;

use super::Spawn;
use crate::time;

/// ```
/// use std::time::Duration;
/// use heeler_client::Spawn;
///
/// let spawn = Spawn::shell("npm run dev")
///     .restart_on_failure()
///     .max_restarts(3)
///     .restart_delay(Duration::from_millis(500));
/// ```
impl Spawn {
    /// Starts the task again, under the same id, when its leader fails.
    pub fn restart_on_failure(mut self) -> Self {
        self.restart();
        self
    }

    /// The most restarts in a row; 0 for no limit. 5 unless set.
    pub fn max_restarts(mut self, max: u32) -> Self {
        self.restart().max_restarts = Some(max);
        self
    }

    /// Time from a failure to the next attempt, which doubles with every further failure in a row: 1 s unless set.
    pub fn restart_delay(mut self, delay: Duration) -> Self {
        self.restart().delay = Some(time::to_proto(delay));
        self
    }

    /// The longest such time: 30 s unless set.
    pub fn max_restart_delay(mut self, delay: Duration) -> Self {
        self.restart().max_delay = Some(time::to_proto(delay));
        self
    }

    /// The run of an attempt after which its failure is the first one in a row again: 60 s unless set.
    pub fn restart_reset_after(mut self, run: Duration) -> Self {
        self.restart().reset_after = Some(time::to_proto(run));
        self
    }

    fn restart(&mut self) -> &mut RestartPolicy {
        self.spec.restart.get_or_insert_default()
    }
}
