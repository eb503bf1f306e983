//! Links `heeler` statically where the toolchain can.
//!
//! A client command runs for a millisecond or two, and the dynamic loader took half of that: it mapped three
//! libraries and relocated 14,000 addresses. Cargo has no per-package setting for this, so the linker
//! arguments are set here. Without a static C library (on some systems a separate package) the program is
//! linked dynamically.

use std::{
    env, fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// If set, the program is linked dynamically.
const DYNAMIC: &str = "HEELER_LINK_DYNAMIC";

/// The libraries that the standard library links, and their static files. The linker prefers a shared
/// library where a directory has both.
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
    if can_link_statically(&linker, &out) && link_libraries(&linker, &libraries)? {
        let search = format!("-L{}", libraries.display());
        for argument in [
            "-no-pie",
            "-static",
            &search,
            // The C library and the unwinder need each other, and some linkers read each library once.
            "-Wl,--start-group,-lgcc,-lgcc_eh,-lc,--end-group",
        ] {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
    Ok(())
}

/// Returns whether the target is this machine with the GNU C library: other targets are static already, or
/// use a linker with other arguments.
fn is_wanted() -> bool {
    let features = variable("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    env::var_os(DYNAMIC).is_none()
        && variable("HOST") == variable("TARGET")
        && variable("CARGO_CFG_TARGET_OS").as_deref() == Some("linux")
        && variable("CARGO_CFG_TARGET_ENV").as_deref() == Some("gnu")
        && !features.split(',').any(|feature| feature == "crt-static")
}

/// Links and runs an empty program.
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

/// Fills a directory with links to the static libraries, under the names that the linker looks for.
/// Returns whether all were found.
fn link_libraries(linker: &str, directory: &Path) -> io::Result<bool> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    fs::create_dir_all(directory)?;
    for (name, file) in LIBRARIES {
        let found = Command::new(linker)
            .arg(format!("-print-file-name={file}"))
            .output()?;
        // The linker returns the bare name of a file that it does not find.
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
