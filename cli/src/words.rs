//! The words that people type: those that stand for tasks, their completion by the shell, and suggestions for
//! misspelt commands.

pub(crate) mod completion;
pub(crate) mod suggestion;
pub(crate) mod task_ref;
