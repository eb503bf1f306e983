//! The leader's birth.
//!
//! The child shares our memory until it executes its program, and we stand still until then: no
//! page is copied, and what went wrong is simply there when we go on. Between, it makes only system
//! calls.

use core::{
    ffi::{CStr, c_char},
    ptr,
};

use heeler_shim::{procfs::ticks_between, record::Stage};

use super::{
    assignment::Task,
    cgroup::Cgroup,
    clock, processes,
    start::Pipes,
    sys::{Errno, Fd, file, process, signals},
};

/// A leader that runs its program.
pub(super) struct Leader<'a> {
    pub(super) pid: u32,
    /// Its start time in clock ticks since boot.
    pub(super) start_ticks: u64,
    /// Where it was born, if it has a cgroup.
    pub(super) cgroup: Option<Cgroup<'a>>,
}

/// A start that failed.
#[derive(Clone, Copy)]
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) errno: Errno,
}

impl Failure {
    /// At this stage, for whatever reason the kernel gives.
    pub(super) fn at(stage: Stage) -> impl Fn(Errno) -> Self {
        move |errno| Self { stage, errno }
    }
}

/// What the child needs, and where it leaves its trouble.
struct Launch<'a> {
    program: &'a CStr,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    directory: &'a CStr,
    stdout: i32,
    stderr: i32,
    /// When it is not yet born, and when it is, in nanoseconds since boot.
    before: u64,
    after: u64,
    failure: Option<Failure>,
}

/// Starts the leader, in the task's cgroup if that can be.
pub(super) fn start<'a>(task: &Task<'a>, pipes: &Pipes) -> Result<Leader<'a>, Failure> {
    let mut launch = Launch {
        program: task.program,
        arguments: task.arguments,
        environment: task.environment,
        directory: task.directory,
        stdout: pipes.stdout_end.raw(),
        stderr: pipes.stderr_end.raw(),
        before: clock::boot_nanos(),
        after: 0,
        failure: None,
    };
    let cgroup = task.cgroup.and_then(|path| Cgroup::make(path).ok());
    if let Some(cgroup) = cgroup {
        match clone(Some(cgroup.dir()), &mut launch) {
            Ok(pid) => return born(pid, Some(cgroup), &launch),
            // Not allowed here, or not possible: then without.
            Err(_) => cgroup.remove(),
        }
    }
    let pid = clone(None, &mut launch).map_err(Failure::at(Stage::Clone))?;
    born(pid, None, &launch)
}

fn clone(cgroup: Option<&Fd>, launch: &mut Launch<'_>) -> Result<u32, Errno> {
    // SAFETY: the child ends in an exec or an exit and touches only the launch, which outlives it.
    unsafe { process::clone(cgroup, child, ptr::from_mut(launch)) }
}

fn born<'a>(
    pid: u32,
    cgroup: Option<Cgroup<'a>>,
    launch: &Launch<'_>,
) -> Result<Leader<'a>, Failure> {
    // SAFETY: the child is gone from our memory; it may have written there, which the compiler does
    // not see.
    let (failure, after) = unsafe {
        (
            ptr::read_volatile(&raw const launch.failure),
            ptr::read_volatile(&raw const launch.after),
        )
    };
    let Some(failure) = failure else {
        let start_ticks = ticks_between(launch.before, after)
            // Its number is its own until we take its status.
            .or_else(|| processes::stat(pid).map(|stat| stat.start_ticks))
            .unwrap_or(0);
        return Ok(Leader {
            pid,
            start_ticks,
            cgroup,
        });
    };
    let _ = process::wait_for(pid);
    if let Some(cgroup) = cgroup {
        cgroup.remove();
    }
    Err(failure)
}

unsafe extern "C" fn child(launch: *mut Launch<'_>) -> ! {
    // SAFETY: our parent stands still and keeps it alive.
    let launch = unsafe { &mut *launch };
    launch.after = clock::boot_nanos();
    launch.failure = Some(become_leader(launch));
    process::exit(127)
}

/// Everything between birth and exec; returns only if it fails. Descriptors need no care: all but
/// the first three close at exec.
fn become_leader(launch: &Launch<'_>) -> Failure {
    let arranged = process::new_session()
        .and_then(|()| file::duplicate(launch.stdout, 1))
        .and_then(|()| file::duplicate(launch.stderr, 2));
    if let Err(errno) = arranged {
        return Failure {
            stage: Stage::Arrange,
            errno,
        };
    }
    if let Err(errno) = file::enter_directory(launch.directory) {
        return Failure {
            stage: Stage::WorkingDirectory,
            errno,
        };
    }
    if let Err(errno) = signals::set_mask(signals::Mask::None) {
        return Failure {
            stage: Stage::Arrange,
            errno,
        };
    }
    // SAFETY: the lists are those that the kernel gave to us.
    let errno = unsafe { process::execute(launch.program, launch.arguments, launch.environment) };
    Failure {
        stage: Stage::Exec,
        errno,
    }
}
