//! The processes of a task, read from /proc. What is read is true only for that instant, so nothing is
//! signalled by a pid alone.

pub(crate) mod caller;
pub(crate) mod input_wait;
pub(crate) mod owner;
pub(crate) mod ports;
pub(crate) mod sweep;

mod below;
mod procfs;
mod root;

use std::{io, time::Duration};

use super::{
    host::pidfd::{pidfd_open, pidfd_signal},
    shim::ShimProcess,
};
use crate::task::{Survivor, Timestamp};
pub(super) use below::{kill_below, survivors_below};
pub(super) use procfs::process_of_thread;
use procfs::{BUFFER, Clock, Stat, children, read_beginning, stat};
pub(crate) use root::TreeRoot;

/// The longest command line that is shown.
const COMMAND_LIMIT: usize = 512;
/// The largest tree that is shown.
const LARGEST_TREE: usize = 4096;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent_pid: i32,
    /// The arguments, or the name in brackets.
    pub(crate) command: String,
    /// The kernel's state letter.
    pub(crate) state: char,
    pub(crate) started: Timestamp,
    /// The start time in clock ticks since boot.
    start_ticks: u64,
    /// CPU time of the process itself.
    pub(crate) cpu: Duration,
    /// CPU time of the children that it reaped.
    pub(crate) children_cpu: Duration,
    /// Resident memory in bytes.
    pub(crate) memory: u64,
}

/// The processes of a task, and their resource use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tree {
    /// Each after its parent.
    pub(crate) processes: Vec<Process>,
    /// CPU time of all of them, and of all processes that the shim has reaped, for any task.
    pub(crate) cpu: Duration,
    /// Resident memory of all of them, in bytes.
    pub(crate) memory: u64,
}

/// Reads all descendants of a shim; none once its pid is another process's. A process that hangs in the
/// kernel may block the call.
pub(crate) fn below(shim: ShimProcess) -> Tree {
    let clock = Clock::read();
    let mut tree = Tree::default();
    let Some(stat) = shim_stat(shim) else {
        return tree;
    };
    // The shim has reaped the orphans of this tree and of earlier tasks.
    tree.cpu = clock.span(stat.children_cpu_ticks);
    visit_below(shim.pid, &stat, |pid, stat| {
        let process = process(pid, stat, &clock);
        tree.cpu += process.cpu + process.children_cpu;
        tree.memory += process.memory;
        tree.processes.push(process);
    });
    tree
}

fn shim_stat(shim: ShimProcess) -> Option<Stat> {
    let stat = stat(shim.pid).ok()?;
    (stat.start_ticks == shim.start_ticks).then_some(stat)
}

/// Visits the descendants of a shim, each after its parent.
fn visit_below(shim_pid: i32, shim: &Stat, mut each: impl FnMut(i32, Stat)) {
    let mut open = children(shim_pid, shim.threads);
    open.reverse();
    let mut visited = 0;
    while let Some(pid) = open.pop()
        && visited < LARGEST_TREE
    {
        let Ok(stat) = stat(pid) else { continue };
        open.extend(children(pid, stat.threads).into_iter().rev());
        each(pid, stat);
        visited += 1;
    }
}

/// Describes this process.
pub(crate) fn own() -> io::Result<Process> {
    let pid = std::process::id() as i32;
    Ok(process(pid, stat(pid)?, &Clock::read()))
}

/// Describes a process that should be gone, if it exists.
pub(crate) fn survivor(pid: i32) -> Option<Survivor> {
    let process = process(pid, stat(pid).ok()?, &Clock::read());
    Some(Survivor {
        pid,
        parent_pid: process.parent_pid,
        command: process.command,
        state: process.state.to_string(),
    })
}

/// Returns the start time of a process, in clock ticks since boot.
pub(super) fn start_ticks(pid: i32) -> Option<u64> {
    stat(pid).ok().map(|stat| stat.start_ticks)
}

/// Returns whether the process with this start time is stopped, by a signal or a tracer.
pub(super) fn is_stopped(pid: i32, start_ticks: u64) -> bool {
    let is_it = |stat: &Stat| stat.start_ticks == start_ticks;
    stat(pid).is_ok_and(|stat| is_it(&stat) && matches!(stat.state, 'T' | 't'))
}

/// Returns whether the process with this pid and start time lives and has no child, not even a zombie.
pub(crate) fn is_childless(pid: i32, start_ticks: u64) -> bool {
    // Alive after the look, so that it was its own list that was empty.
    !has_children(pid) && procfs::is_alive_since(pid, start_ticks)
}

/// Returns whether a process has a child, including zombies.
pub(crate) fn has_children(pid: i32) -> bool {
    stat(pid).is_ok_and(|stat| !children(pid, stat.threads).is_empty())
}

fn process(pid: i32, stat: Stat, clock: &Clock) -> Process {
    let mut buffer = [0; BUFFER];
    let line = match stat.state {
        // It may hold the lock of its memory, which the read of its arguments needs.
        'D' => Ok(&[][..]),
        _ => read_beginning(&format!("/proc/{pid}/cmdline"), &mut buffer),
    };
    Process {
        pid,
        parent_pid: stat.parent_pid,
        command: command_line(line.unwrap_or_default(), &stat.name),
        state: stat.state,
        started: clock.time_of(stat.start_ticks),
        start_ticks: stat.start_ticks,
        cpu: clock.span(stat.cpu_ticks),
        children_cpu: clock.span(stat.children_cpu_ticks),
        memory: stat.resident_pages * clock.page_size,
    }
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

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Instant};

    use super::*;

    /// L3
    #[test]
    fn nothing_is_below_another_process_with_the_pid_of_the_shim() {
        let pid = std::process::id() as i32;
        let start_ticks = start_ticks(pid).expect("it is running");
        let mut child = Command::new("sleep").arg("600").spawn().expect("a child");
        let below = |start_ticks| below(ShimProcess { pid, start_ticks }).processes;
        let is_child = |process: &Process| process.pid == child.id() as i32;
        let deadline = Instant::now() + Duration::from_secs(30);
        // The kernel may leave a child out while threads of other tests start and end.
        let mut is_found = false;
        while !is_found && Instant::now() < deadline {
            is_found = below(start_ticks).iter().any(is_child);
        }
        let others = below(start_ticks + 1);
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        assert_eq!((is_found, others), (true, Vec::new()));
    }

    #[test]
    fn this_process_is_alive_and_uses_memory() {
        let process = own().expect("it is running");
        assert!(procfs::is_alive(process.pid));
        assert!(process.memory > 0);
        assert!(Timestamp::now().since(process.started) < Duration::from_secs(3600));
    }
}
