//! A reboot of the machine, simulated by another boot id for the test's thread and its children.

use std::{fs, path::PathBuf};

use crate::{
    Daemon,
    disk::{own_mounts, run},
};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Daemon {
    /// Makes later starts see another boot id. Returns false, after reporting a skip, where the user may
    /// not mount. The test must stay on one thread.
    pub fn reboot(&self, number: u8) -> bool {
        if !own_mounts() {
            return false;
        }
        let id: PathBuf = self.path("boot");
        let is_first = !id.exists();
        let text = format!("00000000-0000-4000-8000-0000000000{number:02x}\n");
        fs::write(&id, text).unwrap();
        if is_first {
            run("mount", &["--bind", id.to_str().expect("ASCII"), BOOT_ID]);
        }
        true
    }
}
