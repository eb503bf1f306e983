//! The floors: what the system itself costs, without the daemon.

pub(crate) mod bare;
pub(crate) mod bare_server;
pub(crate) mod cgroup;
