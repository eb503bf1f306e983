//! The shim's modules by their names in the shim, as far as the description of a task needs them.

pub(crate) mod pages;
mod task;

pub use task::orders;
