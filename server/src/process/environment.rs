//! The variables that a task is started with, in layers: the server's own, the non-interactive
//! defaults, what the request takes away, what it sets, and the task's mark.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use crate::task::{EnvironmentDefaults, SpawnRequest, TaskId, TaskUid};

/// What belongs to Heeler, and is neither inherited nor to be set by a request.
pub const RESERVED_PREFIX: &str = "HEELER_";
/// The variable by which a process can be told to belong to a task, wherever it went.
pub const MARK: &str = "HEELER_TASK_UID";

const TASK_ID: &str = "HEELER_TASK_ID";
const ADDRESS: &str = "HEELER_ADDR";
const TOKEN_FILE: &str = "HEELER_TOKEN_FILE";

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
    plain: Layer,
    non_interactive: Layer,
    reach: Reach,
}

/// How a task reaches the server.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Where it listens.
    pub address: String,
    /// What has to be shown there, if anything has.
    pub token_file: Option<PathBuf>,
}

/// Variables as a program is given them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvBlock {
    /// Each ends in a NUL.
    texts: Vec<u8>,
    count: usize,
}

/// Variables, and the block that is made of them when a request changes nothing.
#[derive(Debug, Clone)]
struct Layer {
    vars: BTreeMap<OsString, OsString>,
    block: EnvBlock,
}

impl BaseEnv {
    /// From this process's environment, and how tasks reach the server.
    pub fn from_process(reach: Reach) -> Self {
        Self::new(std::env::vars_os(), reach)
    }

    fn new(vars: impl IntoIterator<Item = (OsString, OsString)>, reach: Reach) -> Self {
        let ours = |name: &OsStr| name.as_bytes().starts_with(RESERVED_PREFIX.as_bytes());
        let vars: BTreeMap<_, _> = vars.into_iter().filter(|(name, _)| !ours(name)).collect();
        let mut dressed = vars.clone();
        dressed.extend(NON_INTERACTIVE.map(|(name, value)| (name.into(), value.into())));
        Self {
            plain: Layer::new(vars),
            non_interactive: Layer::new(dressed),
            reach,
        }
    }

    /// The user's home, where tasks start that were given no directory.
    pub fn home(&self) -> Option<&OsStr> {
        self.plain.get("HOME")
    }

    /// Where the programs of a task are looked for, if anything says so.
    pub fn path<'a>(&'a self, request: &'a SpawnRequest) -> Option<&'a OsStr> {
        const PATH: &str = "PATH";
        match request.variables.get(PATH) {
            Some(path) => Some(OsStr::new(path)),
            None if request
                .spec
                .environment
                .remove
                .iter()
                .any(|name| name == PATH) =>
            {
                None
            }
            None => self.layer(request).get(PATH),
        }
    }

    /// Everything that a task is started with.
    pub fn for_task(&self, request: &SpawnRequest, id: &TaskId, uid: TaskUid) -> EnvBlock {
        let base = self.layer(request);
        let mut block =
            match request.variables.is_empty() && request.spec.environment.remove.is_empty() {
                true => base.block.clone(),
                false => base.changed_by(request),
            };
        block.push(TASK_ID, id.as_str());
        block.push(MARK, uid.to_string());
        block.push(ADDRESS, &self.reach.address);
        if let Some(path) = &self.reach.token_file {
            block.push(TOKEN_FILE, path);
        }
        block
    }

    fn layer(&self, request: &SpawnRequest) -> &Layer {
        match request.spec.environment.defaults {
            EnvironmentDefaults::NonInteractive => &self.non_interactive,
            EnvironmentDefaults::None => &self.plain,
        }
    }
}

impl Layer {
    fn new(vars: BTreeMap<OsString, OsString>) -> Self {
        let mut block = EnvBlock::default();
        for (name, value) in &vars {
            block.push(name, value);
        }
        Self { vars, block }
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    fn changed_by(&self, request: &SpawnRequest) -> EnvBlock {
        let mut block = EnvBlock::default();
        for (name, value) in &self.vars {
            let changed = name.to_str().is_some_and(|name| {
                request.variables.contains_key(name)
                    || request
                        .spec
                        .environment
                        .remove
                        .iter()
                        .any(|gone| gone == name)
            });
            if !changed {
                block.push(name, value);
            }
        }
        for (name, value) in &request.variables {
            block.push(name, value);
        }
        block
    }
}

impl EnvBlock {
    fn push(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        self.texts.extend_from_slice(name.as_ref().as_bytes());
        self.texts.push(b'=');
        self.texts.extend_from_slice(value.as_ref().as_bytes());
        self.texts.push(0);
        self.count += 1;
    }

    /// The variables one behind the other, each ended by a NUL.
    pub fn as_bytes(&self) -> &[u8] {
        &self.texts
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }
}
