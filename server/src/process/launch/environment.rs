//! The environment of a task, in layers: the server's own variables, the non-interactive defaults, the
//! request's removals, the request's variables, and Heeler's own with the environment tag. A terminal sets its
//! type after the defaults.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt,
};

use crate::process::tree::start_ticks as start_ticks_of;
use crate::task::{EnvironmentDefaults, SpawnRequest, Task, TaskUid};

/// The prefix of Heeler's own variables. They are not inherited, and a request may not set them.
pub(crate) const RESERVED_PREFIX: &str = "HEELER_";
const TRACE_PARENT: &str = "TRACEPARENT";
/// The variables that name a span. Tasks do not inherit the server's.
const OF_TRACE: [&str; 2] = [TRACE_PARENT, "TRACESTATE"];
/// The variable that identifies a process of a task, wherever it is in the process tree.
pub(in crate::process) const ENVIRONMENT_TAG: &str = "HEELER_TASK_UID";

const TASK_ID: &str = "HEELER_TASK_ID";
const ADDRESS: &str = "HEELER_ADDR";
const TOKEN: &str = "HEELER_TOKEN";

/// Variables that make programs run without a terminal, a pager or an editor.
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

const TERM: &str = "TERM";
/// The variables that describe a terminal: that of the server is not the task's.
const OF_TERMINAL: [&str; 3] = [TERM, "COLUMNS", "LINES"];

/// The variables that every task inherits: the server's own, without Heeler's.
#[derive(Debug, Clone)]
pub(crate) struct BaseEnv {
    plain: Layer,
    non_interactive: Layer,
    server: ServerAddress,
}

/// The address at which a task reaches the server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerAddress {
    pub(crate) address: String,
    /// True if the server listens on TCP, HTTP included: there a task identifies itself by a token of its own. A task never
    /// gets the server's token, which has the user's rights.
    pub(crate) takes_tokens: bool,
}

/// Variables in the form that exec takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvBlock {
    /// `name=value` texts that each end in a NUL.
    texts: Vec<u8>,
    count: usize,
}

/// Variables, and their block for requests that change none of them.
#[derive(Debug, Clone)]
struct Layer {
    vars: BTreeMap<OsString, OsString>,
    block: EnvBlock,
}

impl BaseEnv {
    pub(crate) fn from_process(server: ServerAddress) -> Self {
        Self::new(std::env::vars_os(), server)
    }

    fn new(vars: impl IntoIterator<Item = (OsString, OsString)>, server: ServerAddress) -> Self {
        let is_left_out = |name: &OsStr| {
            name.as_bytes().starts_with(RESERVED_PREFIX.as_bytes())
                || OF_TRACE.iter().any(|own| name == *own)
        };
        let vars: BTreeMap<_, _> = vars
            .into_iter()
            .filter(|(name, _)| !is_left_out(name))
            .collect();
        let mut with_defaults = vars.clone();
        with_defaults.extend(NON_INTERACTIVE.map(|(name, value)| (name.into(), value.into())));
        Self {
            plain: Layer::new(vars),
            non_interactive: Layer::new(with_defaults),
            server,
        }
    }

    /// The user's home, the default working directory of a task.
    pub(crate) fn home(&self) -> Option<&OsStr> {
        self.plain.get("HOME")
    }

    /// The task's `PATH`, if it has one.
    pub(crate) fn path<'a>(&'a self, request: &'a SpawnRequest) -> Option<&'a OsStr> {
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

    /// Returns the whole environment of a task.
    ///
    /// `token` makes the task's token, if it needs one.
    pub(crate) fn for_task(
        &self,
        request: &SpawnRequest,
        task: &Task,
        token: impl FnOnce() -> String,
    ) -> EnvBlock {
        let base = self.layer(request);
        let spec = &request.spec;
        let is_plain = request.variables.is_empty()
            && spec.environment.remove.is_empty()
            && spec.terminal.is_none();
        let mut block = match is_plain {
            true => base.block.clone(),
            false => base.changed_by(request),
        };
        if let Some(span) = &task.span
            && !request.variables.contains_key(TRACE_PARENT)
        {
            block.push(TRACE_PARENT, span.context.to_string());
        }
        block.push(TASK_ID, task.id.as_str());
        block.push(ENVIRONMENT_TAG, task.uid.to_string());
        block.push(ADDRESS, &self.server.address);
        if self.server.takes_tokens {
            block.push(TOKEN, token());
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
        let removed = &request.spec.environment.remove;
        let terminal = request.spec.terminal.as_ref();
        let is_changed = |name: &str| {
            request.variables.contains_key(name) || removed.iter().any(|gone| gone == name)
        };
        for (name, value) in &self.vars {
            let changed = name.to_str().is_some_and(|name| {
                is_changed(name) || (terminal.is_some() && OF_TERMINAL.contains(&name))
            });
            if !changed {
                block.push(name, value);
            }
        }
        if let Some(terminal) = terminal.filter(|_| !is_changed(TERM)) {
            block.push(TERM, &terminal.term);
        }
        for (name, value) in &request.variables {
            block.push(name, value);
        }
        block
    }
}

impl EnvBlock {
    pub(in crate::process) fn push(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        self.texts.extend_from_slice(name.as_ref().as_bytes());
        self.texts.push(b'=');
        self.texts.extend_from_slice(value.as_ref().as_bytes());
        self.texts.push(0);
        self.count += 1;
    }

    /// The environment that a process was started with, if it can be read. A program that overwrites the
    /// memory of its environment, as some do to set their title, hides it.
    pub(crate) fn of_process(pid: u32, start_ticks: u64) -> io::Result<Self> {
        let environ = fs::read(format!("/proc/{pid}/environ"))?;
        // The pid may be another process's by now.
        if start_ticks_of(pid as i32) != Some(start_ticks) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut block = Self::default();
        for (name, value) in variables(&environ) {
            block.push(OsStr::from_bytes(name), OsStr::from_bytes(value));
        }
        Ok(block)
    }

    /// The value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        let mut all = variables(&self.texts);
        let (_, value) = all.find(|(own, _)| *own == name.as_bytes())?;
        Some(OsStr::from_bytes(value))
    }

    /// The same variables with another environment tag.
    pub(crate) fn tagged(&self, uid: TaskUid) -> Self {
        let mut block = Self::default();
        for (name, value) in variables(&self.texts) {
            if name != ENVIRONMENT_TAG.as_bytes() {
                block.push(OsStr::from_bytes(name), OsStr::from_bytes(value));
            }
        }
        block.push(ENVIRONMENT_TAG, uid.to_string());
        block
    }

    /// The variables one after the other, each ended by a NUL.
    pub(in crate::process) fn as_bytes(&self) -> &[u8] {
        &self.texts
    }

    pub(in crate::process) fn count(&self) -> usize {
        self.count
    }
}

/// The names and values of `name=value` texts that each end in a NUL.
fn variables(texts: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let texts = texts.split(|byte| *byte == 0);
    texts.filter_map(|text| {
        let at = text.iter().position(|byte| *byte == b'=')?;
        (at > 0).then(|| (&text[..at], &text[at + 1..]))
    })
}
