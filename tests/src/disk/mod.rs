//! Disks for a daemon's state that are full or fail.

mod failing;
mod mount;
mod small;

pub use failing::FailingDisk;
pub(crate) use mount::{own_mounts, run};
pub use small::SmallDisk;
