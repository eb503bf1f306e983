//! The creation of the leader.
//!
//! The child shares the shim's memory until it executes its program, and the shim is suspended until
//! then: no page is copied, and a failure is in memory when the shim continues. Between clone and exec
//! the child makes system calls only.

use core::{
    ffi::{CStr, c_char},
    ptr,
};

use heeler_shim::{limit_tag::LimitTag, procfs::ticks_between, record::Stage};

use super::{assignment::Task, cgroup::Cgroup, streams::LeaderEnds};
use crate::program::{
    clock,
    sys::{Errno, Fd, file, process, signals, terminal},
    tree::processes,
};

/// A leader that runs its program.
pub(super) struct Leader<'a> {
    pub(super) pid: u32,
    /// The start time in clock ticks since boot.
    pub(super) start_ticks: u64,
    /// The cgroup that it was created in.
    pub(super) cgroup: Option<Cgroup<'a>>,
}

/// A failed start.
#[derive(Clone, Copy)]
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) errno: Errno,
}

impl Failure {
    pub(super) fn at(stage: Stage) -> impl Fn(Errno) -> Self {
        move |errno| Self { stage, errno }
    }
}

/// The child's instructions, and the place for its failure.
struct Launch<'a> {
    program: &'a CStr,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    directory: &'a CStr,
    tag: LimitTag,
    streams: Standard,
    /// Moments before and after the clone, in nanoseconds since boot.
    before: u64,
    after: u64,
    failure: Option<Failure>,
}

/// The descriptors that become the child's standard streams.
#[derive(Clone, Copy)]
enum Standard {
    Pipes {
        /// `None`: the shim's own, which is at its end.
        stdin: Option<i32>,
        stdout: i32,
        stderr: i32,
    },
    Terminal(i32),
}

/// Starts the leader, in the task's cgroup if possible.
pub(super) fn start<'a>(
    task: &Task<'a>,
    ends: &LeaderEnds,
    stdin: Option<&Fd>,
) -> Result<Leader<'a>, Failure> {
    let mut launch = Launch {
        program: task.program,
        arguments: task.arguments,
        environment: task.environment,
        directory: task.directory,
        tag: LimitTag::of(task.uid),
        streams: match ends {
            LeaderEnds::Pipes { stdout, stderr } => Standard::Pipes {
                stdin: stdin.map(Fd::raw),
                stdout: stdout.raw(),
                stderr: stderr.raw(),
            },
            LeaderEnds::Terminal(slave) => Standard::Terminal(*slave),
        },
        before: clock::boot_nanos(),
        after: 0,
        failure: None,
    };
    let cgroup = task.cgroup.and_then(|path| Cgroup::make(path).ok());
    if let Some(cgroup) = cgroup {
        match clone(Some(cgroup.dir()), &mut launch) {
            Ok(pid) => return created(pid, Some(cgroup), &launch),
            // Not permitted or not supported: start without a cgroup.
            Err(_) => cgroup.remove(),
        }
    }
    let pid = clone(None, &mut launch).map_err(Failure::at(Stage::Clone))?;
    created(pid, None, &launch)
}

fn clone(cgroup: Option<&Fd>, launch: &mut Launch<'_>) -> Result<u32, Errno> {
    // SAFETY: the child ends in an exec or an exit and writes only to the launch, which outlives it.
    unsafe { process::clone(cgroup, child, ptr::from_mut(launch)) }
}

fn created<'a>(
    pid: u32,
    cgroup: Option<Cgroup<'a>>,
    launch: &Launch<'_>,
) -> Result<Leader<'a>, Failure> {
    // SAFETY: the child no longer shares the memory; the reads are volatile because the compiler does
    // not see what it wrote.
    let (failure, after) = unsafe {
        (
            ptr::read_volatile(&raw const launch.failure),
            ptr::read_volatile(&raw const launch.after),
        )
    };
    let Some(failure) = failure else {
        let start_ticks = ticks_between(launch.before, after)
            // The pid cannot be reused before the shim reaps it.
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
    // SAFETY: the parent is suspended and keeps the launch alive.
    let launch = unsafe { &mut *launch };
    launch.after = clock::boot_nanos();
    launch.failure = Some(become_leader(launch));
    process::exit(127)
}

/// The steps between clone and exec; returns only on failure. All descriptors but the first three
/// close at exec.
fn become_leader(launch: &Launch<'_>) -> Failure {
    // A process without the tag is found by its environment alone, when it must be.
    let _ = process::tag(launch.tag);
    let arranged = process::new_session().and_then(|()| arrange(launch.streams));
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
    // SAFETY: the assignment's lists end in null pointers, and their texts in a NUL.
    let errno = unsafe { process::execute(launch.program, launch.arguments, launch.environment) };
    Failure {
        stage: Stage::Exec,
        errno,
    }
}

fn arrange(streams: Standard) -> Result<(), Errno> {
    let (stdin, stdout, stderr) = match streams {
        Standard::Pipes {
            stdin,
            stdout,
            stderr,
        } => (stdin, stdout, stderr),
        Standard::Terminal(slave) => {
            terminal::control(slave)?;
            (Some(slave), slave, slave)
        }
    };
    if let Some(stdin) = stdin {
        file::duplicate(stdin, 0)?;
    }
    file::duplicate(stdout, 1)?;
    file::duplicate(stderr, 2)
}
