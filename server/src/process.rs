//! The operating system: starting, finding, observing and ending the processes of a task.
//!
//! The only part of the server with `nix` or `unsafe`, and the only one that names the shim's formats.
//! It knows processes, descriptors and files. It decides nothing: the supervisor decides which task is
//! stopped, and when.
//!
//! | module | holds |
//! | --- | --- |
//! | [`launch`] | the program and the environment of a task |
//! | [`containment`] | the cgroup or subreaper that keeps a tree together |
//! | [`shim`] | the per-task process: starting it, talking to it |
//! | [`task_file`] | the files of a task: records and output, on disk and in memory |
//! | [`tree`] | the processes of a task: listing them, finding and killing them without a shim |
//! | [`socket`] | the listening sockets |
//! | `host` | the machine: boot, clocks, locks, limits, signals, errors |

#![allow(unsafe_code)]

pub(crate) mod containment;
pub(crate) mod launch;
pub(crate) mod shim;
pub(crate) mod socket;
pub(crate) mod task_file;
pub(crate) mod tree;

mod host;

/// The end of the names of a ready probe's file and cgroup, behind the id of the task that it looks at.
const PROBE_SUFFIX: &str = ".probe";

#[cfg(all(feature = "crash-points", debug_assertions))]
pub(crate) use host::die_at_once;
pub(crate) use host::{
    boot::{BootId, boot_time},
    descriptor_limit,
    disk::{allocate, file_system_size},
    errno_text, error_text, ignore_child_signals,
    lock::StateLock,
    open_descriptors, own_uid, raise_descriptor_limit,
    schedule::Priority,
    signals::{signal_name, signal_number},
};
