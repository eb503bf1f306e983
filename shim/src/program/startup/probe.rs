//! The server's test at start-up: can a child be created in a cgroup, and does the cgroup have a kill
//! switch?

use core::ffi::CStr;

use crate::program::{
    sys::{Errno, process},
    task::cgroup::Cgroup,
};

/// Returns the exit code: 0, or the kernel's error number.
pub(crate) fn run(path: &'static CStr) -> u8 {
    match attempt(path) {
        Ok(()) => 0,
        Err(Errno(number)) => u8::try_from(number).unwrap_or(u8::MAX),
    }
}

fn attempt(path: &'static CStr) -> Result<(), Errno> {
    let cgroup = Cgroup::open(path)?;
    cgroup.kill_switch()?;
    // SAFETY: the child exits at once and touches no memory.
    let pid = unsafe { process::clone(Some(cgroup.dir()), exit_at_once, &mut ()) }?;
    process::wait_for(pid).map(drop)
}

unsafe extern "C" fn exit_at_once(_: *mut ()) -> ! {
    process::exit(0)
}
