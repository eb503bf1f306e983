//! What an operator can choose.

use std::path::PathBuf;

use crate::{journal::Durability, process::containment::Wanted};

/// How the daemon is to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where everything is kept; private to its user, and to one server at a time.
    pub state_dir: PathBuf,
    /// The Unix sockets to listen on; at least one.
    pub listen: Vec<PathBuf>,
    /// Which rung of the kill ladder to stand on.
    pub containment: Wanted,
    /// What a recorded fact survives.
    pub durability: Durability,
    /// How many tasks may be live at once.
    pub max_tasks: usize,
    /// Where tasks start that were given no directory; otherwise the user's home.
    pub working_directory: Option<PathBuf>,
    /// What becomes of the live tasks when the server is told to end from outside.
    pub on_exit: OnExit,
}

/// What becomes of the live tasks when the server is told to end from outside. A Shutdown call says for
/// itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExit {
    /// They run on, and the next server takes them back.
    #[default]
    LeaveRunning,
    /// They are stopped, and proven gone, before the server ends.
    StopTasks,
}

impl Config {
    /// How many tasks may be live where nobody says otherwise: what the usual limits on processes
    /// and descriptors leave room for.
    pub const DEFAULT_MAX_TASKS: usize = 10_000;
}
