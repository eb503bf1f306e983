//! The kill ladder: what this machine offers to hold a tree together.
//!
//! The best rung is a cgroup v2 leaf for each task, below the server's own cgroup: the task is born
//! in it, and one write kills all of it. The other is the shim alone, as subreaper. Which one is used
//! is decided once, at start-up, by trying: a child is really put into a leaf.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use super::shim::Shims;
use crate::task::{Containment, TaskId};

const ASKED_FOR: &str = "asked for";

/// What the operator asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// The best there is.
    #[default]
    Auto,
    /// A cgroup for each task, or no start.
    Cgroup,
    /// The subreaper, even where cgroups can be used.
    Subreaper,
}

/// The rung in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenContainment {
    /// Tasks get leaves in this cgroup.
    Cgroup {
        /// Its directory.
        root: PathBuf,
    },
    /// The shim is all there is.
    Subreaper {
        /// Why nothing better is used.
        why: String,
    },
}

/// Why a rung cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContainmentError {
    /// No unified hierarchy.
    #[error("no cgroup v2 file system is mounted")]
    NotMounted,
    /// The server's own cgroup is not below the mount.
    #[error("the server's own cgroup is not visible below {0}")]
    NotVisible(PathBuf),
    /// The kernel is older than 5.14.
    #[error("the kernel has no cgroup.kill")]
    NoKill,
    /// Something could not be done.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What.
        operation: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl ChosenContainment {
    /// Finds the best rung that is wanted and works.
    pub fn choose(wanted: Wanted, name: &str, shim: &Shims) -> Result<Self, ContainmentError> {
        match wanted {
            Wanted::Subreaper => Ok(Self::Subreaper {
                why: ASKED_FOR.to_owned(),
            }),
            Wanted::Cgroup => cgroup_root(name, shim).map(|root| Self::Cgroup { root }),
            Wanted::Auto => Ok(match cgroup_root(name, shim) {
                Ok(root) => Self::Cgroup { root },
                Err(error) => Self::Subreaper {
                    why: explain(&error),
                },
            }),
        }
    }

    /// What a new task is held together by.
    pub fn containment(&self) -> Containment {
        match self {
            Self::Cgroup { .. } => Containment::Cgroup,
            Self::Subreaper { .. } => Containment::Subreaper,
        }
    }

    /// Why it is not a better one; empty where there is none, or a lower one was asked for.
    pub fn detail(&self) -> &str {
        match self {
            Self::Cgroup { .. } => "",
            Self::Subreaper { why } if why == ASKED_FOR => "",
            Self::Subreaper { why } => why,
        }
    }

    /// The directory of a new task's cgroup, for its shim to make.
    pub fn leaf(&self, id: &TaskId) -> Option<PathBuf> {
        match self {
            Self::Cgroup { root } => Some(root.join(id.as_str())),
            Self::Subreaper { .. } => None,
        }
    }

    /// Removes what there is for all tasks, if none has anything there.
    pub fn leave(&self) {
        match self {
            Self::Cgroup { root } => drop(fs::remove_dir(root)),
            Self::Subreaper { .. } => {}
        }
    }

    /// The cgroups that tasks have, or have left behind.
    pub fn leaves(&self) -> Vec<PathBuf> {
        match self {
            Self::Cgroup { root } => children(root),
            Self::Subreaper { .. } => Vec::new(),
        }
    }
}

impl fmt::Display for ChosenContainment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cgroup { .. } => f.write_str("cgroup"),
            Self::Subreaper { why } => write!(f, "subreaper ({why})"),
        }
    }
}

/// Removes a cgroup and those below it, as far as they are empty: the kernel refuses the rest.
pub fn remove_tree(cgroup: &Path) {
    for child in children(cgroup) {
        remove_tree(&child);
    }
    // A populated cgroup stays, by the kernel's own rule.
    let _ = fs::remove_dir(cgroup);
}

/// The cgroups right below one.
pub fn children(cgroup: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cgroup).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Kills every member of a cgroup, if there is such a cgroup. Whether it worked is seen by looking.
pub fn kill(cgroup: &Path) {
    let _ = fs::write(cgroup.join("cgroup.kill"), "1");
}

fn explain(error: &ContainmentError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn cgroup_root(name: &str, shim: &Shims) -> Result<PathBuf, ContainmentError> {
    let root = own_cgroup()?.join(format!("heeler-{name}"));
    make(&root)?;
    let leaf = root.join("probe");
    let usable = make(&leaf).and_then(|()| probe(&leaf, shim));
    let _ = fs::remove_dir(&leaf);
    if usable.is_err() {
        let _ = fs::remove_dir(&root);
    }
    usable.map(|()| root)
}

fn make(dir: &Path) -> Result<(), ContainmentError> {
    match fs::create_dir(dir) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(ContainmentError::Io {
            operation: "make",
            path: dir.to_owned(),
            source,
        }),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn probe(leaf: &Path, shim: &Shims) -> Result<(), ContainmentError> {
    if !leaf.join("cgroup.kill").exists() {
        return Err(ContainmentError::NoKill);
    }
    shim.probe(leaf).map_err(|source| ContainmentError::Io {
        operation: "start a process in",
        path: leaf.to_owned(),
        source,
    })
}

fn own_cgroup() -> Result<PathBuf, ContainmentError> {
    let read = |path: &str| {
        fs::read_to_string(path).map_err(|source| ContainmentError::Io {
            operation: "read",
            path: path.into(),
            source,
        })
    };
    let mount =
        cgroup2_mount(&read("/proc/self/mountinfo")?).ok_or(ContainmentError::NotMounted)?;
    let own = read("/proc/self/cgroup")?;
    let path = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .unwrap_or("/");
    let below = Path::new(path)
        .strip_prefix(&mount.root)
        .ok()
        .filter(|below| !below.components().any(|part| part.as_os_str() == ".."));
    match below {
        Some(below) => Ok(mount.point.join(below)),
        None => Err(ContainmentError::NotVisible(mount.point)),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    root: PathBuf,
    point: PathBuf,
}

/// Where the unified hierarchy is, also beside the old ones in a hybrid layout.
fn cgroup2_mount(mountinfo: &str) -> Option<Mount> {
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        if after.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        Some(Mount {
            root: unescape(fields.next()?),
            point: unescape(fields.next()?),
        })
    })
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(field: &str) -> PathBuf {
    let text = field
        .replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\");
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unified_hierarchy_is_found_in_pure_and_hybrid_layouts() {
        let pure = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                      35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      41 31 0:38 /a\\040b /sys/fs/cgroup/uni\\040fied rw - cgroup2 cgroup2 rw\n";
        let found = |text| cgroup2_mount(text).map(|mount| (mount.root, mount.point));
        assert_eq!(found(pure), Some(("/".into(), "/sys/fs/cgroup".into())));
        assert_eq!(
            found(hybrid),
            Some(("/a b".into(), "/sys/fs/cgroup/uni fied".into()))
        );
        assert_eq!(
            found("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"),
            None
        );
    }
}
