//! The roles of this program when it is started as `heeler-bench role NAME ...`: children that
//! misbehave, a child that writes, and floors that need a process of their own.

mod brood;
mod kill;
mod server;

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use tokio::runtime;

use crate::{
    Result, cases,
    measured::tasks::{self, Naming},
};

pub(crate) use brood::{COUNT, Kind, Leash};

/// Runs a role.
pub(crate) fn play(name: &str, args: &[String]) -> Result {
    let arg = |index: usize| {
        args.get(index)
            .map(String::as_str)
            .ok_or("an argument is missing")
    };
    match name {
        "brood" => brood::breed(Kind::read(arg(0)?)?, arg(1)?.as_ref(), None),
        "caged-brood" => brood::breed(
            Kind::read(arg(0)?)?,
            arg(1)?.as_ref(),
            Some(arg(2)?.as_ref()),
        ),
        "kill" => kill::run(Kind::read(arg(0)?)?),
        "write" => write(arg(0)?.parse()?, arg(1)?.parse()?),
        "lines" => lines(arg(0)?.parse()?),
        "caller" => call(arg(0)?.as_ref()),
        "load" => load(arg(0)?.as_ref(), arg(1)?, arg(2)?.parse()?),
        "server" => server::run(arg(0)?.as_ref()),
        _ => Err(format!("{name} is no role").into()),
    }
}

/// Writes this many pieces of this size to stdout, with a system call each.
fn write(size: usize, count: usize) -> Result {
    let piece = vec![b'.'; size];
    // Not `std::io::stdout`, which buffers lines.
    let mut out = File::from(nix::unistd::dup(io::stdout())?);
    for _ in 0..count {
        out.write_all(&piece)?;
    }
    Ok(())
}

/// Writes this many numbered lines of 64 bytes to stdout.
fn lines(count: usize) -> Result {
    let mut out = BufWriter::with_capacity(4 << 10, File::from(nix::unistd::dup(io::stdout())?));
    for number in 0..count {
        writeln!(out, "line {number:<58}")?;
    }
    Ok(out.flush()?)
}

/// Calls a running daemon, inside of whose task it is.
fn call(socket: &Path) -> Result {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(cases::call_from_inside(socket))
}

/// Runs this many tasks on a running daemon, for a profiler.
fn load(socket: &Path, program: &str, count: usize) -> Result {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    let rate = runtime.block_on(tasks::throughput(socket, program, Naming::Unnamed, count))?;
    println!("{rate:.0} tasks/s");
    Ok(())
}
