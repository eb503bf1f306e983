//! The variables that a task is started with, in layers: the server's own, the non-interactive
//! defaults, what the request takes away, what it sets, and the task's mark.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

use crate::task::{EnvDefaults, SpawnRequest, TaskId, TaskUid};

/// What belongs to Heeler, and is neither inherited nor to be set by a request.
pub const RESERVED_PREFIX: &str = "HEELER_";
/// The variable by which a process can be told to belong to a task, wherever it went.
pub const MARK: &str = "HEELER_TASK_UID";

const TASK_ID: &str = "HEELER_TASK_ID";
const ADDRESS: &str = "HEELER_ADDR";

/// What tells a program that nobody is looking.
const NON_INTERACTIVE: [(&str, &str); 13] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("NO_COLOR", "1"),
    ("CLICOLOR", "0"),
    ("TERM", "dumb"),
];

/// The variables that every task begins with: the server's own, less Heeler's.
#[derive(Debug, Clone)]
pub struct BaseEnv {
    vars: BTreeMap<OsString, OsString>,
    address: String,
}

impl BaseEnv {
    /// From this process's environment; tasks reach the server at `address`.
    pub fn from_process(address: String) -> Self {
        Self::new(std::env::vars_os(), address)
    }

    fn new(vars: impl IntoIterator<Item = (OsString, OsString)>, address: String) -> Self {
        let ours = |name: &OsStr| name.as_bytes().starts_with(RESERVED_PREFIX.as_bytes());
        Self {
            vars: vars.into_iter().filter(|(name, _)| !ours(name)).collect(),
            address,
        }
    }

    /// The user's home, where tasks start that were given no directory.
    pub fn home(&self) -> Option<&OsStr> {
        self.vars.get(OsStr::new("HOME")).map(OsString::as_os_str)
    }

    /// Everything that a task is started with.
    pub fn for_task(
        &self,
        request: &SpawnRequest,
        id: &TaskId,
        uid: TaskUid,
    ) -> BTreeMap<OsString, OsString> {
        let mut vars = self.for_lookup(request);
        vars.insert(TASK_ID.into(), id.as_str().into());
        vars.insert(MARK.into(), uid.to_string().into());
        vars.insert(ADDRESS.into(), self.address.as_str().into());
        vars
    }

    /// The same without what only a task that exists has: enough to find its program.
    pub fn for_lookup(&self, request: &SpawnRequest) -> BTreeMap<OsString, OsString> {
        let mut vars = self.vars.clone();
        match request.env_defaults {
            EnvDefaults::NonInteractive => {
                vars.extend(NON_INTERACTIVE.map(|(name, value)| (name.into(), value.into())));
            }
            EnvDefaults::None => {}
        }
        for name in &request.env_remove {
            vars.remove(OsStr::new(name));
        }
        vars.extend(
            request
                .env
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        vars
    }
}
