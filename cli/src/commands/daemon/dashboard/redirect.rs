//! A file that sends a browser to an address with a token. The address itself, in the command line of the browser, could
//! be read by every user of the machine.

use std::{
    env,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use nix::unistd::mkdtemp;

/// Deleted when it is dropped.
#[derive(Debug)]
pub(super) struct Redirect {
    directory: PathBuf,
    path: PathBuf,
}

impl Redirect {
    /// Writes the file into a new directory that only this user may enter.
    pub(super) fn to(url: &str) -> io::Result<Self> {
        let directory = mkdtemp(&env::temp_dir().join("heeler-dashboard-XXXXXX"))?;
        let path = directory.join("open.html");
        let redirect = Self { directory, path };
        let mut new = OpenOptions::new();
        new.write(true).create_new(true).mode(0o600);
        new.open(&redirect.path)?.write_all(page(url).as_bytes())?;
        Ok(redirect)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The URL has an address and a token of hexadecimal digits: nothing that HTML would read in another way.
fn page(url: &str) -> String {
    format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Heeler</title>\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\">\n"
    )
}
