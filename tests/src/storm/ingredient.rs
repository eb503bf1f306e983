//! The hardships that are mixed into a storm, each by its name.

/// A hardship for the server and its shims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ingredient {
    /// The state directory's disk is filled to the last byte.
    FullDisk,
    /// The server, its shims and its tasks can start no process and no thread.
    ProcessLimit,
    /// Shims, waiting and at work, are stopped.
    StoppedShims,
    /// Shims are killed.
    KilledShims,
    /// Watchers that do not read.
    SlowReaders,
    /// Calls without an end of their request, all on one connection.
    HalfOpenCalls,
}

const VARIABLE: &str = "HEELER_STORM_WITH";

impl Ingredient {
    pub const ALL: [Self; 6] = [
        Self::FullDisk,
        Self::ProcessLimit,
        Self::StoppedShims,
        Self::KilledShims,
        Self::SlowReaders,
        Self::HalfOpenCalls,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::FullDisk => "full-disk",
            Self::ProcessLimit => "process-limit",
            Self::StoppedShims => "stopped-shims",
            Self::KilledShims => "killed-shims",
            Self::SlowReaders => "slow-readers",
            Self::HalfOpenCalls => "half-open-calls",
        }
    }

    /// The ingredients that `HEELER_STORM_WITH` names, separated by commas; all if it is not set.
    pub fn chosen() -> Vec<Self> {
        let Ok(names) = std::env::var(VARIABLE) else {
            return Self::ALL.to_vec();
        };
        let named = |name: &str| {
            let found = Self::ALL.into_iter().find(|one| one.name() == name);
            found.unwrap_or_else(|| panic!("{VARIABLE}: no ingredient is called {name:?}"))
        };
        let names = names.split(',').filter(|name| !name.is_empty());
        names.map(named).collect()
    }
}
