//! The rate of tasks from Spawn to the delivered end, with 16 callers, against `posix_spawn` and wait of
//! the same program in two threads.

use crate::{
    Result,
    bench::Bench,
    floor::bare::Bare,
    measured::{
        daemon::{Containment, Daemon},
        program::{NOTHING, TRUE},
        tasks::{self, Naming},
    },
    result::{
        figures::{median, median_ratio, rate},
        report::{Goal, Row},
    },
    tell,
};

const ROUNDS: usize = 7;
const TASKS: usize = 300;
const GOAL: Goal = Goal::at_least(0.45, 0.65);
const GOAL_OF_NOTHING: Goal = Goal::at_least(0.3, 0.45);

pub(super) async fn run(bench: &Bench) -> Result {
    let best = bench.daemon(Containment::Best).await?;
    let lower = bench.daemon(Containment::Subreaper).await?;
    for (daemon, program, naming, name) in [
        (&best, TRUE, Naming::Unnamed, "true"),
        (&best, TRUE, Naming::Named, "true, with a request_id"),
        (&lower, TRUE, Naming::Unnamed, "true, subreaper"),
        (&best, NOTHING, Naming::Unnamed, "a static program"),
    ] {
        measure(daemon, program, naming, name).await?;
    }
    best.end().await?;
    lower.end().await
}

async fn measure(daemon: &Daemon, program: &str, naming: Naming, name: &str) -> Result {
    let bare = Bare::new(&[program])?;
    let socket = daemon.socket();
    // The first run warms up.
    bare.throughput(TASKS / 4)?;
    tasks::throughput(&socket, program, naming, TASKS / 4).await?;
    let (mut figures, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(bare.throughput(TASKS)?);
        figures.push(tasks::throughput(&socket, program, naming, TASKS).await?);
    }
    tell(Row {
        what: format!("spawn until ended, 16 callers: {name}"),
        figure: rate(median(&figures)),
        floor: rate(median(&floors)),
        value: median_ratio(&figures, &floors),
        goal: Some(match program {
            NOTHING => GOAL_OF_NOTHING,
            _ => GOAL,
        }),
    });
    Ok(())
}
