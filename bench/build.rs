//! Compiles the smallest program there is: it needs no loader and no C library, and exits with 0. A
//! spawn of it measures the cost of a start without the cost of a program.

use std::{env, path::PathBuf, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/floor/nothing.rs");
    let variable = |name: &str| env::var_os(name).unwrap_or_default();
    let mut rustc = Command::new(variable("RUSTC"));
    if variable("HOST") != variable("TARGET") {
        rustc.arg("--target").arg(variable("TARGET"));
    }
    rustc.args([
        "--edition=2024",
        "--crate-name=nothing",
        "--crate-type=bin",
        "-Copt-level=s",
    ]);
    rustc.args([
        "-Cpanic=abort",
        "-Crelocation-model=static",
        "-Cstrip=symbols",
    ]);
    for flag in [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-Wl,--build-id=none",
    ] {
        rustc.arg(format!("-Clink-arg={flag}"));
    }
    let program = PathBuf::from(variable("OUT_DIR")).join("nothing");
    rustc.arg("src/floor/nothing.rs").arg("-o").arg(program);
    match rustc.status() {
        Ok(status) if status.success() => {}
        Ok(status) => println!("cargo::error=src/floor/nothing.rs does not compile: {status}"),
        Err(error) => println!("cargo::error=cannot run {rustc:?}: {error}"),
    }
}
