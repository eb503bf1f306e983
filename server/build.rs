//! Compiles the shim, which the server carries inside itself.
//!
//! The shim starts without a C library, which Cargo cannot be told for one binary of a workspace; so
//! the compiler that Cargo uses is run here: once for the formats, once for the program. Whoever
//! builds needs nothing for it beyond what a Rust toolchain needs to link.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{self, Command},
};

/// How both parts are compiled.
const CODE: &[&str] = &[
    "--edition=2024",
    "-Copt-level=s",
    "-Cpanic=abort",
    "-Cembed-bitcode=yes",
];

/// How the program is made of them: one file that needs no loader, no larger than it must be.
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
    if let Err(message) = compile_shim() {
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
        // This target brings start-up files of its own, which are not wanted either.
        rustc.arg("-Clink-self-contained=no");
    }
    rustc
        .arg(sources.join("main.rs"))
        .arg("-o")
        .arg(out.join("heeler-shim"));
    run(rustc)
}

/// The compiler that Cargo uses, for the target that it builds for. Flags that are meant for the
/// server are not for the shim.
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
        "the shim does not compile ({}); the compiler's words are above",
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
        "Heeler runs on Linux, on x86_64 and aarch64: {name} is {value}"
    ))
}

fn variable(name: &str) -> Result<OsString, String> {
    env::var_os(name).ok_or_else(|| format!("Cargo has not set {name}"))
}

fn joined(before: &str, behind: impl AsRef<OsStr>) -> OsString {
    let mut out = OsString::from(before);
    out.push(behind);
    out
}
