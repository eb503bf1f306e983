//! A bare cgroup (version 2), for the floor of a kill.

use std::{
    fs::{self, File},
    io::{Read, Seek},
    os::fd::AsFd,
    path::{Path, PathBuf},
    thread,
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
