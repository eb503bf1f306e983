//! The description of a task for its shim.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use heeler_shim::wire::Order;

use crate::{process::launch::EnvBlock, task::TaskUid};

/// A task for a shim to start.
#[derive(Debug)]
pub struct Launch<'a> {
    pub uid: TaskUid,
    /// The file for records and output; it must not exist yet.
    pub task_file: &'a Path,
    /// The memory file in which the output begins; `None`: the output begins in the task file. See
    /// [`TaskDir::reserve_memory`](crate::process::task_file::TaskDir::reserve_memory).
    pub memory: Option<&'a Path>,
    /// The cgroup to create for the task.
    pub cgroup: Option<&'a Path>,
    pub working_directory: &'a Path,
    /// The file to execute.
    pub program: &'a Path,
    /// The arguments, beginning with the program's name.
    pub argv: &'a [String],
    pub env: &'a EnvBlock,
}

impl Launch<'_> {
    /// Encodes the order to begin, and the description behind it.
    pub(super) fn encode(&self) -> Vec<u8> {
        let order = |bytes| Order::Begin {
            bytes,
            arguments: self.argv.len() as u64,
            variables: self.env.count() as u64,
        };
        let mut out = order(0).encode().to_vec();
        let header = out.len();
        out.extend_from_slice(self.uid.as_bytes());
        let mut text = |bytes: &[u8]| {
            out.extend_from_slice(bytes);
            out.push(0);
        };
        text(self.task_file.as_os_str().as_bytes());
        for optional in [self.memory, self.cgroup] {
            text(optional.map_or(OsStr::new(""), Path::as_os_str).as_bytes());
        }
        text(self.working_directory.as_os_str().as_bytes());
        text(self.program.as_os_str().as_bytes());
        for argument in self.argv {
            text(argument.as_bytes());
        }
        out.extend_from_slice(self.env.as_bytes());
        let bytes = (out.len() - header) as u64;
        out[..header].copy_from_slice(&order(bytes).encode());
        out
    }
}
