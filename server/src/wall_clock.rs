//! The wall clock, for times that people and clients see. No timer depends on it.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::task::Timestamp;

impl Timestamp {
    /// The present time; 1970 if the clock is set before it.
    pub fn now() -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        time.unwrap_or_default().into()
    }
}
