//! The figures and the table that shows them.

pub(crate) mod figures;
pub(crate) mod report;
