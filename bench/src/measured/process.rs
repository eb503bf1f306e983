//! Processes in /proc: their resource use, and the ones that belong to a daemon.

use std::{
    collections::HashMap,
    fs,
    os::unix::ffi::OsStrExt,
    path::Path,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::Result;

/// Maximum time until killed processes are gone.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Proportional set size in bytes.
pub(crate) fn pss(pid: i32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let kib = field(&text, "Pss").ok_or("no Pss")?;
    Ok(kib * 1024)
}

/// Resident memory in bytes.
pub(crate) fn rss(pid: i32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = field(&text, "VmRSS").ok_or("no VmRSS")?;
    Ok(kib * 1024)
}

/// Memory in use by the kernel: slabs, page tables, stacks, per-CPU data.
pub(crate) fn kernel_memory() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let fields = ["Slab", "PageTables", "KernelStack", "Percpu"];
    Ok(fields
        .iter()
        .filter_map(|name| field(&text, name))
        .sum::<u64>()
        * 1024)
}

/// The number after a name and a colon.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// CPU time of all threads of a process; `None` if it is gone.
pub(crate) fn cpu(pid: i32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let nanos = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// The processes with a path below this directory among their arguments: a daemon's shims.
pub(crate) fn with_argument_below(dir: &Path) -> Vec<i32> {
    let below = [dir.as_os_str().as_bytes(), b"/"].concat();
    let has = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.next() == Some(b"heeler-shim") && words.any(|word| word.starts_with(&below))
    };
    all().into_iter().filter(has).collect()
}

/// A daemon's shims and tasks.
pub(crate) fn belonging_to(state: &Path, address: &str) -> Vec<i32> {
    let mark = format!("HEELER_ADDR={address}");
    let marked = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark.as_bytes())
    };
    let mut found = with_argument_below(state);
    found.extend(all().iter().filter(|pid| marked(pid)));
    found
}

/// Kills the processes that are found until none is left.
pub(crate) fn end_all(find: impl Fn() -> Vec<i32>) {
    let until = Instant::now() + TIME_LIMIT;
    loop {
        let found = find();
        if found.is_empty() || Instant::now() > until {
            return;
        }
        for pid in found {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The total CPU time that the processes have used since `before`.
pub(crate) fn cpu_since(before: &HashMap<i32, Duration>) -> Duration {
    before
        .iter()
        .map(|(pid, used)| cpu(*pid).saturating_sub(*used))
        .sum()
}
