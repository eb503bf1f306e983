//! The end of a task: its outcome, its cause and the proof that nothing is left.

pub(crate) mod causes;
pub(crate) mod outcome;
pub(crate) mod proof;
