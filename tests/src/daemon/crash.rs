//! Crash points: named points of the server at which it kills itself or panics, if its environment says
//! so.

use std::{collections::BTreeMap, os::unix::process::ExitStatusExt};

use super::containment;
use crate::{DEADLINE, Daemon};

const VARIABLE: &str = "HEELER_CRASH_AT";
const PANIC: &str = "HEELER_PANIC_AT";
const MESSAGE: &str = "heeler: dies at ";

/// True if the daemon under test has crash points. A release build, or one made elsewhere, has none.
pub fn points_are_built_in() -> bool {
    let is_own_build =
        containment::is_rerun_of_own_build() || std::env::var_os("HEELER_TEST_BINARY").is_none();
    cfg!(debug_assertions) && is_own_build
}

impl Daemon {
    /// Makes later starts die at a point: `NAME` or `NAME:NTH`, where `*` is any name.
    pub fn die_at(&mut self, point: &str) {
        self.live_on();
        self.builder.env.push((VARIABLE.into(), point.into()));
    }

    /// Makes later starts panic at a point, and live on.
    pub fn panic_at(&mut self, point: &str) {
        self.builder.env.push((PANIC.into(), point.into()));
    }

    /// Makes later starts live.
    pub fn live_on(&mut self) {
        self.builder.env.retain(|(name, _)| name != VARIABLE);
    }

    /// Waits for its death at a point, and returns the point's name.
    pub fn died(&mut self) -> String {
        let status = self.exited(DEADLINE);
        let status = status.unwrap_or_else(|| panic!("it did not die:\n{}", self.log()));
        assert_eq!(status.signal(), Some(9), "{status}:\n{}", self.log());
        let log = self.log();
        let last = log
            .lines()
            .filter_map(|line| line.strip_prefix(MESSAGE))
            .next_back();
        last.expect("the name of the point").to_owned()
    }

    /// The number of deaths at each point.
    pub fn deaths(&self) -> BTreeMap<String, usize> {
        let mut deaths = BTreeMap::new();
        let log = self.log();
        for point in log.lines().filter_map(|line| line.strip_prefix(MESSAGE)) {
            *deaths.entry(point.to_owned()).or_default() += 1;
        }
        deaths
    }
}
