//! Readers of bounded output: one stream over many tasks, a reader that stops reading, and a search.

use std::{
    fs::{self, File},
    process::{Command, Stdio},
    time::Instant,
};

use heeler_proto::v1::{
    FollowOutputRequest, OutputCursor, OutputFilter, ReadOutputRequest, TaskFilter,
    follow_output_response::Item, output_chunk::Content, read_output_request::Start,
};
use tokio::task::JoinHandle;

use super::capture::{NO_LIMIT, remove};
use crate::{
    Result,
    bench::Bench,
    measured::{
        connection::Stub,
        daemon::{Containment, Daemon},
        process, program,
        tasks::{self, Ends},
    },
    result::{
        figures::{median, median_ratio, throughput},
        report::{Goal, Row},
    },
    tell,
};

const ROUNDS: usize = 5;

/// The tasks of one stream, and the writes of each.
const TASKS: usize = 100;
const PIECE: usize = 4 << 10;
const PIECES: usize = 64;

/// The writes past a reader that does not read: 1 GiB.
const STALLED_PIECE: usize = 64 << 10;
const STALLED_PIECES: usize = 16 << 10;

/// The lines of a search, 64 bytes each: 64 MiB. One in a thousand matches.
const LINES: usize = 1 << 20;
const PATTERN: &str = "line [0-9]*000 ";

pub(super) async fn run(bench: &Bench) -> Result {
    let daemon = bench.daemon(Containment::Best).await?;
    one_stream(&daemon).await?;
    stalled_reader(&daemon).await?;
    search(&daemon).await?;
    daemon.end().await
}

async fn one_stream(daemon: &Daemon) -> Result {
    let (mut figures, mut floors) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        floors.push(write_all(daemon, &format!("alone-{round}")).await?);
        figures.push(follow_all(daemon, &format!("followed-{round}")).await?);
    }
    tell(Row {
        what: format!("one stream over {TASKS} tasks that write; floor: not followed"),
        figure: throughput(median(&figures)),
        floor: throughput(median(&floors)),
        value: median_ratio(&figures, &floors),
        goal: None,
    });
    Ok(())
}

/// Runs the tasks, and returns bytes per second.
async fn write_all(daemon: &Daemon, session: &str) -> Result<f64> {
    let (mut stub, ends) = (daemon.stub().await?, Ends::watch(&daemon.socket()).await?);
    let begun = Instant::now();
    let ids = start_all(&mut stub, session).await?;
    for id in &ids {
        ends.of(id).await?;
    }
    let took = begun.elapsed();
    forget(&mut stub, ids).await?;
    Ok((TASKS * PIECES * PIECE) as f64 / took.as_secs_f64())
}

/// Runs the tasks, and returns the bytes per second of a stream that is there before them.
async fn follow_all(daemon: &Daemon, session: &str) -> Result<f64> {
    let mut stub = daemon.stub().await?;
    let request = FollowOutputRequest {
        filter: Some(of_session(session)),
        ..FollowOutputRequest::default()
    };
    let mut stream = daemon
        .stub()
        .await?
        .follow_output(request)
        .await?
        .into_inner();
    let reader: JoinHandle<Result<usize>> = tokio::spawn(async move {
        let (mut bytes, mut ended) = (0, 0);
        while ended < TASKS {
            let message = stream.message().await?.ok_or("the stream has ended")?;
            match message.item {
                Some(Item::Output(output)) => {
                    let data = output.chunks.into_iter().filter_map(|chunk| chunk.content);
                    bytes += data.map(|content| size(&content)).sum::<usize>();
                }
                Some(Item::Ended(_)) => ended += 1,
                _ => {}
            }
        }
        Ok(bytes)
    });
    let begun = Instant::now();
    let ids = start_all(&mut stub, session).await?;
    let bytes = reader.await??;
    let took = begun.elapsed();
    forget(&mut stub, ids).await?;
    match bytes == TASKS * PIECES * PIECE {
        true => Ok(bytes as f64 / took.as_secs_f64()),
        false => Err(format!("the stream had {bytes} bytes").into()),
    }
}

fn size(content: &Content) -> usize {
    match content {
        Content::Data(data) => data.len(),
        Content::Text(text) => text.len(),
        Content::Gap(_) => 0,
    }
}

fn of_session(session: &str) -> TaskFilter {
    TaskFilter {
        session_id: session.to_owned(),
        ..TaskFilter::default()
    }
}

async fn start_all(stub: &mut Stub, session: &str) -> Result<Vec<String>> {
    let own = program::own()?.display().to_string();
    let (size, count) = (PIECE.to_string(), PIECES.to_string());
    let mut ids = Vec::new();
    for _ in 0..TASKS {
        let args = [&own, "role", "write", &size, &count];
        ids.push(tasks::spawn_in(stub, &args, session).await?);
    }
    Ok(ids)
}

async fn forget(stub: &mut Stub, ids: Vec<String>) -> Result {
    for id in ids {
        remove(stub, id).await?;
    }
    Ok(())
}

/// The memory of the daemon and of the shim after a task has written 1 GiB that a client has asked for and
/// does not read.
async fn stalled_reader(daemon: &Daemon) -> Result {
    let (mut stub, ends) = (daemon.stub().await?, Ends::watch(&daemon.socket()).await?);
    let before = process::rss(daemon.pid())?;
    let own = program::own()?.display().to_string();
    let script = format!("{own} role write {STALLED_PIECE} {STALLED_PIECES}; exec sleep 1000");
    let id = tasks::spawn(&mut stub, &["/bin/sh", "-c", &script]).await?;
    let cursor = OutputCursor {
        task_id: id.clone(),
        offset: Some(0),
    };
    let request = FollowOutputRequest {
        filter: Some(of_session("none")),
        cursors: vec![cursor],
        ..FollowOutputRequest::default()
    };
    // Never read.
    let stalled = daemon.stub().await?.follow_output(request).await?;
    written(&mut stub, &id).await?;
    let grown = process::rss(daemon.pid())?.saturating_sub(before);
    let shim = process::pss(*daemon.shims().first().ok_or("no shim")?)?;
    drop(stalled);
    bound(
        "daemon, growth past a stalled reader of 1 GiB",
        grown,
        Goal::bound(16.0, 8.0, " MB"),
    );
    bound(
        "the shim of that task, PSS",
        shim,
        Goal::bound(0.5, 0.25, " MB"),
    );
    daemon.stop_tasks().await?;
    ends.of(&id).await?;
    remove(&mut stub, id).await
}

/// Waits until the daemon knows of all bytes.
async fn written(stub: &mut Stub, id: &str) -> Result {
    let all = (STALLED_PIECE * STALLED_PIECES) as u64;
    loop {
        let request = ReadOutputRequest {
            task_id: id.to_owned(),
            start: Some(Start::Offset(all - 1)),
            wait: Some(prost_types::Duration {
                seconds: 60,
                nanos: 0,
            }),
            ..ReadOutputRequest::default()
        };
        if stub.read_output(request).await?.into_inner().end_offset >= all {
            return Ok(());
        }
    }
}

fn bound(what: &str, bytes: u64, goal: Goal) {
    let megabytes = bytes as f64 / 1e6;
    tell(Row {
        what: what.to_owned(),
        figure: format!("{megabytes:.2} MB"),
        floor: String::new(),
        value: megabytes,
        goal: Some(goal),
    });
}

async fn search(daemon: &Daemon) -> Result {
    let path = daemon.path("lines");
    let own = program::own()?.display().to_string();
    let lines = LINES.to_string();
    let mut command = Command::new(&own);
    command
        .args(["role", "lines", &lines])
        .stdout(File::create(&path)?);
    command.status()?;
    let (mut stub, ends) = (daemon.stub().await?, Ends::watch(&daemon.socket()).await?);
    let id = tasks::spawn_limited(&mut stub, &[&own, "role", "lines", &lines], NO_LIMIT).await?;
    ends.of(&id).await?;
    let size = fs::metadata(&path)?.len() as f64;
    let (mut figures, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let mut grep = Command::new("grep");
        // Into a pipe: with /dev/null grep stops at the first line.
        grep.arg(PATTERN).arg(&path).stdout(Stdio::piped());
        if grep.output()?.stdout.is_empty() {
            return Err("grep finds no line".into());
        }
        floors.push(size / begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        matches(&mut stub, &id).await?;
        figures.push(size / begun.elapsed().as_secs_f64());
    }
    fs::remove_file(path)?;
    tell(Row {
        what: "search of 64 MiB of output; floor: grep".to_owned(),
        figure: throughput(median(&figures)),
        floor: throughput(median(&floors)),
        value: median_ratio(&figures, &floors),
        goal: None,
    });
    remove(&mut stub, id).await
}

/// Reads every line that matches.
async fn matches(stub: &mut Stub, id: &str) -> Result {
    let mut offset = 0;
    let mut found = 0;
    loop {
        let request = ReadOutputRequest {
            task_id: id.to_owned(),
            start: Some(Start::Offset(offset)),
            filter: Some(OutputFilter {
                include: PATTERN.to_owned(),
                ..OutputFilter::default()
            }),
            max_bytes: 1 << 20,
            ..ReadOutputRequest::default()
        };
        let answer = stub.read_output(request).await?.into_inner();
        let data = answer
            .chunks
            .iter()
            .filter_map(|chunk| chunk.content.as_ref());
        found += data.map(size).sum::<usize>();
        offset = answer.next_offset;
        if answer.complete && offset >= answer.end_offset {
            break;
        }
    }
    match found {
        0 => Err("no line is found".into()),
        _ => Ok(()),
    }
}
