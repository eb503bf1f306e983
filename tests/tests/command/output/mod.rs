//! The commands that read, follow and search output.

mod logs;
mod many;
mod patterns;

use heeler_tests::Daemon;

/// Shell code that waits for [`open`].
fn door(daemon: &Daemon, name: &str) -> String {
    format!("until [ -e {} ]; do sleep 0.02; done", daemon.file(name))
}

fn open(daemon: &Daemon, name: &str) {
    std::fs::write(daemon.file(name), "").unwrap();
}
