//! Calls that only read: Inspect and List of 50, against the same bytes from a bare tonic server, and
//! against a health check of the same daemon; and List as JSON over HTTP, against List by gRPC.

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
        http::Http,
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
    let http = &["--http", "127.0.0.1:0"];
    let daemon = bench.daemon_with(Containment::Best, http).await?;
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
        ("List of 50", LIST, list.encode_to_vec()),
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
    json_list(&both.daemon, &daemon.http()?).await?;
    daemon.end().await
}

/// List as JSON over HTTP, a connection for each caller as browsers and scripts have it.
async fn json_list(grpc: &Channel, http: &Http) -> Result {
    let request = ListRequest::default().encode_to_vec().into();
    let (mut figures, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(calls(grpc, LIST, &request).await?);
        figures.push(json_calls(http, LIST, "{}").await?);
    }
    tell(Row {
        what: "List of 50 as JSON over HTTP; floor: by gRPC".to_owned(),
        figure: rate(median(&figures)),
        floor: rate(median(&floors)),
        value: median_ratio(&figures, &floors),
        goal: Some(Goal::at_least(0.3, 0.5)),
    });
    Ok(())
}

const LIST: &str = "/heeler.v1.BackgroundTasks/List";
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
    per_second(|| {
        let (channel, request) = (channel.clone(), request.clone());
        async move {
            for _ in 0..CALLS {
                bare_server::unary(channel.clone(), path, request.clone()).await?;
            }
            Ok(())
        }
    })
    .await
}

/// The same by JSON over HTTP.
async fn json_calls(http: &Http, path: &'static str, json: &'static str) -> Result<f64> {
    per_second(|| {
        let http = http.clone();
        async move {
            let mut connection = http.connect().await?;
            for _ in 0..CALLS {
                connection.call(path, json).await?;
            }
            Ok(())
        }
    })
    .await
}

/// Calls per second of all callers, each of which makes as many.
async fn per_second<F>(caller: impl Fn() -> F) -> Result<f64>
where
    F: Future<Output = Result> + Send + 'static,
{
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(caller());
    }
    while let Some(called) = callers.join_next().await {
        called??;
    }
    Ok((CALLERS * CALLS) as f64 / begun.elapsed().as_secs_f64())
}
