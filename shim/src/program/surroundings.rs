//! What a shim makes of the process that it is given, before it does anything for a task.
//!
//! Afterwards: in `/`, in a session of its own, the subreaper of all its descendants; every signal
//! has its default meaning and waits; 0 is `/dev/null`, as 1 and 2 are by the server's doing, and
//! nothing else is open but what is returned here. Nobody waits for any of this: a shim is there
//! before its task is.

use heeler_shim::procfs::parse_uuid;

use super::{
    arguments::{Durability, Flags},
    processes,
    sys::{Errno, Fd, Result, file, process, signals},
};

/// What a shim begins with.
pub(super) struct Surroundings {
    /// The connection to the server that started it.
    pub(super) server: Fd,
    /// Readable when a child has ended.
    pub(super) child_signals: Fd,
    pub(super) own: Own,
}

/// What it knows of itself.
pub(super) struct Own {
    pub(super) pid: u32,
    /// With the pid, this names the process.
    pub(super) start_ticks: u64,
    pub(super) boot_id: [u8; 16],
    pub(super) durability: Durability,
    /// CPU time of those that it has waited for, for the tasks before the present one.
    pub(super) cpu_micros: u64,
}

/// What can be told to the server, if anything can.
pub(super) struct Trouble {
    pub(super) server: Option<Fd>,
    pub(super) errno: Errno,
}

/// Arranges the surroundings.
pub(super) fn arrange(flags: &Flags) -> core::result::Result<Surroundings, Trouble> {
    file::close_inherited();
    let server = file::copy_input().map_err(|errno| Trouble {
        server: None,
        errno,
    })?;
    match child_signals().and_then(|signals| Ok((signals, own(flags)?))) {
        Ok((child_signals, own)) => Ok(Surroundings {
            server,
            child_signals,
            own,
        }),
        Err(errno) => Err(Trouble {
            server: Some(server),
            errno,
        }),
    }
}

fn child_signals() -> Result<Fd> {
    file::null_input()?;
    // Masked first: no signal that comes in between can end us, whatever it meant before.
    signals::set_mask(signals::Mask::All)?;
    signals::reset_meanings();
    process::become_subreaper()?;
    process::take_name(c"heeler-shim");
    file::enter_directory(c"/")?;
    // Refused to the leader of a group, which is as good.
    let _ = process::new_session();
    signals::child_signals()
}

fn own(flags: &Flags) -> Result<Own> {
    if let Some(descriptors) = flags.descriptors {
        // Lowering one's own limit is always allowed.
        let _ = process::limit_descriptors(descriptors);
    }
    let pid = process::own_pid();
    Ok(Own {
        pid,
        start_ticks: processes::stat(pid).ok_or(Errno::EINVAL)?.start_ticks,
        boot_id: flags.boot_id.map_or_else(read_boot_id, Ok)?,
        durability: flags.durability,
        cpu_micros: 0,
    })
}

fn read_boot_id() -> Result<[u8; 16]> {
    let mut text = [0; 36];
    let boot_id = file::read_file(c"/proc/sys/kernel/random/boot_id", &mut text)?;
    parse_uuid(boot_id).ok_or(Errno::EINVAL)
}
