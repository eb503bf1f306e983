//! Containment: the mechanism that keeps a tree together.
//!
//! The better one is a cgroup v2 leaf for each task, below the server's own cgroup: the leader is created
//! in it, and one write kills every member. The other one is the shim alone, as subreaper. The choice is
//! made once, at start-up, by starting a child in a leaf.

mod cgroup;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

pub(super) use cgroup::members;
pub(crate) use cgroup::{kill, remove_tree};

use super::{PROBE_SUFFIX, shim::ShimPool};
use crate::task::{Containment, TaskId};

/// The operator's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContainmentSetting {
    /// A cgroup for each task if possible, else the subreaper.
    #[default]
    Auto,
    /// A cgroup for each task; the server does not start without.
    Cgroup,
    /// The subreaper, even where cgroups can be used.
    Subreaper,
}

/// The containment in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenContainment {
    /// Tasks get leaves in this cgroup.
    Cgroup {
        root: PathBuf,
    },
    Subreaper {
        reason: SubreaperReason,
    },
}

/// The reason for not using cgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubreaperReason {
    /// The operator's setting.
    Requested,
    /// Cgroups cannot be used.
    Unavailable(String),
}

/// The reason why cgroups cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContainmentError {
    #[error("no cgroup v2 file system is mounted")]
    NotMounted,
    #[error("the server's own cgroup is not visible below {0}")]
    NotVisible(PathBuf),
    #[error("the kernel has no cgroup.kill (it needs Linux 5.14)")]
    NoKill,
    #[error("cannot {operation} {}", path.display())]
    Io {
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl ChosenContainment {
    /// Returns the best containment that the setting permits and the machine supports.
    pub(crate) fn choose(
        setting: ContainmentSetting,
        name: &str,
        shims: &ShimPool,
    ) -> Result<Self, ContainmentError> {
        match setting {
            ContainmentSetting::Subreaper => Ok(Self::Subreaper {
                reason: SubreaperReason::Requested,
            }),
            ContainmentSetting::Cgroup => {
                cgroup_root(name, shims).map(|root| Self::Cgroup { root })
            }
            ContainmentSetting::Auto => Ok(match cgroup_root(name, shims) {
                Ok(root) => Self::Cgroup { root },
                Err(error) => Self::Subreaper {
                    reason: SubreaperReason::Unavailable(explain(&error)),
                },
            }),
        }
    }

    /// The containment of a new task.
    pub(crate) fn containment(&self) -> Containment {
        match self {
            Self::Cgroup { .. } => Containment::Cgroup,
            Self::Subreaper { .. } => Containment::Subreaper,
        }
    }

    /// The reason why cgroups cannot be used; empty if they are used or were not wanted.
    pub(crate) fn detail(&self) -> &str {
        match self {
            Self::Cgroup { .. } => "",
            Self::Subreaper { reason } => match reason {
                SubreaperReason::Requested => "",
                SubreaperReason::Unavailable(why) => why,
            },
        }
    }

    /// The directory of a new task's cgroup, which its shim creates.
    pub(crate) fn leaf(&self, id: &TaskId) -> Option<PathBuf> {
        match self {
            Self::Cgroup { root } => Some(root.join(id.as_str())),
            Self::Subreaper { .. } => None,
        }
    }

    /// The directory of the cgroup of a command that looks whether a task is ready.
    pub(crate) fn probe_leaf(&self, id: &TaskId) -> Option<PathBuf> {
        match self {
            Self::Cgroup { root } => Some(root.join(format!("{id}{PROBE_SUFFIX}"))),
            Self::Subreaper { .. } => None,
        }
    }

    /// Removes the parent cgroup of all tasks, if no task has a leaf in it.
    pub(crate) fn leave(&self) {
        match self {
            Self::Cgroup { root } => drop(fs::remove_dir(root)),
            Self::Subreaper { .. } => {}
        }
    }

    /// The cgroups of tasks, including those that ended tasks have left.
    pub(crate) fn leaves(&self) -> Vec<PathBuf> {
        match self {
            Self::Cgroup { root } => cgroup::children(root),
            Self::Subreaper { .. } => Vec::new(),
        }
    }
}

/// The task whose cgroup, or whose probe's cgroup, has this name.
pub(crate) fn task_of(name: &str) -> Option<TaskId> {
    name.strip_suffix(PROBE_SUFFIX).unwrap_or(name).parse().ok()
}

impl fmt::Display for ChosenContainment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cgroup { .. } => f.write_str("cgroup"),
            Self::Subreaper { reason } => match reason {
                SubreaperReason::Requested => f.write_str("subreaper (asked for)"),
                SubreaperReason::Unavailable(why) => write!(f, "subreaper ({why})"),
            },
        }
    }
}

fn explain(error: &ContainmentError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn cgroup_root(name: &str, shims: &ShimPool) -> Result<PathBuf, ContainmentError> {
    let root = cgroup::own_cgroup()?.join(format!("heeler-{name}"));
    create(&root)?;
    let leaf = root.join("probe");
    let usable = create(&leaf).and_then(|()| probe(&leaf, shims));
    let _ = fs::remove_dir(&leaf);
    if usable.is_err() {
        let _ = fs::remove_dir(&root);
    }
    usable.map(|()| root)
}

fn create(dir: &Path) -> Result<(), ContainmentError> {
    match fs::create_dir(dir) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(ContainmentError::Io {
            operation: "create",
            path: dir.to_owned(),
            source,
        }),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn probe(leaf: &Path, shims: &ShimPool) -> Result<(), ContainmentError> {
    if !leaf.join("cgroup.kill").exists() {
        return Err(ContainmentError::NoKill);
    }
    shims.probe(leaf).map_err(|source| ContainmentError::Io {
        operation: "start a process in",
        path: leaf.to_owned(),
        source,
    })
}
