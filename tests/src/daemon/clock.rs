//! The wall clock of one daemon, which a test sets without changing that of the machine.

use std::fs;

use crate::{Daemon, skipped};

const VARIABLE: &str = "HEELER_WALL_CLOCK_OFFSET_FILE";

impl Daemon {
    /// Starts a daemon whose wall clock can be set. Returns `None`, after reporting a skip, where the
    /// build does not allow it.
    pub async fn with_settable_clock() -> Option<Self> {
        if !super::crash::points_are_built_in() {
            skipped("the wall clock of this build cannot be set");
            return None;
        }
        let mut daemon = Self::builder().prepare();
        let file = daemon.path("wall-clock");
        daemon.builder.env.push((VARIABLE.into(), file.into()));
        daemon.restart().await;
        Some(daemon)
    }

    /// Sets its wall clock this many seconds ahead of the machine's.
    pub fn set_wall_clock(&self, seconds: i64) {
        // The daemon may read the file at any time.
        let new = self.path("wall-clock.new");
        fs::write(&new, seconds.to_string()).unwrap();
        fs::rename(new, self.path("wall-clock")).unwrap();
    }
}
