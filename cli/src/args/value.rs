//! The parsers of values.

pub(crate) mod choices;
pub(crate) mod detach_key;
pub(crate) mod duration;
pub(crate) mod key_value;
pub(crate) mod listen_address;
pub(crate) mod signal;
pub(crate) mod size;
pub(crate) mod terminal_size;
