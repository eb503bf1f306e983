//! The two spawn figures with 100,000 finished tasks, against the same without any.

use super::spawn_latency::one;
use crate::{
    Result,
    bench::Bench,
    measured::{
        daemon::{Containment, Daemon},
        program::TRUE,
        tasks::{self, Ends, Naming},
    },
    result::{
        figures::{median, median_ratio, rate, time},
        report::{Goal, Row},
    },
    tell,
};

const ROUNDS: usize = 7;
const TASKS: usize = 300;
const CALLS: usize = 200;
const GOAL: Goal = Goal::at_most(1.2, 1.05);

pub(super) async fn run(bench: &Bench) -> Result {
    let old = bench.daemon_on(bench.long_past().await?).await?;
    let young = bench.daemon(Containment::Best).await?;
    for daemon in [&old, &young] {
        tasks::throughput(&daemon.socket(), TRUE, Naming::Named, TASKS).await?;
    }
    throughput(&old, &young).await?;
    latency(&old, &young).await?;
    old.end().await?;
    young.end().await
}

async fn throughput(old: &Daemon, young: &Daemon) -> Result {
    let (mut figures, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(tasks::throughput(&young.socket(), TRUE, Naming::Named, TASKS).await?);
        figures.push(tasks::throughput(&old.socket(), TRUE, Naming::Named, TASKS).await?);
    }
    tell(Row {
        what: "spawn until ended, at 100,000 finished; floor: at 0".to_owned(),
        figure: rate(median(&figures)),
        floor: rate(median(&floors)),
        // As a time, like the other figure.
        value: median_ratio(&floors, &figures),
        goal: Some(GOAL),
    });
    Ok(())
}

async fn latency(old: &Daemon, young: &Daemon) -> Result {
    let (old_ends, young_ends) = (
        Ends::watch(&old.socket()).await?,
        Ends::watch(&young.socket()).await?,
    );
    let (mut old_stub, mut young_stub) = (old.stub().await?, young.stub().await?);
    let (mut figures, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        floors.push(
            one(&mut young_stub, &young_ends, TRUE, Naming::Named)
                .await?
                .running,
        );
        figures.push(
            one(&mut old_stub, &old_ends, TRUE, Naming::Named)
                .await?
                .running,
        );
    }
    let (figure, floor) = (median(&figures), median(&floors));
    tell(Row {
        what: "spawn until running, at 100,000 finished; floor: at 0".to_owned(),
        figure: time(figure),
        floor: time(floor),
        value: figure / floor,
        goal: Some(GOAL),
    });
    Ok(())
}
