//! Workers: the CPU time and memory of 10,000 hosted tasks that beat, the rate of progress against a bare
//! stream, and the time from a Cancel to the worker's token.

use std::time::{Duration, Instant};

use heeler_client::{CancelOptions, Client, Hosted};
use heeler_proto::v1::{
    Block, ProgressUpdate, TaskSpec, WorkHeartbeat, WorkRegister, WorkRequest, WorkResponse,
    work_request::Item as In, work_response::Item as Out,
};
use prost::{Message, bytes::Bytes};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;

use crate::{
    Result,
    bench::Bench,
    floor::bare_server::{self, BareServer},
    measured::{
        connection::Stub,
        daemon::{Containment, Daemon},
        process,
    },
    result::{
        figures::{median, median_ratio, millis, rate, time},
        report::{Goal, Row},
    },
    tell,
};

const HOSTED: usize = 10_000;
const CONNECTIONS: usize = 10;
/// A third of the default lease, as the SDKs beat.
const BEAT: Duration = Duration::from_secs(10);
const WATCHED: Duration = Duration::from_secs(30);
const SETTLE: Duration = Duration::from_secs(3);
const REPORTS: usize = 20_000;
const ROUNDS: usize = 5;
const CANCELS: usize = 200;

pub(super) async fn run(bench: &Bench) -> Result {
    crowd(bench).await?;
    let daemon = bench.daemon(Containment::Best).await?;
    progress(bench, &daemon).await?;
    cancel(bench, &daemon).await?;
    daemon.end().await
}

/// The worker's side of a stream.
struct Worker {
    requests: mpsc::UnboundedSender<WorkRequest>,
    responses: Streaming<WorkResponse>,
}

impl Worker {
    async fn register(stub: &mut Stub) -> Result<Self> {
        let (requests, sent) = mpsc::unbounded_channel();
        let register = WorkRegister {
            spec: Some(TaskSpec::default()),
            ..WorkRegister::default()
        };
        requests.send(unnumbered(In::Register(register)))?;
        let stream = UnboundedReceiverStream::new(sent);
        let mut responses = stub.work(stream).await?.into_inner();
        match responses.message().await?.and_then(|joined| joined.item) {
            Some(Out::Joined(_)) => Ok(Self {
                requests,
                responses,
            }),
            other => Err(format!("not joined: {other:?}").into()),
        }
    }

    /// Beats until the task is ended.
    async fn beat(mut self, first: Duration) -> Result {
        let mut beats = tokio::time::interval_at(tokio::time::Instant::now() + first, BEAT);
        loop {
            tokio::select! {
                _ = beats.tick() => {
                    let beat = WorkHeartbeat::default();
                    self.requests.send(unnumbered(In::Heartbeat(beat)))?;
                }
                ended = self.responses.message() => {
                    if ended?.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn unnumbered(item: In) -> WorkRequest {
    WorkRequest {
        sequence: 0,
        item: Some(item),
    }
}

async fn crowd(bench: &Bench) -> Result {
    let daemon = bench.daemon(Containment::Best).await?;
    tokio::time::sleep(SETTLE).await;
    let before = process::pss(daemon.pid())?;
    let mut workers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let mut stub = daemon.stub().await?;
        for number in 0..HOSTED / CONNECTIONS {
            let worker = Worker::register(&mut stub).await?;
            // Spread over the time between two beats.
            let first = BEAT.mul_f64(number as f64 / (HOSTED / CONNECTIONS) as f64);
            workers.spawn(worker.beat(first));
        }
    }
    tokio::time::sleep(SETTLE).await;
    let cpu = process::cpu(daemon.pid());
    tokio::time::sleep(WATCHED).await;
    let used = process::cpu(daemon.pid()) - cpu;
    let percent = 100.0 * used.as_secs_f64() / WATCHED.as_secs_f64();
    tell(Row {
        what: format!("CPU of {HOSTED} hosted tasks, a heartbeat each every {BEAT:?}"),
        figure: format!("{percent:.1} %"),
        floor: String::new(),
        value: percent,
        goal: Some(Goal::bound(15.0, 8.0, "%")),
    });
    let each = (process::pss(daemon.pid())? - before) as f64 / 1024.0 / HOSTED as f64;
    tell(Row {
        what: "a hosted task with its worker in the daemon, PSS".to_owned(),
        figure: format!("{each:.1} KB"),
        floor: String::new(),
        value: each,
        goal: Some(Goal::bound(12.0, 6.0, "KB")),
    });
    if workers.len() != HOSTED {
        return Err(format!("{} of {HOSTED} workers are left", workers.len()).into());
    }
    workers.shutdown().await;
    daemon.end().await
}

/// One report: a note of 100 bytes.
fn report(sequence: u64) -> WorkRequest {
    let note = Block {
        text: "x".repeat(100),
        ..Block::default()
    };
    let update = ProgressUpdate {
        blocks: vec![note],
        ..ProgressUpdate::default()
    };
    WorkRequest {
        sequence,
        item: Some(In::Progress(update)),
    }
}

async fn progress(bench: &Bench, daemon: &Daemon) -> Result {
    let bare = BareServer::start(bench).await?;
    let (mut figures, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(sunk(&bare).await?);
        figures.push(reported(daemon).await?);
    }
    tell(Row {
        what: "progress of one worker, durable; floor: a bare stream".to_owned(),
        figure: rate(median(&figures)),
        floor: rate(median(&floors)),
        value: median_ratio(&figures, &floors),
        goal: Some(Goal::at_least(0.1, 0.3)),
    });
    Ok(())
}

async fn reported(daemon: &Daemon) -> Result<f64> {
    let mut worker = Worker::register(&mut daemon.stub().await?).await?;
    let begun = Instant::now();
    for sequence in 1..=REPORTS as u64 {
        worker.requests.send(report(sequence))?;
    }
    loop {
        let message = worker.responses.message().await?;
        if let Some(Out::Acknowledged(one)) = message.and_then(|message| message.item)
            && one.sequence == REPORTS as u64
        {
            return Ok(REPORTS as f64 / begun.elapsed().as_secs_f64());
        }
    }
}

async fn sunk(bare: &BareServer) -> Result<f64> {
    let message = Bytes::from(report(1).encode_to_vec());
    let (sender, sent) = mpsc::unbounded_channel();
    let stream = UnboundedReceiverStream::new(sent);
    let channel = bare.channel().await?;
    let mut answers = bare_server::duplex(channel, "/bare.Bare/Sink", stream).await?;
    let begun = Instant::now();
    for _ in 0..REPORTS {
        sender.send(message.clone())?;
    }
    for _ in 0..REPORTS {
        answers.message().await?.ok_or("the stream has ended")?;
    }
    Ok(REPORTS as f64 / begun.elapsed().as_secs_f64())
}

/// From the call of Cancel to the token of a worker with the SDK, against a bare call.
async fn cancel(bench: &Bench, daemon: &Daemon) -> Result {
    let bare = BareServer::start(bench).await?;
    let channel = bare.channel().await?;
    let client = Client::connect(daemon.address().parse()?).await?;
    let (mut figures, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..CANCELS {
        let begun = Instant::now();
        bare_server::unary(channel.clone(), "/bare.Bare/Get", Bytes::new()).await?;
        floors.push(millis(begun.elapsed()));
        let work = client.register(Hosted::new()).await?;
        let begun = Instant::now();
        let cancel = work.task().cancel(CancelOptions::graceful().no_wait());
        let heard = async {
            work.stopping().cancelled().await;
            begun.elapsed()
        };
        let (cancelled, heard) = tokio::join!(cancel, heard);
        cancelled?;
        figures.push(millis(heard));
        work.finish(()).await?;
    }
    tell(Row {
        what: "cancel to the worker's token, p50; floor: a bare call".to_owned(),
        figure: time(median(&figures)),
        floor: time(median(&floors)),
        value: median(&figures) / median(&floors),
        goal: Some(Goal::at_most(10.0, 5.0)),
    });
    Ok(())
}
