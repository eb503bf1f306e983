//! Text for a terminal: escaped, measured, aligned and coloured.

pub(crate) mod colour;
pub(crate) mod table;
pub(crate) mod text;
