//! The shim: one small process per task, the parent of its leader, which outlives the server.
//!
//! It owns the task file, the leader's pipes, the wait statuses of the whole tree (it is the tree's
//! subreaper) and the abstract socket on which a server finds it again. It refuses to decide
//! anything: when to signal and when to kill are orders, what became of the task is for the file to
//! say. Whatever happens, it does not end before the tree is empty, unless it is told to let go of it.
//!
//! ```text
//!  arguments ──bad──> exit 2
//!      │
//!      v
//!  surroundings ──> task file ──exists, or was taken──> exit 0, nothing has run
//!      │               │
//!      │               └──cannot be made──> CannotStart ──> exit
//!      v
//!  socket, cgroup, pipes, clone, exec ──failed──> Start::Failed, TreeEnd ──> exit
//!      │
//!      v                     ┌───────────────────────────────────────────┐
//!  RUNNING                   │ in every state but the last: output to    │
//!      │ leader reaped       │ the file, orphans reaped, signals sent on │
//!      v                     │ order, servers come and go                │
//!  LINGERING                 └───────────────────────────────────────────┘
//!      │ no child left,      Kill orders repeat until there is no child
//!      │ or released
//!      v
//!  ENDED: TreeEnd written, cgroup removed ──> exit 0
//! ```
//!
//! Both steps of the end may come in one turn. A record is in the file before it is told on the
//! socket, and one that the disk refuses is tried again: the end waits for it.
//!
//! Output may begin in a file in memory, and go to the task file when there is much of it or on order.
//!
//! No allocator and no C library: a start through either costs more than all that is done here, and
//! a thousand sleeping shims should cost next to nothing. There is no recursion, no unbounded
//! buffer, and memory that a burst of output has touched is given back.

#![no_std]
#![no_main]

mod program;

/// Reached only through a defect: everything that can fail is handled. The tree is then found by
/// the next server through its cgroup or its mark, as after any other death of a shim.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    program::abort()
}
