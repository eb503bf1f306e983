//! cgroup v2 directories: the server's own, and those of tasks.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::ContainmentError;
use crate::process::tree::process_of_thread;

/// Removes a cgroup and those below it. The kernel keeps the ones that have members.
pub(crate) fn remove_tree(cgroup: &Path) {
    for child in children(cgroup) {
        remove_tree(&child);
    }
    let _ = fs::remove_dir(cgroup);
}

/// Returns the cgroups directly below this one.
pub(in crate::process) fn children(cgroup: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cgroup).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Kills the members of a cgroup, if the cgroup exists: all but those whose first thread has ended, and
/// none of a threaded cgroup. The caller looks for members afterwards.
pub(crate) fn kill(cgroup: &Path) {
    let _ = fs::write(cgroup.join("cgroup.kill"), "1");
}

/// The processes in a cgroup and below it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::process) struct Members {
    pub(in crate::process) pids: Vec<i32>,
    /// There are others, which cannot be listed.
    pub(in crate::process) has_hidden: bool,
}

/// Lists the processes in a cgroup and below it. The kernel's own statement that there are none
/// decides, since a list may be incomplete.
pub(in crate::process) fn members(cgroup: &Path) -> Members {
    let mut members = Members::default();
    match is_populated(cgroup) {
        Ok(true) => {}
        Ok(false) => return members,
        Err(error) => {
            tracing::error!(%error, cgroup = %cgroup.display(), "cannot read the cgroup");
            members.has_hidden = true;
            return members;
        }
    }
    add_members(cgroup, &mut members.pids);
    let listed = members.pids.len();
    // A process of another pid namespace shows as 0.
    members.pids.retain(|pid| *pid > 0);
    members.has_hidden = members.pids.is_empty() || members.pids.len() < listed;
    members.pids.sort_unstable();
    members.pids.dedup();
    members
}

fn is_populated(cgroup: &Path) -> io::Result<bool> {
    match fs::read(cgroup.join("cgroup.events")) {
        Ok(events) => Ok(heeler_shim::procfs::is_populated(&events)),
        Err(error) if is_gone(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn add_members(cgroup: &Path, pids: &mut Vec<i32>) {
    let numbers = |text: String| -> Vec<i32> {
        let lines = text.lines();
        lines.filter_map(|line| line.parse().ok()).collect()
    };
    match fs::read_to_string(cgroup.join("cgroup.procs")) {
        Ok(procs) => pids.extend(numbers(procs)),
        // A threaded cgroup lists threads only.
        Err(_) => {
            let threads = fs::read_to_string(cgroup.join("cgroup.threads"));
            let threads = numbers(threads.unwrap_or_default());
            pids.extend(threads.into_iter().filter_map(process_of_thread));
        }
    }
    for child in children(cgroup) {
        add_members(&child, pids);
    }
}

/// A read of a cgroup that is being removed fails with ENODEV.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ENODEV)
}

/// Finds the server's own cgroup in the file system.
pub(super) fn own_cgroup() -> Result<PathBuf, ContainmentError> {
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

/// Finds the cgroup v2 mount, also in a hybrid layout.
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

/// Undoes the kernel's escapes of space, tab, newline and backslash.
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
    fn cgroup2_is_found_in_pure_and_hybrid_layouts() {
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
