//! The floor of a spawn: `posix_spawn`, and nothing around it.

use std::{
    env,
    ffi::CString,
    os::unix::ffi::OsStrExt,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use nix::{
    spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn},
    sys::wait::waitpid,
    unistd::Pid,
};

use crate::Result;

/// Number of threads: one per core of the reference machine.
const THREADS: usize = 2;

/// A program, prepared once.
#[derive(Debug)]
pub(crate) struct Bare {
    args: Vec<CString>,
    env: Vec<CString>,
}

impl Bare {
    /// A program with these arguments and the daemon's environment.
    pub(crate) fn new(args: &[&str]) -> Result<Self> {
        let args = args
            .iter()
            .map(|arg| CString::new(*arg))
            .collect::<std::result::Result<_, _>>();
        let env = env::vars_os().filter_map(|(name, value)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        });
        Ok(Self {
            args: args?,
            env: env.collect(),
        })
    }

    /// Starts it, and returns when the program runs.
    pub(crate) fn spawn(&self) -> Result<Pid> {
        let actions = PosixSpawnFileActions::init()?;
        let attributes = PosixSpawnAttr::init()?;
        let program = self.args.first().ok_or("no program")?;
        Ok(posix_spawn(
            program.as_c_str(),
            &actions,
            &attributes,
            &self.args,
            &self.env,
        )?)
    }

    /// Starts it and waits for its end; returns the time of the start.
    pub(crate) fn run(&self) -> Result<Duration> {
        let begun = Instant::now();
        let pid = self.spawn()?;
        let started = begun.elapsed();
        waitpid(pid, None)?;
        Ok(started)
    }

    /// Runs it this many times, in two threads; returns the rate per second.
    pub(crate) fn throughput(&self, count: usize) -> Result<f64> {
        let left = AtomicUsize::new(count);
        let work = || -> Result {
            let next = |left: usize| left.checked_sub(1);
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
                .is_ok()
            {
                self.run()?;
            }
            Ok(())
        };
        let begun = Instant::now();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| {
                thread
                    .join()
                    .map_err(|_| "a thread of the floor has failed")?
            })
        })?;
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    }
}
