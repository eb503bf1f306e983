//! Looks at live tasks from outside: whether they are ready, and the ports on which they listen.

mod ports;
pub(super) mod probe;
