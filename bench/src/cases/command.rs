//! `heeler spawn -- true` as a shell would run it, against task-spooler's `tsp true` and against the
//! start of a program alone.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use crate::{
    Result,
    bench::Bench,
    floor::bare::Bare,
    measured::{
        daemon::{Containment, Daemon},
        program::TRUE,
    },
    result::{
        figures::{median, millis, time},
        report::{Goal, Row},
    },
    tell,
};

const CALLS: usize = 100;
const WARM_UP: usize = 5;

pub(super) async fn run(bench: &Bench) -> Result {
    let daemon = bench.daemon(Containment::Best).await?;
    let spooler = Spooler::find(bench)?;
    let (mut ours, mut theirs, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    let program = Bare::new(&[TRUE])?;
    for call in 0..CALLS + WARM_UP {
        let begun = Instant::now();
        program.run()?;
        let floor = millis(begun.elapsed());
        let figure = timed(heeler_spawn(bench, &daemon))?;
        let spooled = spooler
            .as_ref()
            .map(|spooler| timed(spooler.spool()))
            .transpose()?;
        if call >= WARM_UP {
            bare.push(floor);
            ours.push(figure);
            theirs.extend(spooled);
        }
    }
    daemon.end().await?;
    let row = |what: &str, floor: f64, goal| Row {
        what: what.to_owned(),
        figure: time(median(&ours)),
        floor: time(floor),
        value: median(&ours) / floor,
        goal,
    };
    match spooler {
        Some(_) => {
            let goal = Goal::at_most(1.3, 1.0);
            tell(row(
                "`heeler spawn -- true`, p50; floor: `tsp true`",
                median(&theirs),
                Some(goal),
            ));
        }
        None => println!("`heeler spawn` to `tsp`: TSP IS NOT INSTALLED (package task-spooler)"),
    }
    tell(row(
        "`heeler spawn -- true`, p50; floor: start and end of true",
        median(&bare),
        None,
    ));
    Ok(())
}

fn heeler_spawn(bench: &Bench, daemon: &Daemon) -> Command {
    let mut command = Command::new(bench.heeler());
    command
        .args(["spawn", "--", "true"])
        .env("HEELER_ADDR", daemon.address());
    command
}

fn timed(mut command: Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let begun = Instant::now();
    let status = command.status()?;
    match status.success() {
        true => Ok(millis(begun.elapsed())),
        false => Err(format!("{command:?}: {status}").into()),
    }
}

/// task-spooler with a server of its own, which ends with this value.
#[derive(Debug)]
struct Spooler {
    program: PathBuf,
    dir: PathBuf,
}

impl Spooler {
    fn find(bench: &Bench) -> Result<Option<Self>> {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut names = env::split_paths(&path).map(|dir| dir.join("tsp"));
        let Some(program) = names.find(|name| Path::is_file(name)) else {
            return Ok(None);
        };
        Ok(Some(Self {
            program,
            dir: bench.directory()?,
        }))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("TS_SOCKET", self.dir.join("socket"))
            .env("TMPDIR", &self.dir);
        command
    }

    fn spool(&self) -> Command {
        let mut command = self.command();
        command.arg("true");
        command
    }
}

impl Drop for Spooler {
    fn drop(&mut self) {
        let _ = self.command().arg("-K").status();
    }
}
