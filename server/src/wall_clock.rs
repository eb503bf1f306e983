//! The wall clock, for times that people and clients see. No timer depends on it.
//!
//! In debug builds with the feature `crash-points`, which the tests enable, a test can set the clock of
//! one server: `HEELER_WALL_CLOCK_OFFSET_FILE` names a file with the number of seconds to add, which is
//! read at every look at the clock. Everywhere else this is the clock of the machine.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::task::Timestamp;
#[cfg(all(feature = "crash-points", debug_assertions))]
use settable::shown;

impl Timestamp {
    /// The present time; 1970 if the clock is set before it.
    pub fn now() -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        shown(time.unwrap_or_default()).into()
    }
}

#[cfg(not(all(feature = "crash-points", debug_assertions)))]
#[inline(always)]
const fn shown(since_1970: std::time::Duration) -> std::time::Duration {
    since_1970
}

#[cfg(all(feature = "crash-points", debug_assertions))]
mod settable {
    use std::{fs, path::PathBuf, sync::LazyLock, time::Duration};

    const VARIABLE: &str = "HEELER_WALL_CLOCK_OFFSET_FILE";

    static FILE: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::var_os(VARIABLE).map(PathBuf::from));

    pub(super) fn shown(since_1970: Duration) -> Duration {
        let text = FILE.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let seconds = text.and_then(|text| text.trim().parse().ok());
        shift(since_1970, seconds.unwrap_or(0))
    }

    fn shift(time: Duration, seconds: i64) -> Duration {
        let span = Duration::from_secs(seconds.unsigned_abs());
        match seconds {
            0.. => time.saturating_add(span),
            _ => time.saturating_sub(span),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_clock_is_set_forward_and_back() {
            let time = Duration::from_millis(5500);
            assert_eq!(shift(time, 2), Duration::from_millis(7500));
            assert_eq!(shift(time, -2), Duration::from_millis(3500));
            assert_eq!(shift(time, -6), Duration::ZERO);
        }
    }
}
