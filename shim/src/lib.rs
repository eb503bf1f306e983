//! The formats that a shim and the server share: what they send to each other, and what a shim leaves
//! on disk.
//!
//! One inode per task: the *task file*. Its first page holds the records of the task ([`record`]); the
//! rest is its output ([`log`]), unless that is still in a memory file ([`memory_file`]). A live shim
//! holds an exclusive `flock` on its task file and listens on an abstract socket named for the task
//! ([`wire`]).
//!
//! A server may meet shims of another build, so every format carries a version. A build reads one
//! version and refuses every other one by name.

#![no_std]

#[cfg(test)]
extern crate std;

pub mod checksum;
pub mod input;
pub mod layout;
pub mod limit_tag;
pub mod log;
pub mod memory_file;
pub mod output_policy;
pub mod procfs;
pub mod record;
pub mod relay;
pub mod stamp;
pub mod wire;
