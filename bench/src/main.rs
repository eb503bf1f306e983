//! `heeler-bench [NAME...]`: the cost of the real daemon, as ratios to a floor that is measured in the
//! same run, interleaved with it.
//!
//! A figure that misses its goal is marked, and the exit code is still 0. `docs/BENCHMARKS.md` explains
//! each line.

mod bench;
mod cases;
mod floor;
mod measured;
mod result;
mod role;

use std::{env, error::Error, process::ExitCode, time::Instant};

use bench::Bench;
use result::report::{Heading, Row};

/// Errors are for people to read.
pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((first, [name, rest @ ..])) if first == "role" => role::play(name, rest),
        _ => measure(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("heeler-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(names: &[String]) -> Result {
    for name in names {
        if !cases::NAMES.contains(&name.as_str()) {
            return Err(format!("{name} is none of {}", cases::NAMES.join(", ")).into());
        }
    }
    let bench = Bench::new()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        tokio::select! {
            done = measure_all(names, &bench) => done,
            // The running case is dropped, and with it every process that it started.
            interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
        }
    })
}

async fn measure_all(names: &[String], bench: &Bench) -> Result {
    let begun = Instant::now();
    println!("{Heading}");
    for name in cases::NAMES {
        let wanted = names.is_empty() || names.iter().any(|wanted| wanted == name);
        if wanted && let Err(error) = cases::run(name, bench).await {
            println!("{name}: not measured: {error}");
        }
    }
    println!("\n{} s in all", begun.elapsed().as_secs());
    Ok(())
}

/// Prints a line.
pub(crate) fn tell(row: Row) {
    println!("{row}");
}
