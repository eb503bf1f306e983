//! The parts of the program, from the kernel upwards.
//!
//! | module | holds |
//! | --- | --- |
//! | [`arch`] | processor-specific code and system call numbers |
//! | [`sys`] | typed system calls |
//! | [`pages`], [`clock`] | mapped memory, the three clocks |
//! | [`startup`] | command line, process setup, the cgroup probe |
//! | [`task`] | one task after the other, from its assignment to its end |
//! | [`output`] | the pipes, and the files that their bytes go to |
//! | [`tree`] | reaping, signalling and killing the tree |

mod arch;
mod clock;
mod output;
mod pages;
mod startup;
mod sys;
mod task;
mod tree;

use startup::arguments::{Arguments, Mode};

/// The entry point, called by the first instructions in [`arch`]. `stack` points at the argument count,
/// which the arguments and the environment follow.
///
/// # Safety
///
/// `stack` must be the stack pointer that the kernel gave at exec.
unsafe extern "C" fn enter(stack: *const usize) -> ! {
    // SAFETY: the caller passes the stack pointer of the exec.
    let arguments = unsafe { Arguments::from_stack(stack) };
    let code = match arguments.mode() {
        Some(Mode::Run(flags, title)) => task::run(&flags, title),
        Some(Mode::Probe { cgroup }) => startup::probe::run(cgroup),
        None => 2,
    };
    sys::process::exit(code)
}

/// Exits at once.
pub(crate) fn abort() -> ! {
    sys::process::exit(101)
}
