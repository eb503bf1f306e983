//! What a shim and the server say to each other, and what a shim leaves on disk.
//!
//! One inode a task: the *task file*. Its first page holds the task's identity and what became of
//! it ([`record`]); the rest is its output ([`log`]), unless that is still in memory ([`memory`]).
//! While the shim lives it holds an exclusive `flock` on the file, and answers on an abstract socket
//! named for the task ([`wire`]).
//!
//! Both ends may be of different builds: every format here carries a version, and what a released
//! version wrote stays readable.

#![no_std]

#[cfg(test)]
extern crate std;

pub mod checksum;
pub mod layout;
pub mod log;
pub mod memory;
pub mod procfs;
pub mod record;
pub mod wire;
