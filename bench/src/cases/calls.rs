//! Calls that only read: Inspect and List of 50, against the same bytes from a bare tonic server, and
//! against a health check of the same daemon.

use std::time::Instant;

use heeler_proto::v1::{InspectRequest, ListRequest};
use prost::{Message, bytes::Bytes};
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;

use crate::{
    Result,
    bench::Bench,
    floor::bare_server::{self, BareServer},
    measured::{
        daemon::Containment,
        program::TRUE,
        tasks::{self, Ends},
    },
    result::{
        figures::{median, median_ratio, rate},
        report::{Goal, Row},
    },
    tell,
};

const ROUNDS: usize = 7;
/// Number of concurrent callers on one connection.
const CALLERS: usize = 16;
const CALLS: usize = 400;
const TASKS: usize = 50;
const GOAL: Goal = Goal::at_least(0.5, 0.8);

pub(super) async fn run(bench: &Bench) -> Result {
    let daemon = bench.daemon(Containment::Best).await?;
    let bare = BareServer::start(bench).await?;
    tasks::sleepers(&daemon.socket(), TASKS).await?;
    let (mut stub, ends) = (daemon.stub().await?, Ends::watch(&daemon.socket()).await?);
    let finished = tasks::spawn(&mut stub, &[TRUE]).await?;
    ends.of(&finished).await?;
    let list = ListRequest::default();
    let listed = stub.list(list.clone()).await?.into_inner();
    let live = listed.tasks.first().ok_or("no task is listed")?.id.clone();
    let inspect = |task_id: String| InspectRequest {
        task_id,
        ..InspectRequest::default()
    };
    let both = Both {
        daemon: daemon.channel().await?,
        bare: bare.channel().await?,
    };
    for (name, path, request) in [
        (
            "List of 50",
            "/heeler.v1.BackgroundTasks/List",
            list.encode_to_vec(),
        ),
        (
            "Inspect of a live task",
            INSPECT,
            inspect(live).encode_to_vec(),
        ),
        (
            "Inspect of a finished task",
            INSPECT,
            inspect(finished).encode_to_vec(),
        ),
    ] {
        both.measure(name, path, request.into()).await?;
    }
    daemon.end().await
}

const INSPECT: &str = "/heeler.v1.BackgroundTasks/Inspect";
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// One connection to each.
struct Both {
    daemon: Channel,
    bare: Channel,
}

impl Both {
    async fn measure(&self, name: &str, path: &'static str, request: Bytes) -> Result {
        let answer = bare_server::unary(self.daemon.clone(), path, request.clone()).await?;
        let size = answer.len();
        bare_server::unary(self.bare.clone(), "/bare.Bare/Put", answer).await?;
        let check: Bytes = HealthCheckRequest::default().encode_to_vec().into();
        let (mut figures, mut echoes, mut checks) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            echoes.push(calls(&self.bare, "/bare.Bare/Get", &request).await?);
            figures.push(calls(&self.daemon, path, &request).await?);
            checks.push(calls(&self.daemon, CHECK, &check).await?);
        }
        let row = |floor: &str, floors: &[f64], goal| Row {
            what: format!("{name}; floor: {floor}"),
            figure: rate(median(&figures)),
            floor: rate(median(floors)),
            value: median_ratio(&figures, floors),
            goal,
        };
        tell(row(
            &format!("the same {size} B from bare tonic"),
            &echoes,
            Some(GOAL),
        ));
        tell(row("health check", &checks, None));
        Ok(())
    }
}

/// Calls per second.
async fn calls(channel: &Channel, path: &'static str, request: &Bytes) -> Result<f64> {
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (channel, request) = (channel.clone(), request.clone());
        callers.spawn(async move {
            for _ in 0..CALLS {
                bare_server::unary(channel.clone(), path, request.clone()).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(called) = callers.join_next().await {
        called??;
    }
    Ok((CALLERS * CALLS) as f64 / begun.elapsed().as_secs_f64())
}
