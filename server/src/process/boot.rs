//! Which boot of the machine this is: numbers of processes mean nothing beyond it.

use std::{fs, io, sync::OnceLock};

use nix::{
    sys::time::TimeValLike,
    time::{ClockId, clock_gettime},
};
use uuid::Uuid;

use crate::task::Timestamp;

const FILE: &str = "/proc/sys/kernel/random/boot_id";

/// When the machine was started, by the time of day that it has now; at the earliest, if nobody knows.
pub fn began() -> Timestamp {
    let up = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(i64::MAX, |up| up.num_microseconds());
    Timestamp(Timestamp::now().0.saturating_sub(up.unsigned_abs()))
}

/// The kernel's name for one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootId(pub [u8; 16]);

impl BootId {
    /// The present one, which stays the same for as long as any process lives.
    pub fn current() -> io::Result<Self> {
        static CURRENT: OnceLock<BootId> = OnceLock::new();
        if let Some(current) = CURRENT.get() {
            return Ok(*current);
        }
        let text = fs::read_to_string(FILE)?;
        let id = Uuid::try_parse(text.trim()).map_err(io::Error::other)?;
        Ok(*CURRENT.get_or_init(|| Self(*id.as_bytes())))
    }
}
