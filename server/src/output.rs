//! Output as lines and as text: the rules, without I/O.
//!
//! | module | owns |
//! | --- | --- |
//! | `lines` | the lines of the two streams, from pieces of output |
//! | `pattern` | a regular expression for a line |
//! | `select` | the lines that a filter selects, with their context |
//! | `plain` | text without terminal escape sequences |
//! | `summary` | the end of a task in words |

pub(crate) mod lines;
pub(crate) mod pattern;
pub(crate) mod plain;
pub(crate) mod select;
pub(crate) mod summary;
