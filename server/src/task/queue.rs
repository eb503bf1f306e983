//! The settings of a queue.

/// The settings of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueSettings {
    /// Maximum number of its tasks that run at a time.
    pub slots: u32,
    /// True if no further task is admitted.
    pub paused: bool,
}

impl Default for QueueSettings {
    /// The settings of a queue that was never configured.
    fn default() -> Self {
        Self {
            slots: 1,
            paused: false,
        }
    }
}
