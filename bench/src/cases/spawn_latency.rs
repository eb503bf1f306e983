//! The time from Spawn to its answer, which comes when the leader runs, with one caller, against a bare
//! `posix_spawn`, which returns when the program runs. Then the same up to the end.

use std::time::Instant;

use crate::{
    Result,
    bench::Bench,
    floor::bare::Bare,
    measured::{
        connection::Stub,
        daemon::{Containment, Daemon},
        program::{NOTHING, TRUE},
        tasks::{self, Ends, Naming},
    },
    result::{
        figures::{median, millis, percentile, time},
        report::{Goal, Row},
    },
    tell,
};

const CALLS: usize = 300;
const WARM_UP: usize = 20;
const GOAL: Goal = Goal::at_most(3.0, 2.0);
const GOAL_UNTIL_ENDED: Goal = Goal::at_most(2.0, 1.6);

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

/// The times of one task in milliseconds.
pub(super) struct Taken {
    /// Until the leader ran.
    pub(super) running: f64,
    /// Until the task was finished.
    ended: f64,
}

async fn measure(daemon: &Daemon, program: &str, naming: Naming, name: &str) -> Result {
    let ends = Ends::watch(&daemon.socket()).await?;
    let (mut stub, bare) = (daemon.stub().await?, Bare::new(&[program])?);
    let (mut figures, mut floors) = (Vec::new(), Vec::new());
    for call in 0..CALLS + WARM_UP {
        let floor = one_bare(&bare)?;
        let figure = one(&mut stub, &ends, program, naming).await?;
        if call >= WARM_UP {
            figures.push(figure);
            floors.push(floor);
        }
    }
    let all = |taken: &[Taken], which: fn(&Taken) -> f64| -> Vec<f64> {
        taken.iter().map(which).collect()
    };
    let running = all(&figures, |taken| taken.running);
    let floor = median(&all(&floors, |taken| taken.running));
    let row = |what: &str, figure: f64, floor: f64, goal| Row {
        what: format!("{what}: {name}"),
        figure: time(figure),
        floor: time(floor),
        value: figure / floor,
        goal,
    };
    tell(row(
        "spawn until running, p50",
        median(&running),
        floor,
        Some(GOAL),
    ));
    tell(row(
        "spawn until running, p99",
        percentile(&running, 0.99),
        floor,
        None,
    ));
    let [figure, floor] = [&figures, &floors].map(|taken| median(&all(taken, |taken| taken.ended)));
    let goal = (program == TRUE).then_some(GOAL_UNTIL_ENDED);
    tell(row("spawn until ended, 1 caller, p50", figure, floor, goal));
    Ok(())
}

fn one_bare(bare: &Bare) -> Result<Taken> {
    let begun = Instant::now();
    let running = millis(bare.run()?);
    Ok(Taken {
        running,
        ended: millis(begun.elapsed()),
    })
}

/// One Spawn, up to the end of the task.
pub(super) async fn one(
    stub: &mut Stub,
    ends: &Ends,
    program: &str,
    naming: Naming,
) -> Result<Taken> {
    let begun = Instant::now();
    let id = tasks::spawn_as(stub, &[program], naming).await?;
    let running = millis(begun.elapsed());
    ends.of(&id).await?;
    Ok(Taken {
        running,
        ended: millis(begun.elapsed()),
    })
}
