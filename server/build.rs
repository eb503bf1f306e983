//! Compiles the shim and lists the files of the page; both are embedded in the server.
//!
//! The shim starts without a C library, and Cargo has no setting for that in one binary of a workspace.
//! So this script runs the compiler that Cargo uses: once for the formats, once for the program. The
//! build needs nothing beyond a Rust toolchain and its linker.

#[path = "build/page.rs"]
mod page;

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{self, Command},
};

/// The options for both parts.
const CODE: &[&str] = &[
    "--edition=2024",
    "-Copt-level=s",
    "-Cpanic=abort",
    "-Cembed-bitcode=yes",
];

/// The options for the program: a small static executable that needs no loader.
const PROGRAM: &[&str] = &[
    "-Clto=fat",
    "-Ccodegen-units=1",
    "-Crelocation-model=static",
    "-Cforce-unwind-tables=no",
    "-Cstrip=symbols",
    "-Clink-arg=-nostartfiles",
    "-Clink-arg=-nostdlib",
    "-Clink-arg=-static",
    "-Clink-arg=-Wl,--build-id=none,--no-eh-frame-hdr,-z,norelro,-z,noseparate-code",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../shim/src");
    println!("cargo::rerun-if-changed=../ui/page");
    if let Err(message) = compile_shim().and_then(|()| page::embed()) {
        println!("cargo::error={message}");
        process::exit(1);
    }
}

fn compile_shim() -> Result<(), String> {
    require("CARGO_CFG_TARGET_OS", &["linux"])?;
    require("CARGO_CFG_TARGET_ARCH", &["x86_64", "aarch64"])?;
    let out = PathBuf::from(variable("OUT_DIR")?);
    let sources = Path::new("../shim/src");

    let formats = out.join("libheeler_shim.rlib");
    let mut rustc = compiler()?;
    rustc
        .args(["--crate-name=heeler_shim", "--crate-type=rlib"])
        .args(CODE);
    rustc.arg(sources.join("lib.rs")).arg("-o").arg(&formats);
    run(rustc)?;

    let mut rustc = compiler()?;
    rustc
        .args(["--crate-name=heeler_shim_program", "--crate-type=bin"])
        .args(CODE)
        .args(PROGRAM);
    rustc.arg("--extern").arg(joined("heeler_shim=", &formats));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg(joined("-Clinker=", linker));
    }
    if variable("CARGO_CFG_TARGET_ENV")? == "musl" {
        // This target links start-up files of its own.
        rustc.arg("-Clink-self-contained=no");
    }
    rustc
        .arg(sources.join("main.rs"))
        .arg("-o")
        .arg(out.join("heeler-shim"));
    run(rustc)
}

/// Returns the compiler that Cargo uses, for its target, without the flags for the server.
fn compiler() -> Result<Command, String> {
    let (host, target) = (variable("HOST")?, variable("TARGET")?);
    let mut rustc = Command::new(variable("RUSTC")?);
    if host != target {
        rustc.arg("--target").arg(target);
    }
    Ok(rustc)
}

fn run(mut command: Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|e| format!("cannot run {command:?}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    eprintln!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    Err(format!(
        "the shim does not compile ({}); see the compiler's output above",
        output.status
    ))
}

fn require(name: &str, supported: &[&str]) -> Result<(), String> {
    let value = variable(name)?;
    if supported.iter().any(|supported| value == *supported) {
        return Ok(());
    }
    let value = value.to_string_lossy();
    Err(format!(
        "Heeler supports Linux on x86_64 and aarch64 only: {name} is {value}"
    ))
}

fn variable(name: &str) -> Result<OsString, String> {
    env::var_os(name).ok_or_else(|| format!("Cargo has not set {name}"))
}

fn joined(before: &str, after: impl AsRef<OsStr>) -> OsString {
    let mut out = OsString::from(before);
    out.push(after);
    out
}
