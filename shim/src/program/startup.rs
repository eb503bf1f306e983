//! From exec to a shim that can take a task.

pub(crate) mod arguments;
pub(crate) mod probe;
pub(crate) mod setup;
