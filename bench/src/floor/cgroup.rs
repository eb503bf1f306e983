//! A bare cgroup (version 2), for the floor of a kill, and a group of the CPU controller of either version.

use std::{
    fs::{self, File},
    io::{Read, Seek},
    os::fd::AsFd,
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::Result;

/// Maximum time of a kill.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The cgroup of this process.
pub(crate) fn own() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let point = words.next()?;
        (words.next()? == "cgroup2").then_some(point)
    });
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"));
    match (mount, path) {
        (Some(mount), Some(path)) => Ok(Path::new(mount).join(path)),
        _ => Err("no cgroup of the second hierarchy is mounted".into()),
    }
}

/// Creates a cgroup below that of this process.
pub(crate) fn make(name: &str) -> Result<PathBuf> {
    let path = own()?.join(name);
    fs::create_dir(&path)?;
    Ok(path)
}

/// Kills every process in it, waits until the kernel reports that it is empty, and returns the time.
pub(crate) fn kill(path: &Path) -> Result<Duration> {
    let mut events = File::open(path.join("cgroup.events"))?;
    let begun = Instant::now();
    fs::write(path.join("cgroup.kill"), "1")?;
    loop {
        let mut text = String::new();
        events.rewind()?;
        events.read_to_string(&mut text)?;
        if text.contains("populated 0") {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > TIME_LIMIT {
            return Err("a cgroup is not empty though it was killed".into());
        }
        let mut fds = [PollFd::new(events.as_fd(), PollFlags::POLLPRI)];
        poll(&mut fds, PollTimeout::from(1000_u16))?;
    }
}

/// A CPU control group with this process and its later children in it, until it is dropped.
#[derive(Debug)]
pub(crate) struct CpuGroup {
    path: PathBuf,
    /// The group that this process was in.
    before: PathBuf,
}

impl CpuGroup {
    /// Makes a group and enters it; `None` where that is not possible.
    pub(crate) fn enter() -> Result<Option<Self>> {
        let Some(before) = own_cpu_group()? else {
            return Ok(None);
        };
        let path = before.join(format!("heeler-bench-cpu-{}", process::id()));
        if fs::create_dir(&path).is_err() {
            return Ok(None);
        }
        let group = Self { path, before };
        match fs::write(group.path.join("cgroup.procs"), "0") {
            Ok(()) => Ok(Some(group)),
            Err(_) => Ok(None),
        }
    }
}

impl Drop for CpuGroup {
    fn drop(&mut self) {
        let _ = fs::write(self.before.join("cgroup.procs"), "0");
        remove(&self.path);
    }
}

/// The group of this process in the hierarchy that has the CPU controller, if groups below it get one.
fn own_cpu_group() -> Result<Option<PathBuf>> {
    let has_cpu = |list: &str, separator: char| list.split(separator).any(|name| name == "cpu");
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let first_version = mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[2] == "cgroup" && has_cpu(words[3], ',')).then(|| PathBuf::from(words[1]))
    });
    if let Some(mount) = first_version {
        let text = fs::read_to_string("/proc/self/cgroup")?;
        let path = text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(":/")?;
            has_cpu(controllers, ',').then_some(path)
        });
        return Ok(path.map(|path| mount.join(path)));
    }
    let own = own()?;
    let controllers = fs::read_to_string(own.join("cgroup.controllers"))?;
    let enabled = || fs::write(own.join("cgroup.subtree_control"), "+cpu").is_ok();
    Ok((has_cpu(controllers.trim(), ' ') && enabled()).then_some(own))
}

/// Removes it and its children, once they are empty.
pub(crate) fn remove(path: &Path) {
    let until = Instant::now() + TIME_LIMIT;
    while path.exists() && Instant::now() < until {
        for leaf in fs::read_dir(path).into_iter().flatten().flatten() {
            if leaf.file_type().is_ok_and(|kind| kind.is_dir()) {
                let _ = fs::remove_dir(leaf.path());
            }
        }
        if fs::remove_dir(path).is_err() {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
