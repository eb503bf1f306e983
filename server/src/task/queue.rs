//! How a queue is set.

/// What a queue lets happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSettings {
    /// How many of its tasks may run at a time.
    pub slots: u32,
    /// Whether it lets no further task begin.
    pub paused: bool,
}

impl Default for QueueSettings {
    /// Those of a queue that nobody has set.
    fn default() -> Self {
        Self {
            slots: 1,
            paused: false,
        }
    }
}
