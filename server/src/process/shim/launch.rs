//! The description of a task for its shim.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use heeler_shim::{
    input::Stdin,
    output_policy::{self, OnLimit},
    wire::Order,
};

use crate::{
    process::launch::EnvBlock,
    task::{OnOutputLimit, OutputPolicy, TaskUid},
};

const _: () = {
    assert!(OutputPolicy::MIN_MAX_BYTES == output_policy::MIN_OUTPUT_BYTES);
    assert!(OutputPolicy::MIN_TAIL_BYTES == output_policy::MIN_TAIL_BYTES);
};

/// The treatment of a task whose leader has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    End,
    /// The shim keeps the task, to start it again.
    Keep,
}

/// A task for a shim to start.
#[derive(Debug)]
pub struct Launch<'a> {
    pub uid: TaskUid,
    pub after_failure: AfterFailure,
    pub output: &'a OutputPolicy,
    pub stdin: Stdin,
    /// The most output on disk, whatever the policy says.
    pub output_budget: u64,
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
        let mut out = match self.after_failure {
            AfterFailure::End => Vec::new(),
            AfterFailure::Keep => Order::KeepForRestart.encode().to_vec(),
        };
        let begin = out.len();
        out.extend_from_slice(&order(0).encode());
        let header = out.len();
        out.extend_from_slice(self.uid.as_bytes());
        out.extend_from_slice(&self.policy().encode());
        out.extend_from_slice(&self.stdin.encode());
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
        out[begin..header].copy_from_slice(&order(bytes).encode());
        out
    }

    fn policy(&self) -> output_policy::OutputPolicy {
        output_policy::OutputPolicy {
            max_bytes: self.output.max_bytes,
            head_bytes: self.output.head_bytes,
            on_limit: match self.output.on_limit {
                OnOutputLimit::Rotate => OnLimit::Rotate,
                OnOutputLimit::Truncate => OnLimit::Truncate,
                OnOutputLimit::Kill => OnLimit::Kill,
            },
            budget: self.output_budget,
        }
    }
}
