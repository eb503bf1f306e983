//! Deaths at named points of the server: the daemon under test has them compiled in, and dies at the
//! one that its environment names, as `kill -9` would have it.

use std::{collections::BTreeMap, os::unix::process::ExitStatusExt};

use crate::{DEADLINE, Daemon};

const VARIABLE: &str = "HEELER_CRASH_AT";
const LAST_WORDS: &str = "heeler: dies at ";

/// Whether the daemon under test has crash points: one that was built elsewhere, or for release, has
/// none.
pub fn points_are_there() -> bool {
    cfg!(debug_assertions) && std::env::var_os("HEELER_TEST_BINARY").is_none()
}

impl Daemon {
    /// From its next start on it dies at this point: `NAME` or `NAME:NTH`, where `*` is any.
    pub fn die_at(&mut self, point: &str) {
        self.live_on();
        self.builder.env.push((VARIABLE.into(), point.into()));
    }

    /// From its next start on it lives.
    pub fn live_on(&mut self) {
        self.builder.env.retain(|(name, _)| name != VARIABLE);
    }

    /// Until it has died at a point, by SIGKILL; the point's name.
    pub fn died(&mut self) -> String {
        let status = self.exited(DEADLINE);
        let status = status.unwrap_or_else(|| panic!("it lives:\n{}", self.log()));
        assert_eq!(status.signal(), Some(9), "{status}:\n{}", self.log());
        let log = self.log();
        let last = log
            .lines()
            .filter_map(|line| line.strip_prefix(LAST_WORDS))
            .next_back();
        last.expect("its last words").to_owned()
    }

    /// How often it has died at each point.
    pub fn deaths(&self) -> BTreeMap<String, usize> {
        let mut deaths = BTreeMap::new();
        let log = self.log();
        for point in log.lines().filter_map(|line| line.strip_prefix(LAST_WORDS)) {
            *deaths.entry(point.to_owned()).or_default() += 1;
        }
        deaths
    }
}
