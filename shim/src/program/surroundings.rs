//! What a shim makes of the process that it is given, before it does anything for a task.
//!
//! Afterwards: in `/`, the subreaper of all its descendants; every signal has its default meaning
//! and waits; 0 is `/dev/null`, as 1 and 2 are by the server's doing, and nothing else is open but
//! what is returned here. A session of its own comes later, when nobody waits for us any more.

use super::sys::{Errno, Fd, file, process, signals};

/// The descriptors that a shim begins with.
pub(super) struct Surroundings {
    /// The connection to the server that started it.
    pub(super) server: Fd,
    /// Readable when a child has ended.
    pub(super) child_signals: Fd,
}

/// What can be told to the server, if anything can.
pub(super) struct Trouble {
    pub(super) server: Option<Fd>,
    pub(super) errno: Errno,
}

/// Arranges the surroundings.
pub(super) fn arrange() -> Result<Surroundings, Trouble> {
    file::close_inherited();
    let server = file::copy_input().map_err(|errno| Trouble {
        server: None,
        errno,
    })?;
    match child_signals() {
        Ok(child_signals) => Ok(Surroundings {
            server,
            child_signals,
        }),
        Err(errno) => Err(Trouble {
            server: Some(server),
            errno,
        }),
    }
}

fn child_signals() -> Result<Fd, Errno> {
    file::null_input()?;
    // Masked first: no signal that comes in between can end us, whatever it meant before.
    signals::set_mask(signals::Mask::All)?;
    signals::reset_meanings();
    process::become_subreaper()?;
    process::take_name(c"heeler-shim");
    file::enter_directory(c"/")?;
    signals::child_signals()
}
