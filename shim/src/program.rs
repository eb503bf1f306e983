//! The program's parts, in the order in which a task meets them.

mod arch;
mod memory;
mod sys;

mod arguments;
mod clock;
mod surroundings;

mod assignment;
mod cgroup;
mod control;
mod leader;
mod probe;
mod start;
mod task_file;

mod capture;
mod kill;
mod output;
mod pace;
mod processes;
mod signal;
mod supervise;
mod tree;

use arguments::{Arguments, Mode};

/// Where the kernel enters, by way of the architecture's first instructions; `stack` is where it
/// left the argument count, the arguments and the environment.
///
/// # Safety
///
/// `stack` must be the stack pointer that the kernel gave at exec.
unsafe extern "C" fn enter(stack: *const usize) -> ! {
    // SAFETY: as promised to us.
    let arguments = unsafe { Arguments::from_stack(stack) };
    let code = match arguments.mode() {
        Some(Mode::Tasks(flags, room)) => start::run(&flags, room),
        Some(Mode::Probe { cgroup }) => probe::run(cgroup),
        None => 2,
    };
    sys::process::exit(code)
}

/// Ends at once.
pub(crate) fn abort() -> ! {
    sys::process::exit(101)
}
