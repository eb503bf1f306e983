//! Input: the throughput and the round trip of `heeler run -i -- cat` against `cat` alone, and the echo of a
//! task's terminal against that of a bare one.

use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Instant,
};

use heeler_proto::v1::{
    FollowOutputRequest, TerminalPolicy, WriteInputRequest, follow_output_response::Item,
};
use nix::{
    pty::openpty,
    sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity},
    unistd::Pid,
};

use crate::{
    Result,
    bench::Bench,
    measured::{
        daemon::{Containment, Daemon},
        tasks,
    },
    result::{
        figures::{median, median_ratio, millis, throughput, time},
        report::{Goal, Row},
    },
    tell,
};

const ROUNDS: usize = 5;
const BYTES: usize = 64 << 20;
const PIECE: usize = 64 << 10;
const TRIPS: usize = 500;
/// As long as a small message of a stdio server.
const MESSAGE: [u8; 128] = [b'm'; 128];

pub(super) async fn run(bench: &Bench) -> Result {
    let daemon = bench.daemon(Containment::Best).await?;
    let (mut floors, mut figures) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(Piped::start(bare())?.throughput()?);
        figures.push(Piped::start(guarded(bench, &daemon))?.throughput()?);
    }
    tell(Row {
        what: "64 MiB through `heeler run -i -- cat`; floor: cat".to_owned(),
        figure: throughput(median(&figures)),
        floor: throughput(median(&floors)),
        value: median_ratio(&figures, &floors),
        goal: Some(Goal::at_least(0.4, 0.7)),
    });
    round_trips(bench, &daemon, "p50")?;
    let (mut floors, mut figures) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(bare_echo()?);
        figures.push(echo(&daemon).await?);
    }
    compare(
        "echo of a terminal, p50; floor: a bare one",
        &figures,
        &floors,
        None,
    );
    daemon.end().await?;
    on_one_cpu(bench).await
}

/// The round trips again, with every process on one CPU. On an idle machine most of a round trip is the time in which
/// another CPU wakes up, and whether one has to depends on where the kernel has placed the processes.
async fn on_one_cpu(bench: &Bench) -> Result {
    let this_thread = Pid::from_raw(0);
    let all = sched_getaffinity(this_thread)?;
    let mut one = CpuSet::new();
    one.set(sched_getcpu()?)?;
    // Inherited by the daemon and its shims, and by what is started here.
    sched_setaffinity(this_thread, &one)?;
    let daemon = bench.daemon(Containment::Best).await?;
    round_trips(bench, &daemon, "one CPU, p50")?;
    daemon.end().await?;
    Ok(sched_setaffinity(this_thread, &all)?)
}

fn bare() -> Command {
    Command::new("cat")
}

fn guarded(bench: &Bench, daemon: &Daemon) -> Command {
    let mut command = Command::new(bench.heeler());
    command.args(["run", "-i", "--", "cat"]);
    command.env("HEELER_ADDR", daemon.address());
    command
}

fn round_trips(bench: &Bench, daemon: &Daemon, how: &str) -> Result {
    let (mut floors, mut figures) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(Piped::start(bare())?.round_trip()?);
        figures.push(Piped::start(guarded(bench, daemon))?.round_trip()?);
    }
    compare(
        &format!("round trip through `heeler run -i -- cat`, {how}; floor: cat"),
        &figures,
        &floors,
        Some(Goal::at_most(4.0, 2.0)),
    );
    Ok(())
}

fn compare(what: &str, figures: &[f64], floors: &[f64], goal: Option<Goal>) {
    tell(Row {
        what: what.to_owned(),
        figure: time(median(figures)),
        floor: time(median(floors)),
        value: median_ratio(figures, floors),
        goal,
    });
}

/// A program that writes what it reads.
struct Piped {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Piped {
    /// Starts it, and waits until it has returned a message.
    fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = child.stdout.take().ok_or("no stdout")?;
        let mut piped = Self {
            child,
            input,
            output,
        };
        piped.trip()?;
        Ok(piped)
    }

    /// Returns bytes per second.
    fn throughput(mut self) -> Result<f64> {
        let begun = Instant::now();
        let mut input = self.input;
        let writing = thread::spawn(move || {
            let piece = vec![b'x'; PIECE];
            (0..BYTES / PIECE).try_for_each(|_| input.write_all(&piece))
        });
        let (mut space, mut read) = (vec![0; PIECE], 0);
        loop {
            match self.output.read(&mut space)? {
                0 => break,
                count => read += count,
            }
        }
        let took = begun.elapsed();
        writing.join().map_err(|_| "the writer panicked")??;
        end(self.child)?;
        match read {
            BYTES => Ok(BYTES as f64 / took.as_secs_f64()),
            _ => Err(format!("{read} of {BYTES} bytes").into()),
        }
    }

    /// Returns the median time of a message there and back, in milliseconds.
    fn round_trip(mut self) -> Result<f64> {
        let mut times = Vec::with_capacity(TRIPS);
        for _ in 0..TRIPS {
            let begun = Instant::now();
            self.trip()?;
            times.push(millis(begun.elapsed()));
        }
        drop(self.input);
        end(self.child)?;
        Ok(median(&times))
    }

    fn trip(&mut self) -> Result {
        self.input.write_all(&MESSAGE)?;
        Ok(self.output.read_exact(&mut [0; MESSAGE.len()])?)
    }
}

fn end(mut child: Child) -> Result {
    let status = child.wait()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("cat: {status}").into()),
    }
}

/// Returns the median time from a typed letter to its echo by the line discipline, in milliseconds.
fn bare_echo() -> Result<f64> {
    let pty = openpty(None, None)?;
    let mut person = File::from(pty.master);
    let mut times = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let begun = Instant::now();
        person.write_all(b"x")?;
        person.read_exact(&mut [0])?;
        times.push(millis(begun.elapsed()));
        // Deletes the letter, so that the line has room for the next.
        person.write_all(b"\x15")?;
        person.read_exact(&mut [0; ERASED])?;
    }
    Ok(median(&times))
}

/// The number of bytes by which a terminal shows that a letter is deleted: back, blank, back.
const ERASED: usize = 3;

/// The same for the terminal of a task, from WriteInput to FollowOutput.
async fn echo(daemon: &Daemon) -> Result<f64> {
    let mut stub = daemon.stub().await?;
    let id = tasks::spawn_on_terminal(&mut stub, &["cat"], TerminalPolicy::default()).await?;
    let follow = FollowOutputRequest {
        filter: Some(tasks::named(id.clone())),
        ..FollowOutputRequest::default()
    };
    let mut output = stub.follow_output(follow).await?.into_inner();
    let mut shown = 0;
    let mut expected = 0;
    let mut times = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        for (key, width) in [("x", 1), ("\x15", ERASED)] {
            let write = WriteInputRequest {
                task_id: id.clone(),
                data: key.into(),
                ..WriteInputRequest::default()
            };
            expected += width as u64;
            let begun = Instant::now();
            let mut writer = stub.clone();
            let writing = tokio::spawn(async move { writer.write_input(write).await });
            while shown < expected {
                let message = output.message().await?.ok_or("the output has ended")?;
                if let Some(Item::Output(output)) = message.item {
                    shown = output.next_offset;
                }
            }
            if key == "x" {
                times.push(millis(begun.elapsed()));
            }
            writing.await??;
        }
    }
    drop(output);
    daemon.stop_tasks().await?;
    Ok(median(&times))
}
