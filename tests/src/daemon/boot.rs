//! Another boot of the machine, as far as a daemon can tell: the kernel's name for it is another one,
//! for the test's thread and whatever it starts from then on.

use std::{fs, path::PathBuf};

use crate::{
    Daemon,
    disk::{own_mounts, run},
};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Daemon {
    /// From its next start on it is on a machine that was started anew; false, and said so, where that
    /// cannot be had. The test has to stay on one thread.
    pub fn reboot(&self, number: u8) -> bool {
        if !own_mounts() {
            return false;
        }
        let id: PathBuf = self.path(&format!("boot-{number}"));
        let text = format!("00000000-0000-4000-8000-0000000000{number:02x}\n");
        fs::write(&id, text).unwrap();
        run("mount", &["--bind", id.to_str().expect("ASCII"), BOOT_ID]);
        true
    }
}
