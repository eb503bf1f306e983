//! The daemon's process: run in this process by `serve`, started by a client that finds none, and waited
//! for by `shutdown`; and the trees whose daemon is gone. The server itself is `heeler_server`.

pub(crate) mod exit_wait;
pub(crate) mod orphans;
pub(crate) mod peer;
pub(crate) mod serve;
pub(crate) mod start;
pub(crate) mod unit;
