//! The setup of the shim's own process, before its first task.
//!
//! Afterwards it is in `/`, in a session of its own, and the subreaper of all its descendants. Every
//! signal has its default action and is blocked. Descriptor 0 is `/dev/null`, as the server has made 1
//! and 2, and nothing else is open but the descriptors of [`Setup`]. A shim is started before its task,
//! so no Spawn waits for this.

use crate::program::{
    startup::arguments::{Durability, Flags},
    sys::{Errno, Fd, Result, file, process, signals},
    tree::processes,
};

pub(crate) struct Setup {
    /// The connection to the server that started this shim.
    pub(crate) server: Fd,
    /// Readable when a child has ended.
    pub(crate) child_signals: Fd,
    pub(crate) own: Own,
}

/// The facts about this process that go into records.
pub(crate) struct Own {
    pub(crate) pid: u32,
    /// Identifies the process together with the pid.
    pub(crate) start_ticks: u64,
    pub(crate) boot_id: [u8; 16],
    pub(crate) durability: Durability,
    /// CPU time of the processes that were reaped for earlier tasks.
    pub(crate) cpu_micros: u64,
}

/// A failed setup, with the connection to report it on, if there is one.
pub(crate) struct SetupError {
    pub(crate) server: Option<Fd>,
    pub(crate) errno: Errno,
}

pub(crate) fn set_up(flags: &Flags) -> core::result::Result<Setup, SetupError> {
    file::close_inherited();
    let server = file::copy_input().map_err(|errno| SetupError {
        server: None,
        errno,
    })?;
    match child_signals().and_then(|signals| Ok((signals, own(flags)?))) {
        Ok((child_signals, own)) => Ok(Setup {
            server,
            child_signals,
            own,
        }),
        Err(errno) => Err(SetupError {
            server: Some(server),
            errno,
        }),
    }
}

fn child_signals() -> Result<Fd> {
    file::null_input()?;
    // Blocked first, so that no signal can end the shim while the actions are reset.
    signals::set_mask(signals::Mask::All)?;
    signals::reset_actions();
    process::become_subreaper()?;
    process::set_name(c"heeler-shim");
    file::enter_directory(c"/")?;
    // Fails for the leader of a process group, which is as good.
    let _ = process::new_session();
    signals::child_signals()
}

fn own(flags: &Flags) -> Result<Own> {
    if let Some(descriptors) = flags.descriptors {
        // A process may always lower its own limit.
        let _ = process::limit_descriptors(descriptors);
    }
    let pid = process::own_pid();
    Ok(Own {
        pid,
        start_ticks: processes::stat(pid).ok_or(Errno::EINVAL)?.start_ticks,
        boot_id: flags.boot_id,
        durability: flags.durability,
        cpu_micros: 0,
    })
}
