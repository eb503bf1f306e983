//! The rate of events to 1,000 watchers, against a bare tonic stream of the same bytes.
//!
//! The events are those of Remove, one call of which produces a thousand, so that the daemon has no other
//! work and only the delivery is measured.

use std::time::{Duration, Instant};

use heeler_proto::v1::{ListRequest, RemoveRequest, TaskFilter, WatchEventsRequest};
use prost::{Message, bytes::Bytes};
use tokio::task::JoinSet;
use tonic::{Streaming, transport::Channel};

use crate::{
    Result,
    bench::Bench,
    floor::bare_server::{self, BareServer},
    measured::{connection::Stub, daemon::Daemon, past},
    result::{
        figures::{median, median_ratio, rate},
        report::{Goal, Row},
    },
    tell,
};

const CONNECTIONS: usize = 10;
const STREAMS: usize = 100;
const EVENTS: usize = 500;
const ROUNDS: usize = 5;
const WATCH: &str = "/heeler.v1.BackgroundTasks/WatchEvents";
/// Maximum time that a watcher waits.
const TIME_LIMIT: Duration = Duration::from_secs(30);

pub(super) async fn run(bench: &Bench) -> Result {
    let tasks = EVENTS * (ROUNDS + 2);
    let state = past::make(bench.directory()?, tasks as u64).await?;
    let (daemon, bare) = (
        bench.daemon_on(&state).await?,
        BareServer::start(bench).await?,
    );
    let mut stub = daemon.stub().await?;
    let go = bare.channel().await?;
    let message = sample(&daemon, &mut stub).await?;
    bare_server::unary(go.clone(), "/bare.Bare/Put", message).await?;
    let mut floors_streams = Streams::open(|| bare.channel(), "/bare.Bare/Stream").await?;
    let mut streams = Streams::open(|| daemon.channel(), WATCH).await?;
    let (mut figures, mut floors) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let count = Bytes::from(EVENTS.to_string());
        let trigger = bare_server::unary(go.clone(), "/bare.Bare/Go", count);
        let floor = floors_streams
            .receive(async { trigger.await.map(drop) })
            .await?;
        let figure = streams.receive(remove(&mut stub, EVENTS)).await?;
        if round > 0 {
            floors.push(floor);
            figures.push(figure);
        }
    }
    drop((streams, floors_streams));
    daemon.end().await?;
    tell(Row {
        what: format!("events to {} watchers", CONNECTIONS * STREAMS),
        figure: rate(median(&figures)),
        floor: rate(median(&floors)),
        value: median_ratio(&figures, &floors),
        goal: Some(Goal::at_least(0.8, 1.1)),
    });
    Ok(())
}

/// The bytes of one event.
async fn sample(daemon: &Daemon, stub: &mut Stub) -> Result<Bytes> {
    let request = WatchEventsRequest::default().encode_to_vec().into();
    let mut stream = bare_server::stream(daemon.channel().await?, WATCH, request).await?;
    stream.message().await?;
    remove(stub, 1).await?;
    Ok(stream.message().await?.ok_or("the stream has ended")?)
}

/// Removes one finished task for each event.
async fn remove(stub: &mut Stub, count: usize) -> Result {
    let page_size = i32::try_from(count)?;
    let list = ListRequest {
        include_finished: true,
        page_size,
        ..ListRequest::default()
    };
    let tasks = stub.list(list).await?.into_inner().tasks;
    let task_ids = tasks.into_iter().map(|task| task.id).collect();
    let filter = Some(TaskFilter {
        task_ids,
        ..TaskFilter::default()
    });
    stub.remove(RemoveRequest { filter }).await?;
    Ok(())
}

/// A thousand watchers.
struct Streams(Vec<Streaming<Bytes>>);

impl Streams {
    async fn open<F, C>(mut connect: F, path: &'static str) -> Result<Self>
    where
        F: FnMut() -> C,
        C: Future<Output = Result<Channel>>,
    {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            let channel = connect().await?;
            for _ in 0..STREAMS {
                let request = WatchEventsRequest {
                    bookmark_interval: Some(prost_types::Duration {
                        seconds: 60,
                        nanos: 0,
                    }),
                    ..WatchEventsRequest::default()
                };
                let request = request.encode_to_vec().into();
                let mut stream = bare_server::stream(channel.clone(), path, request).await?;
                // Both begin with a message that is not an event.
                stream.message().await?;
                streams.push(stream);
            }
        }
        Ok(Self(streams))
    }

    /// Triggers the events; returns the rate per second of all watchers together.
    async fn receive(&mut self, trigger: impl Future<Output = Result>) -> Result<f64> {
        let begun = Instant::now();
        let mut readers = JoinSet::new();
        for mut stream in self.0.drain(..) {
            readers.spawn(async move {
                for _ in 0..EVENTS {
                    let message = tokio::time::timeout(TIME_LIMIT, stream.message()).await??;
                    message.ok_or("a stream has ended")?;
                }
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(stream)
            });
        }
        trigger.await?;
        while let Some(stream) = readers.join_next().await {
            self.0.push(stream??);
        }
        Ok((EVENTS * self.0.len()) as f64 / begun.elapsed().as_secs_f64())
    }
}
