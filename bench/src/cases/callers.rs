//! The cost of finding out who calls: a connection with its first call, from outside and from inside of a task,
//! against a health check, for which no caller is looked up.

use std::{path::Path, time::Instant};

use heeler_proto::v1::{ListRequest, ReadOutputRequest, output_chunk::Content};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    Result,
    bench::Bench,
    measured::{
        connection::{self, Stub},
        daemon::{Containment, Daemon},
        program,
        tasks::{self, Ends},
    },
    result::{
        figures::{median, median_ratio, millis, time},
        report::{Goal, Row},
    },
    tell,
};

const ROUNDS: usize = 7;
const CONNECTIONS: usize = 100;
/// The tasks among which a caller is looked for.
const TASKS: usize = 100;

pub(super) async fn run(bench: &Bench) -> Result {
    let daemon = bench.daemon(Containment::Best).await?;
    tasks::sleepers(&daemon.socket(), TASKS).await?;
    let (mut outside, mut inside) = (Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        outside.push(measure(&daemon.socket(), CONNECTIONS).await?);
        inside.push(from_inside(&daemon).await?);
    }
    for (place, rounds) in [("outside", &outside), ("inside of a task", &inside)] {
        let what = format!("the look at a caller, from {place}; floor: connect and a health check");
        tell(row(what, &rounds.look, &rounds.first_check, None));
    }
    let further = |name: &str| format!("{name} from inside of a task; floor: from outside");
    tell(row(
        further("connect and List,"),
        &inside.first_list,
        &outside.first_list,
        Some(Goal::at_most(2.0, 1.5)),
    ));
    tell(row(
        further("a further List on the connection,"),
        &inside.further_list,
        &outside.further_list,
        Some(Goal::at_most(1.3, 1.1)),
    ));
    daemon.end().await
}

fn row(what: String, figures: &[f64], floors: &[f64], goal: Option<Goal>) -> Row {
    Row {
        what,
        figure: time(median(figures)),
        floor: time(median(floors)),
        value: median_ratio(figures, floors),
        goal,
    }
}

/// The median times of one round, in milliseconds.
struct Round {
    /// A connection with a health check, a further one, a connection with a List, and a further one.
    times: [f64; 4],
    /// The time by which a connection takes longer with a List as its first call than with a health check, beyond
    /// the difference of further ones.
    look: f64,
    first_check: f64,
    first_list: f64,
    further_list: f64,
}

impl Round {
    fn of(times: [f64; 4]) -> Self {
        let [first_check, further_check, first_list, further_list] = times;
        Self {
            times,
            look: (first_list - further_list) - (first_check - further_check),
            first_check,
            first_list,
            further_list,
        }
    }
}

#[derive(Default)]
struct Rounds {
    look: Vec<f64>,
    first_check: Vec<f64>,
    first_list: Vec<f64>,
    further_list: Vec<f64>,
}

impl Rounds {
    fn push(&mut self, round: Round) {
        self.look.push(round.look);
        self.first_check.push(round.first_check);
        self.first_list.push(round.first_list);
        self.further_list.push(round.further_list);
    }
}

async fn measure(socket: &Path, connections: usize) -> Result<Round> {
    let mut times: [Vec<f64>; 4] = Default::default();
    let request = || ListRequest {
        page_size: 1,
        ..ListRequest::default()
    };
    for _ in 0..connections {
        let begun = Instant::now();
        let mut health = HealthClient::new(connection::connect(socket).await?);
        health.check(HealthCheckRequest::default()).await?;
        times[0].push(millis(begun.elapsed()));
        let begun = Instant::now();
        health.check(HealthCheckRequest::default()).await?;
        times[1].push(millis(begun.elapsed()));
        let begun = Instant::now();
        let mut stub = Stub::new(connection::connect(socket).await?);
        stub.list(request()).await?;
        times[2].push(millis(begun.elapsed()));
        let begun = Instant::now();
        stub.list(request()).await?;
        times[3].push(millis(begun.elapsed()));
    }
    Ok(Round::of(times.each_ref().map(|times| median(times))))
}

/// The role of the caller inside of a task: prints its times.
pub(crate) async fn play(socket: &Path) -> Result {
    let Round { times, .. } = measure(socket, CONNECTIONS).await?;
    println!("{}", times.map(|time| time.to_string()).join(" "));
    Ok(())
}

async fn from_inside(daemon: &Daemon) -> Result<Round> {
    let (mut stub, ends) = (daemon.stub().await?, Ends::watch(&daemon.socket()).await?);
    let (own, socket) = (program::own()?, daemon.socket());
    let args = [
        &*own.to_string_lossy(),
        "role",
        "caller",
        &*socket.to_string_lossy(),
    ];
    let id = tasks::spawn(&mut stub, &args).await?;
    ends.of(&id).await?;
    let request = ReadOutputRequest {
        task_id: id,
        ..ReadOutputRequest::default()
    };
    let output = stub.read_output(request).await?.into_inner();
    let mut written = Vec::new();
    for chunk in &output.chunks {
        if let Some(Content::Data(data)) = &chunk.content {
            written.extend_from_slice(data);
        }
    }
    let text = String::from_utf8(written)?;
    let figures: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
    match <[f64; 4]>::try_from(figures) {
        Ok(times) => Ok(Round::of(times)),
        Err(_) => Err(format!("the caller inside of the task says {text:?}").into()),
    }
}
