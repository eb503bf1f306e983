//! Links `heeler` as a program that needs no loader, where the toolchain can make one.
//!
//! A client command lives for a millisecond or two, and half of that was the loader's: three libraries
//! to map and 14,000 addresses to correct. Cargo has no setting for one program's way of linking that
//! travels with its package, so the linker is told here; where the C library has no static form (some
//! systems have that in a package of its own), the program is linked as ever.

use std::{
    env, fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Set to anything, it leaves the program to the system's libraries.
const DYNAMIC: &str = "HEELER_LINK_DYNAMIC";

/// What the standard library asks for, and whose static form it gets. The linker would prefer the
/// shared one wherever a directory has both.
const LIBRARIES: [(&str, &str); 7] = [
    ("c", "libc.a"),
    ("m", "libm.a"),
    ("rt", "librt.a"),
    ("pthread", "libpthread.a"),
    ("util", "libutil.a"),
    ("dl", "libdl.a"),
    ("gcc_s", "libgcc_eh.a"),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={DYNAMIC}");
    if !is_wanted() {
        return Ok(());
    }
    let linker = variable("RUSTC_LINKER").unwrap_or_else(|| "cc".to_owned());
    let out = PathBuf::from(variable("OUT_DIR").unwrap_or_default());
    let libraries = out.join("static");
    if can_link_statically(&linker, &out) && gather(&linker, &libraries)? {
        let search = format!("-L{}", libraries.display());
        for argument in [
            "-no-pie",
            "-static",
            &search,
            // What the C library and the unwinder want of one another, for linkers that read once.
            "-Wl,--start-group,-lgcc,-lgcc_eh,-lc,--end-group",
        ] {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
    Ok(())
}

/// Whether it is a program for this very kind of machine and for the GNU C library: others are
/// static already, or are linked by tools that are not known here.
fn is_wanted() -> bool {
    let features = variable("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    env::var_os(DYNAMIC).is_none()
        && variable("HOST") == variable("TARGET")
        && variable("CARGO_CFG_TARGET_OS").as_deref() == Some("linux")
        && variable("CARGO_CFG_TARGET_ENV").as_deref() == Some("gnu")
        && !features.split(',').any(|feature| feature == "crt-static")
}

/// Tries it, with a program that does nothing.
fn can_link_statically(linker: &str, out: &Path) -> bool {
    let (source, program) = (out.join("nothing.c"), out.join("nothing"));
    fs::write(&source, "int main(void) { return 0; }\n").is_ok()
        && Command::new(linker)
            .args(["-static", "-no-pie", "-o"])
            .args([&program, &source])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
        && Command::new(&program)
            .status()
            .is_ok_and(|status| status.success())
}

/// A directory with nothing but the static libraries, under the names that they are asked for by;
/// says whether all were found.
fn gather(linker: &str, directory: &Path) -> io::Result<bool> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    fs::create_dir_all(directory)?;
    for (name, file) in LIBRARIES {
        let found = Command::new(linker)
            .arg(format!("-print-file-name={file}"))
            .output()?;
        // A name that is not found comes back as it was.
        let path = PathBuf::from(String::from_utf8_lossy(&found.stdout).trim());
        if !path.is_absolute() {
            return Ok(false);
        }
        symlink(path, directory.join(format!("lib{name}.a")))?;
    }
    Ok(true)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}
