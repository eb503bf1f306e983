//! The TCP ports on which processes listen.
//!
//! A listening socket is in the table of its network namespace, by a number. The processes that have a
//! descriptor of that number listen on its port. Descriptors of a process that has made itself unreadable
//! cannot be seen, unless the server is privileged.

mod table;

use std::{collections::HashMap, fs, net::IpAddr};

use super::{Clock, Tree, TreeRoot, owner::PinnedProcess, process, procfs::all_pids, stat};
use table::Socket;

/// A port on which a task listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListeningPort {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// The process that has the socket; of several, the one that is nearest to the leader.
    pub(crate) pid: i32,
    pub(crate) command: String,
}

/// Reads the ports on which each of these trees listens, by port and address. Each port of a tree is
/// listed once, however many processes share it.
pub(crate) fn of_trees(roots: &[TreeRoot]) -> Vec<Vec<ListeningPort>> {
    let (mut tables, clock) = (Tables::default(), Clock::read());
    let read = |root: &TreeRoot| read(&root.processes(), &mut tables, &clock);
    roots.iter().map(read).collect()
}

/// Reads the ports on which one tree listens.
pub(crate) fn of_tree(root: &TreeRoot) -> Vec<ListeningPort> {
    read(&root.processes(), &mut Tables::default(), &Clock::read())
}

/// The same for a tree whose processes below the shim have just been read.
pub(crate) fn of_read_tree(root: &TreeRoot, tree: &Tree) -> Vec<ListeningPort> {
    let below = tree.processes.iter();
    let below = below.map(|process| (process.pid, process.start_ticks));
    let processes = root.with_members(below.collect());
    read(&processes, &mut Tables::default(), &Clock::read())
}

fn read(processes: &[(i32, u64)], tables: &mut Tables, clock: &Clock) -> Vec<ListeningPort> {
    let mut ports: Vec<ListeningPort> = Vec::new();
    for &(pid, start_ticks) in processes {
        for socket in tables.sockets_of(pid) {
            let is_listed =
                |port: &ListeningPort| (port.address, port.port) == (socket.address, socket.port);
            // The pid may be another process's by now.
            if !ports.iter().any(is_listed)
                && let Ok(stat) = stat(pid)
                && stat.start_ticks == start_ticks
            {
                ports.push(ListeningPort {
                    address: socket.address,
                    port: socket.port,
                    pid,
                    command: process(pid, stat, clock).command,
                });
            }
        }
    }
    ports.sort_by_key(|port| (port.port, port.address));
    ports
}

/// Finds the processes that listen on a port, among all whose descriptors can be read.
pub(crate) fn listeners(port: u16) -> Vec<PinnedProcess> {
    let mut tables = Tables::default();
    let mut listens = |pid| {
        let sockets = tables.sockets_of(pid);
        sockets.iter().any(|socket| socket.port == port)
    };
    let pids = all_pids().into_iter().flatten();
    let found = pids.filter(|pid| listens(*pid)).collect::<Vec<_>>();
    let pinned = found
        .into_iter()
        .filter_map(|pid| PinnedProcess::open(pid).ok());
    // Looked at again while it is pinned: the pid may have been reused.
    pinned.filter(|process| listens(process.pid())).collect()
}

/// The listening sockets of every network namespace that was looked at, by the namespace's number and by
/// their own.
#[derive(Debug, Default)]
pub(super) struct Tables(HashMap<u64, HashMap<u64, Socket>>);

impl Tables {
    /// Returns the listening sockets of which a process has a descriptor.
    fn sockets_of(&mut self, pid: i32) -> Vec<Socket> {
        // First: the table takes the kernel milliseconds, and most processes have no socket.
        let inodes: Vec<u64> = descriptors(pid).collect();
        if inodes.is_empty() {
            return Vec::new();
        }
        let table = self.of_namespace(pid);
        let found = inodes.iter().filter_map(|inode| table?.get(inode).copied());
        found.collect()
    }

    fn of_namespace(&mut self, pid: i32) -> Option<&HashMap<u64, Socket>> {
        let link = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
        let namespace = number_in(link.to_str()?, "net:[")?;
        let read = || {
            let sockets = table::read(pid).into_iter();
            sockets.map(|socket| (socket.inode, socket)).collect()
        };
        Some(self.0.entry(namespace).or_insert_with(read))
    }
}

/// The numbers of the sockets of which a process has a descriptor.
fn descriptors(pid: i32) -> impl Iterator<Item = u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter();
    let links = entries.flatten().flatten();
    links.filter_map(|entry| {
        let link = fs::read_link(entry.path()).ok()?;
        number_in(link.to_str()?, "socket:[")
    })
}

/// Parses the number of a link such as `socket:[1234]`.
fn number_in(link: &str, prefix: &str) -> Option<u64> {
    link.strip_prefix(prefix)?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::{
        net::TcpListener,
        os::fd::OwnedFd,
        process::{Child, Command, Stdio},
        time::{Duration, Instant},
    };

    use super::*;
    use crate::process::shim::ShimProcess;

    /// A child that has a listening socket as its stdin, until it is dropped.
    struct Listening {
        child: Child,
        port: u16,
    }

    impl Listening {
        fn start(address: &str) -> Self {
            let listener = TcpListener::bind((address, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let child = Command::new("sleep")
                .arg("600")
                .stdin(Stdio::from(OwnedFd::from(listener)))
                .spawn()
                .unwrap();
            Self { child, port }
        }

        fn pid(&self) -> i32 {
            self.child.id() as i32
        }
    }

    impl Drop for Listening {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    fn own_tree() -> TreeRoot {
        let pid = std::process::id() as i32;
        let start_ticks = super::super::start_ticks(pid).unwrap();
        TreeRoot {
            shim: Some(ShimProcess { pid, start_ticks }),
            cgroup: None,
        }
    }

    /// Looks until the port is found: threads of other tests start and end, and a child may be missing
    /// from the kernel's list meanwhile.
    fn find(port: u16) -> ListeningPort {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let ports = of_tree(&own_tree());
            if let Some(found) = ports.iter().find(|found| found.port == port) {
                return found.clone();
            }
            assert!(Instant::now() < deadline, "{port} is not in {ports:?}");
        }
    }

    /// Y3
    #[test]
    fn the_port_of_a_tree_is_found_with_its_process_and_address() {
        for address in ["127.0.0.1", "0.0.0.0", "::1"] {
            let listening = Listening::start(address);
            let found = find(listening.port);
            assert_eq!((found.pid, &*found.command), (listening.pid(), "sleep 600"));
            assert_eq!(found.address.to_string(), address);
        }
    }

    #[test]
    fn the_tree_of_another_process_with_the_pid_of_the_shim_has_no_port() {
        let _listening = Listening::start("127.0.0.1");
        let mut root = own_tree();
        root.shim.as_mut().unwrap().start_ticks += 1;
        assert_eq!(of_tree(&root), []);
    }

    /// Y3
    #[test]
    fn the_listeners_of_a_port_are_found_among_all_processes() {
        let (listening, other) = (Listening::start("127.0.0.1"), Listening::start("127.0.0.1"));
        let (pid, port) = (listening.pid(), listening.port);
        let found = |pid| listeners(port).iter().any(|process| process.pid() == pid);
        assert!(found(pid) && !found(other.pid()));
        drop(listening);
        assert!(!found(pid));
    }
}
