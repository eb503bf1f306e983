//! Looking at processes: who descends from whom, what each runs and uses. Read from /proc, so true
//! for the instant it was read and for no longer; nothing is ever signalled by what is found here.

use std::{
    fs::{self, File},
    io::{self, Read},
    time::Duration,
};

use nix::{
    sys::signal::Signal,
    time::{ClockId, clock_gettime},
    unistd::{SysconfVar, sysconf},
};

use super::{pidfd_open, pidfd_signal};
use crate::task::{Survivor, Timestamp};

/// A command line is cut here: enough to know a process by.
const COMMAND_LIMIT: usize = 512;

/// More than a command line that is shown has, with room for characters that are written longer; and
/// more than the numbers of a process ever take.
const BUFFER: usize = 4096;

/// A tree is shown up to this size: one that runs away has no end.
const LARGEST_TREE: usize = 4096;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its parent's id.
    pub parent_pid: i32,
    /// Its arguments, or its name in brackets.
    pub command: String,
    /// The kernel's letter.
    pub state: char,
    /// When it was started.
    pub started: Timestamp,
    /// CPU time of its own.
    pub cpu: Duration,
    /// CPU time of its children that it has waited for.
    pub children_cpu: Duration,
    /// Resident memory in bytes.
    pub memory: u64,
}

/// The processes of a task, and what they use together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// Each after its parent.
    pub processes: Vec<Process>,
    /// CPU time of all of them, and of those that the shim has waited for, for whatever task.
    pub cpu: Duration,
    /// Resident memory of all of them.
    pub memory: u64,
}

/// Everything that descends from a shim. A process that hangs may hold up whoever looks at it.
pub fn below(shim_pid: i32) -> Tree {
    let clock = Clock::read();
    let mut tree = Tree::default();
    let Ok(shim) = stat(shim_pid) else {
        return tree;
    };
    // What the shim itself has waited for are the tree's orphans, and those of the tasks before.
    tree.cpu = clock.span(shim.children_cpu_ticks);
    let mut open = children(shim_pid, shim.threads);
    open.reverse();
    while let Some(pid) = open.pop()
        && tree.processes.len() < LARGEST_TREE
    {
        let Ok(stat) = stat(pid) else { continue };
        open.extend(children(pid, stat.threads).into_iter().rev());
        let process = process(pid, stat, &clock);
        tree.cpu += process.cpu + process.children_cpu;
        tree.memory += process.memory;
        tree.processes.push(process);
    }
    tree
}

/// A process that should be gone, if it is there.
pub fn survivor(pid: i32) -> Option<Survivor> {
    let process = process(pid, stat(pid).ok()?, &Clock::read());
    Some(Survivor {
        pid,
        parent_pid: process.parent_pid,
        command: process.command,
        state: process.state.to_string(),
    })
}

/// Lets a process go on that was stopped, if it is the one that began then.
pub fn rouse(pid: i32, start_ticks: u64) {
    if let Ok(pidfd) = pidfd_open(pid)
        // Looked at only now that the descriptor pins it.
        && is_alive_since(pid, start_ticks)
    {
        let _ = pidfd_signal(&pidfd, Signal::SIGCONT);
    }
}

/// Whether a process has a child, be it a zombie.
pub fn has_children(pid: i32) -> bool {
    stat(pid).is_ok_and(|stat| !children(pid, stat.threads).is_empty())
}

/// Whether there is such a process, and it is no zombie.
pub(super) fn is_alive(pid: i32) -> bool {
    stat(pid).is_ok_and(|stat| stat.is_alive())
}

/// Whether the process that has this number now began then, and is no zombie.
pub(super) fn is_alive_since(pid: i32, start_ticks: u64) -> bool {
    stat(pid).is_ok_and(|stat| stat.is_alive() && stat.start_ticks == start_ticks)
}

/// The session of a process that is alive.
pub(super) fn session_of(pid: i32) -> Option<i32> {
    let stat = stat(pid).ok()?;
    stat.is_alive().then_some(stat.session)
}

/// Every process there is.
pub(super) fn all_pids() -> io::Result<impl Iterator<Item = i32>> {
    let entries = fs::read_dir("/proc")?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

fn children(pid: i32, threads: u64) -> Vec<i32> {
    // Its first thread has the process's own number; most have no other.
    if threads == 1 {
        return children_of_threads(pid, [pid]);
    }
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let names = entries.flatten().flatten().map(|entry| entry.file_name());
    children_of_threads(pid, names.filter_map(|name| name.to_str()?.parse().ok()))
}

fn children_of_threads(pid: i32, threads: impl IntoIterator<Item = i32>) -> Vec<i32> {
    let mut found = Vec::new();
    for thread in threads {
        match read_whole(&format!("/proc/{pid}/task/{thread}/children")) {
            Ok(list) => found.extend(
                list.split(u8::is_ascii_whitespace)
                    .filter_map(|p| str::from_utf8(p).ok()?.parse::<i32>().ok()),
            ),
            // A kernel without CONFIG_PROC_CHILDREN: ask everybody for their parent.
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

fn process(pid: i32, stat: Stat, clock: &Clock) -> Process {
    let mut buffer = [0; BUFFER];
    let line = read_beginning(&format!("/proc/{pid}/cmdline"), &mut buffer).unwrap_or_default();
    Process {
        pid,
        parent_pid: stat.parent_pid,
        command: command_line(line, &stat.name),
        state: stat.state,
        started: clock.time_of(stat.start_ticks),
        cpu: clock.span(stat.cpu_ticks),
        children_cpu: clock.span(stat.children_cpu_ticks),
        memory: stat.resident_pages * clock.page_size,
    }
}

/// What one read gives: all of it, if the buffer holds it and the file is not made piece by piece.
fn read_beginning<'a>(path: &str, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let read = File::open(path)?.read(buffer)?;
    Ok(&buffer[..read])
}

/// Files of /proc do not tell their size, so nobody is asked for it.
fn read_whole(path: &str) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(BUFFER);
    File::open(path)?.take(u64::MAX).read_to_end(&mut content)?;
    Ok(content)
}

fn command_line(line: &[u8], name: &str) -> String {
    let words: Vec<_> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    if words.is_empty() {
        return format!("[{name}]");
    }
    let mut text = words.join(" ");
    text.truncate(text.floor_char_boundary(COMMAND_LIMIT));
    text
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    state: char,
    parent_pid: i32,
    session: i32,
    threads: u64,
    cpu_ticks: u64,
    children_cpu_ticks: u64,
    start_ticks: u64,
    resident_pages: u64,
}

impl Stat {
    fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

fn stat(pid: i32) -> io::Result<Stat> {
    let mut buffer = [0; BUFFER];
    let text = read_beginning(&format!("/proc/{pid}/stat"), &mut buffer)?;
    parse_stat(&String::from_utf8_lossy(text))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "an unknown form of stat"))
}

/// The name is in parentheses and may hold any of the characters that would confuse a parser.
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

/// What turns the kernel's ticks into time.
struct Clock {
    boot: Timestamp,
    ticks_per_second: u64,
    page_size: u64,
}

impl Clock {
    fn read() -> Self {
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

    fn span(&self, ticks: u64) -> Duration {
        Duration::from_micros(ticks.saturating_mul(1_000_000) / self.ticks_per_second)
    }

    fn time_of(&self, ticks: u64) -> Timestamp {
        self.boot.saturating_add(self.span(ticks))
    }
}

#[cfg(test)]
mod tests {
    use std::{process::Command, thread};

    use super::*;

    #[test]
    fn a_name_full_of_parentheses_confuses_nobody() {
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
        assert_eq!((stat.start_ticks, stat.resident_pages), (500, 25));
    }

    #[test]
    fn a_child_of_any_thread_is_found() {
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

    #[test]
    fn this_process_is_alive_and_has_used_memory() {
        let own = std::process::id() as i32;
        assert!(is_alive(own));
        let stat = stat(own).expect("it is running");
        let process = process(own, stat, &Clock::read());
        assert!(process.memory > 0);
        assert!(Timestamp::now().since(process.started) < Duration::from_secs(3600));
    }
}
