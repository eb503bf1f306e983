//! The present boot of the machine. Pids and monotonic times mean nothing in another one.

use std::{fs, io, sync::OnceLock};

use nix::{
    sys::time::TimeValLike,
    time::{ClockId, clock_gettime},
};
use uuid::Uuid;

use crate::task::Timestamp;

const FILE: &str = "/proc/sys/kernel/random/boot_id";

/// Returns the time of the boot by the present wall clock; the earliest time if it is not known.
pub(crate) fn boot_time() -> Timestamp {
    let up = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(i64::MAX, |up| up.num_microseconds());
    Timestamp(Timestamp::now().0.saturating_sub(up.unsigned_abs()))
}

/// The kernel's id of one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BootId(pub(crate) [u8; 16]);

impl BootId {
    pub(crate) fn current() -> io::Result<Self> {
        static CURRENT: OnceLock<BootId> = OnceLock::new();
        if let Some(current) = CURRENT.get() {
            return Ok(*current);
        }
        let text = fs::read_to_string(FILE)?;
        let id = Uuid::try_parse(text.trim()).map_err(io::Error::other)?;
        Ok(*CURRENT.get_or_init(|| Self(*id.as_bytes())))
    }
}
