//! Reading processes from /proc.

use std::{
    fs::{self, File},
    io::{self, Read},
    time::Duration,
};

use nix::{
    time::{ClockId, clock_gettime},
    unistd::{SysconfVar, sysconf},
};

use crate::task::Timestamp;

/// More than a command line that is shown, even with characters that are longer when decoded, and more
/// than `/proc/<pid>/stat`.
pub(super) const BUFFER: usize = 4096;

/// Returns whether the process exists and is not dead.
pub(super) fn is_alive(pid: i32) -> bool {
    stat(pid).is_ok_and(|stat| stat.is_alive())
}

/// Returns whether the process with this pid has this start time and is not dead.
pub(super) fn is_alive_since(pid: i32, start_ticks: u64) -> bool {
    stat(pid).is_ok_and(|stat| stat.is_alive() && stat.start_ticks == start_ticks)
}

/// Returns the session of a live process.
pub(super) fn session_of(pid: i32) -> Option<i32> {
    let stat = stat(pid).ok()?;
    stat.is_alive().then_some(stat.session)
}

/// Returns the process that a thread belongs to.
pub(in crate::process) fn process_of_thread(thread: i32) -> Option<i32> {
    let mut buffer = [0; BUFFER];
    let status = read_beginning(&format!("/proc/{thread}/status"), &mut buffer).ok()?;
    let lines = String::from_utf8_lossy(status);
    let group = lines.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    group.trim().parse().ok()
}

/// Returns the pids of all processes.
pub(super) fn all_pids() -> io::Result<impl Iterator<Item = i32>> {
    let entries = fs::read_dir("/proc")?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// Returns the children of a process.
pub(super) fn children(pid: i32, threads: u64) -> Vec<i32> {
    // The first thread has the process's pid; most processes have no other.
    if threads == 1 {
        return children_of_threads(pid, [pid]);
    }
    children_of_threads(pid, self::threads(pid))
}

/// Returns the threads of a process.
pub(super) fn threads(pid: i32) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let names = entries.flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok())
}

fn children_of_threads(pid: i32, threads: impl IntoIterator<Item = i32>) -> Vec<i32> {
    let mut found = Vec::new();
    for thread in threads {
        match read_whole(&format!("/proc/{pid}/task/{thread}/children")) {
            Ok(list) => found.extend(
                list.split(u8::is_ascii_whitespace)
                    .filter_map(|p| str::from_utf8(p).ok()?.parse::<i32>().ok()),
            ),
            // A kernel without CONFIG_PROC_CHILDREN: look at the parent of every process.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_alive(pid) => {
                return all_pids()
                    .into_iter()
                    .flatten()
                    .filter(|child| stat(*child).is_ok_and(|stat| stat.parent_pid == pid))
                    .collect();
            }
            Err(_) => {}
        }
    }
    found
}

/// Reads once: that is the whole file if it fits and the kernel does not produce it in pieces.
pub(super) fn read_beginning<'a>(path: &str, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let read = File::open(path)?.read(buffer)?;
    Ok(&buffer[..read])
}

/// Reads a whole file. Files of /proc have no size, so none is queried.
pub(super) fn read_whole(path: &str) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(BUFFER);
    File::open(path)?.take(u64::MAX).read_to_end(&mut content)?;
    Ok(content)
}

/// The fields of `/proc/<pid>/stat` that are used here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) name: String,
    pub(super) state: char,
    pub(super) parent_pid: i32,
    pub(super) session: i32,
    pub(super) threads: u64,
    pub(super) cpu_ticks: u64,
    pub(super) children_cpu_ticks: u64,
    pub(super) start_ticks: u64,
    pub(super) resident_pages: u64,
}

impl Stat {
    /// Returns whether the process is not dead. One whose first thread has ended before the others
    /// shows as a zombie, but has more than one thread.
    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X') || self.threads > 1
    }
}

pub(super) fn stat(pid: i32) -> io::Result<Stat> {
    read_stat(&format!("/proc/{pid}/stat"))
}

/// Returns the status of each thread of a process.
pub(super) fn thread_stats(pid: i32) -> impl Iterator<Item = Stat> {
    threads(pid)
        .filter_map(move |thread| read_stat(&format!("/proc/{pid}/task/{thread}/stat")).ok())
}

fn read_stat(path: &str) -> io::Result<Stat> {
    let mut buffer = [0; BUFFER];
    let text = read_beginning(path, &mut buffer)?;
    parse_stat(&String::from_utf8_lossy(text)).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "unknown format of /proc/<pid>/stat",
        )
    })
}

/// The name is in parentheses and may itself contain spaces and parentheses.
fn parse_stat(text: &str) -> Option<Stat> {
    let (head, tail) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        name,
        state: fields.first()?.chars().next()?,
        parent_pid: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        cpu_ticks: number(11)? + number(12)?,
        children_cpu_ticks: number(13)? + number(14)?,
        threads: number(17)?,
        start_ticks: number(19)?,
        resident_pages: number(21)?,
    })
}

/// Converts the kernel's ticks and pages to times and bytes.
pub(super) struct Clock {
    boot: Timestamp,
    ticks_per_second: u64,
    pub(super) page_size: u64,
}

impl Clock {
    pub(super) fn read() -> Self {
        let up = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
        let positive = |var, default| match sysconf(var) {
            Ok(Some(value)) if value > 0 => value as u64,
            Ok(_) | Err(_) => default,
        };
        Self {
            boot: Timestamp(Timestamp::now().0.saturating_sub(up.as_micros() as u64)),
            ticks_per_second: positive(SysconfVar::CLK_TCK, 100),
            page_size: positive(SysconfVar::PAGE_SIZE, 4096),
        }
    }

    pub(super) fn span(&self, ticks: u64) -> Duration {
        Duration::from_micros(ticks.saturating_mul(1_000_000) / self.ticks_per_second)
    }

    pub(super) fn time_of(&self, ticks: u64) -> Timestamp {
        self.boot.saturating_add(self.span(ticks))
    }
}

#[cfg(test)]
mod tests {
    use std::{process::Command, thread};

    use super::*;

    #[test]
    fn a_name_with_parentheses_is_parsed() {
        let text =
            "42 (a) b (c) R 7 42 41 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 500 1000 25 18";
        let stat = parse_stat(text).expect("it is well formed");
        assert_eq!(
            (stat.name.as_str(), stat.state, stat.parent_pid),
            ("a) b (c", 'R', 7)
        );
        assert_eq!(stat.session, 41);
        assert_eq!((stat.cpu_ticks, stat.children_cpu_ticks), (30, 70));
        assert_eq!(stat.threads, 1);
        let letter = |state, threads| Stat {
            state,
            threads,
            ..parse_stat(text).expect("as above")
        };
        assert!(letter('S', 1).is_alive() && letter('Z', 2).is_alive());
        assert!(!letter('Z', 1).is_alive() && !letter('X', 1).is_alive());
        assert_eq!((stat.start_ticks, stat.resident_pages), (500, 25));
    }

    #[test]
    fn children_of_every_thread_are_found() {
        let look = || {
            let own = std::process::id() as i32;
            let mut child = Command::new("sleep").arg("600").spawn().expect("it starts");
            let threads = stat(own).expect("it is running").threads;
            let found = children(own, threads);
            child.kill().expect("it is there");
            child.wait().expect("it is ours");
            (child.id() as i32, found)
        };
        let (child, found) = thread::spawn(look).join().expect("it does not panic");
        assert!(found.contains(&child), "{child} is not among {found:?}");
    }
}
