//! The rate at which readers follow a task that writes as fast as it can, and their effect on the task.
//!
//! One reader is compared with the task itself and with `tail -f` of a file. The task is compared with a
//! program that writes to a file that the same number of `tail -f` follow, because on two cores that many
//! readers slow down any writer.

use std::{
    fs::{self, File},
    io::Read,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use heeler_proto::v1::{ReadOutputRequest, read_output_request::Start};
use tokio::task::JoinSet;

use super::capture::{NO_LIMIT, remove, writer};
use crate::{
    Result,
    bench::Bench,
    measured::{
        connection::Stub,
        daemon::{Containment, Daemon},
        program,
        tasks::Ends,
    },
    result::{
        figures::{median, median_ratio, throughput},
        report::{Goal, Row},
    },
    tell,
};

const ROUNDS: usize = 5;
const PIECE: usize = 4 << 10;
/// Maximum size of a read.
const READ: u32 = 1 << 20;
/// The number of readers, and the number of pieces that the task writes for them.
const READERS: [(usize, usize); 3] = [(1, 16 << 10), (10, 4 << 10), (100, 1 << 10)];

pub(super) async fn run(bench: &Bench) -> Result {
    let daemon = bench.daemon(Containment::Best).await?;
    one_reader(&daemon).await?;
    for (readers, pieces) in READERS {
        let (mut figures, mut floors) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            floors.push(followed_by_tails(&daemon, readers, pieces)?);
            figures.push(follow(&daemon, readers, pieces).await?.task);
        }
        let what = format!("a task followed by {readers}; floor: by `tail -f`");
        row(what, &figures, &floors, None);
    }
    daemon.end().await
}

async fn one_reader(daemon: &Daemon) -> Result {
    let pieces = READERS[0].1;
    let (mut figures, mut alone, mut tail) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(follow(daemon, 0, pieces).await?.task);
        tail.push(read_by_tail(daemon, pieces)?);
        figures.push(follow(daemon, 1, pieces).await?.reader);
    }
    let goal = Goal::at_least(0.5, 0.8);
    row(
        "follow by 1 reader; floor: capture".to_owned(),
        &figures,
        &alone,
        Some(goal),
    );
    row(
        "follow by 1 reader; floor: `tail -f`".to_owned(),
        &figures,
        &tail,
        None,
    );
    Ok(())
}

fn row(what: String, figures: &[f64], floors: &[f64], goal: Option<Goal>) {
    tell(Row {
        what,
        figure: throughput(median(figures)),
        floor: throughput(median(floors)),
        value: median_ratio(figures, floors),
        goal,
    });
}

/// Rates in bytes per second.
struct Followed {
    /// The rate of the task.
    task: f64,
    /// The rate of the slowest reader.
    reader: f64,
}

async fn follow(daemon: &Daemon, readers: usize, pieces: usize) -> Result<Followed> {
    let (mut stub, ends) = (daemon.stub().await?, Ends::watch(&daemon.socket()).await?);
    let begun = Instant::now();
    let id = writer(&mut stub, PIECE, pieces, NO_LIMIT).await?;
    let mut following = JoinSet::new();
    for _ in 0..readers {
        following.spawn(read_all(stub.clone(), id.clone()));
    }
    ends.of(&id).await?;
    let task = begun.elapsed();
    let bytes = PIECE * pieces;
    while let Some(read) = following.join_next().await {
        let read = read??;
        if read != bytes as u64 {
            return Err(format!("a reader got {read} bytes").into());
        }
    }
    let reader = begun.elapsed();
    remove(&mut stub, id).await?;
    Ok(Followed {
        task: bytes as f64 / task.as_secs_f64(),
        reader: bytes as f64 / reader.as_secs_f64(),
    })
}

async fn read_all(mut stub: Stub, id: String) -> Result<u64> {
    let mut offset = 0;
    loop {
        let request = ReadOutputRequest {
            task_id: id.clone(),
            start: Some(Start::Offset(offset)),
            max_bytes: READ,
            wait: Some(prost_types::Duration {
                seconds: 30,
                nanos: 0,
            }),
            ..ReadOutputRequest::default()
        };
        let answer = stub.read_output(request).await?.into_inner();
        offset = answer.next_offset;
        if answer.complete && offset == answer.end_offset {
            return Ok(offset);
        }
    }
}

/// The rate of one `tail -f` of a file.
fn read_by_tail(daemon: &Daemon, pieces: usize) -> Result<f64> {
    let path = daemon.path("out");
    let out = File::create(&path)?;
    let mut tail = Tails(vec![tail(&path, Stdio::piped())?]);
    let mut piped = tail.0[0].stdout.take().ok_or("tail has no output")?;
    let begun = Instant::now();
    let mut child = write_to(out, pieces)?;
    let mut buffer = vec![0; READ as usize];
    let (mut left, mut took) = (PIECE * pieces, Duration::ZERO);
    while left > 0 {
        left -= piped.read(&mut buffer)?;
        took = begun.elapsed();
    }
    child.wait()?;
    fs::remove_file(path)?;
    Ok((PIECE * pieces) as f64 / took.as_secs_f64())
}

/// The rate of a program that writes to a file with this many followers.
fn followed_by_tails(daemon: &Daemon, readers: usize, pieces: usize) -> Result<f64> {
    let path = daemon.path("out");
    let out = File::create(&path)?;
    let tails = (0..readers).map(|_| tail(&path, Stdio::null()));
    let tails = Tails(tails.collect::<Result<_>>()?);
    let begun = Instant::now();
    write_to(out, pieces)?.wait()?;
    let took = begun.elapsed();
    drop(tails);
    fs::remove_file(path)?;
    Ok((PIECE * pieces) as f64 / took.as_secs_f64())
}

fn tail(path: &std::path::Path, out: Stdio) -> Result<Child> {
    let mut tail = Command::new("tail");
    tail.args(["-c", "+1", "-f"]).arg(path);
    Ok(tail.stdin(Stdio::null()).stdout(out).spawn()?)
}

fn write_to(out: File, pieces: usize) -> Result<Child> {
    let mut command = Command::new(program::own()?);
    command.args(["role", "write", &PIECE.to_string(), &pieces.to_string()]);
    Ok(command.stdin(Stdio::null()).stdout(out).spawn()?)
}

/// They do not end by themselves.
struct Tails(Vec<Child>);

impl Drop for Tails {
    fn drop(&mut self) {
        for tail in &mut self.0 {
            let _ = tail.kill();
            let _ = tail.wait();
        }
    }
}
