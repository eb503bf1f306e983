//! Storage: full and failing disks, damaged files and journals.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disk;
mod task_file;
mod wal;
