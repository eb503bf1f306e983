//! Which boot of the machine this is: numbers of processes mean nothing beyond it.

use std::{fs, io, sync::OnceLock};

use uuid::Uuid;

const FILE: &str = "/proc/sys/kernel/random/boot_id";

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
