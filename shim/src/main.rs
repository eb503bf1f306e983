//! The shim: one small process per task. It is the leader's parent and outlives the server.
//!
//! It owns the task file, the leader's pipes, the wait statuses of the whole tree (it is the tree's
//! subreaper) and the abstract socket on which a later server finds it. It decides nothing: signals and
//! kills are orders of the server, and the task file says what became of the task. It does not exit
//! before the tree is empty, unless it is ordered to abandon the orphans.
//!
//! ```text
//!  arguments ──bad──> exit 2
//!      │
//!      v
//!  setup ──> task file ──exists, or was claimed──> exit 0, nothing has run
//!      │         │
//!      │         └──cannot be created──> CannotStart ──> exit
//!      v
//!  socket, cgroup, pipes, clone, exec ──failed──> Start::Failed, TreeEnd
//!      │
//!      v                     ┌───────────────────────────────────────────┐
//!  LEADER RUNS               │ in every state but the last: output goes  │
//!      │ leader reaped       │ to the file, orphans are reaped, signals  │
//!      v                     │ are sent on order, servers come and go    │
//!  ORPHANS                   └───────────────────────────────────────────┘
//!      │ no child left,      a kill repeats until there is no child
//!      │ or abandoned
//!      v
//!  ENDED: TreeEnd written, cgroup removed ──> the next task, or exit 0
//! ```
//!
//! Both steps of the end may come in one wake-up. A record is in the file before it is reported on the
//! socket, and a record that the disk refuses is tried again: the end waits for it.
//!
//! There is no allocator and no C library: starting either costs more than all the work of a quiet
//! task, and a thousand idle shims must cost next to nothing. There is no recursion and no unbounded
//! buffer, and memory that a burst of output used is given back.

#![no_std]
#![no_main]

mod program;

/// Reached only through a defect, since every error is handled. The next server then finds the tree by
/// its cgroup or its environment tag, as after any other death of a shim.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    program::abort()
}
