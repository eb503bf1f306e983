//! The server's question at start-up: can a child be born in a cgroup here, and be killed by it?

use core::ffi::CStr;

use super::{
    cgroup::Cgroup,
    sys::{Errno, process},
};

/// The exit code: 0, or the kernel's reason.
pub(super) fn run(path: &'static CStr) -> u8 {
    match attempt(path) {
        Ok(()) => 0,
        Err(Errno(number)) => u8::try_from(number).unwrap_or(u8::MAX),
    }
}

fn attempt(path: &'static CStr) -> Result<(), Errno> {
    let cgroup = Cgroup::open(path)?;
    cgroup.kill_switch()?;
    // SAFETY: the child ends at once.
    let pid = unsafe { process::clone(Some(cgroup.dir()), end_at_once, &mut ()) }?;
    process::wait_for(pid).map(drop)
}

unsafe extern "C" fn end_at_once(_: *mut ()) -> ! {
    process::exit(0)
}
