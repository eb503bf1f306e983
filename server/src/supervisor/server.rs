//! The work of the supervisor as a whole, apart from any single task.
//!
//! | file | when |
//! | --- | --- |
//! | `recovery` | at start-up: takes over the live tasks of an earlier server |
//! | `lost_tasks` | at start-up: skips the ids of tasks that the journal has lost |
//! | `leftovers` | after start-up: files, memory and cgroups that belong to no task |
//! | `retention` | all the time: prunes finished tasks and old events, and keeps room in memory |
//! | `shutdown` | at the end: stops the tasks, or leaves them to the next server |

pub(super) mod haste;
mod leftovers;
mod lost_tasks;
pub(super) mod meters;
pub(super) mod recovery;
mod retention;
pub(super) mod shutdown;

pub(super) use retention::{MemoryRoom, OutputBudget};
