//! A forced Cancel with `wait` of 200 processes that are hard to kill, with both containments, against a
//! bare `cgroup.kill` of the same processes. The most hostile ones also in one CPU control group with the
//! daemon.

use std::{
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use heeler_proto::v1::{CancelRequest, ForcedStop, cancel_request::How, proof};
use tokio::runtime;

use crate::{
    Result,
    bench::Bench,
    floor::cgroup::CpuGroup,
    measured::{
        connection::Stub,
        daemon::{Containment, Daemon},
        program, tasks,
    },
    result::{
        figures::{median, millis, time},
        report::{Goal, Row},
    },
    role::{COUNT, Kind, Leash},
    tell,
};

const ROUNDS: usize = 12;

pub(super) async fn run(bench: &Bench) -> Result {
    let best = bench.daemon(Containment::Best).await?;
    let lower = bench.daemon(Containment::Subreaper).await?;
    let escapees = format!("cancel of {COUNT} processes with escapees, p50");
    measure(
        &escapees,
        Kind::Tree,
        Goal::at_most(2.0, 1.3),
        &best,
        &lower,
    )?;
    let lineages = format!("cancel of {COUNT} runaway lineages, p50");
    measure(
        &lineages,
        Kind::Lineages,
        Goal::at_most(3.0, 1.5),
        &best,
        &lower,
    )?;
    best.end().await?;
    lower.end().await?;
    in_one_cpu_group(bench).await
}

/// The runaway lineages again, with the daemon, the tasks and this client in one CPU control group, as
/// in a service of systemd: no session has a share of its own, and no process may be real-time.
async fn in_one_cpu_group(bench: &Bench) -> Result {
    let Some(group) = CpuGroup::enter()? else {
        println!("cancel in one CPU control group: not measured, no group can be made here");
        return Ok(());
    };
    let best = bench.daemon(Containment::Best).await?;
    let lower = bench.daemon(Containment::Subreaper).await?;
    let what = format!("cancel of {COUNT} lineages, one CPU group, p50");
    let goal = Goal::at_most(5.0, 2.0);
    measure(&what, Kind::Lineages, goal, &best, &lower)?;
    best.end().await?;
    lower.end().await?;
    drop(group);
    Ok(())
}

fn measure(what: &str, kind: Kind, goal: Goal, best: &Daemon, lower: &Daemon) -> Result {
    let (mut floor, mut on_best, mut on_lower) =
        (Kills::default(), Kills::default(), Kills::default());
    for _ in 0..ROUNDS {
        floor.push(bare(kind)?);
        on_best.push(on_one_thread(cancel(best, kind))?);
        on_lower.push(on_one_thread(cancel(lower, kind))?);
    }
    if floor.survived > 0 {
        println!(
            "{what}: {} of {ROUNDS} bare kills left a survivor",
            floor.survived
        );
    }
    for (containment, kills) in [("cgroup", on_best), ("subreaper", on_lower)] {
        let figure = median(&kills.millis);
        tell(Row {
            what: format!("{what}: {containment}"),
            figure: time(figure),
            floor: time(median(&floor.millis)),
            value: figure / median(&floor.millis),
            goal: Some(goal),
        });
        if kills.survived > 0 {
            println!("    SURVIVORS in {} of {ROUNDS} rounds", kills.survived);
        }
    }
    Ok(())
}

/// The time of each kill, and the number of kills that left a survivor.
#[derive(Debug, Default)]
struct Kills {
    millis: Vec<f64>,
    survived: usize,
}

impl Kills {
    fn push(&mut self, (millis, all_gone): (f64, bool)) {
        self.millis.push(millis);
        self.survived += usize::from(!all_gone);
    }
}

fn bare(kind: Kind) -> Result<(f64, bool)> {
    let mut command = Command::new(program::own()?);
    command
        .args(["role", "kill", kind.name()])
        .stderr(Stdio::inherit());
    let output = command.output()?;
    let text = String::from_utf8(output.stdout)?;
    let (micros, all_gone) = text.trim().split_once(' ').ok_or("no floor of a kill")?;
    Ok((micros.parse::<f64>()? / 1e3, all_gone.parse()?))
}

/// Runs a client on a thread of its own, as the command is: handing a call from one thread to another is a
/// wake-up more, for which the client, not the daemon, has to wait among the processes of the task.
fn on_one_thread<T: Send>(client: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let run = || {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(client)
    };
    thread::scope(|scope| scope.spawn(run).join()).map_err(|_| "the client panicked")?
}

async fn cancel(daemon: &Daemon, kind: Kind) -> Result<(f64, bool)> {
    let mut stub: Stub = daemon.stub().await?;
    let mut leash = Leash::make(daemon.path("leash"))?;
    let (own, path) = (program::own()?, leash.path().to_owned());
    let text = |path: &std::path::Path| path.display().to_string();
    let args = [&text(&own), "role", "brood", kind.name(), &text(&path)];
    let id = tasks::spawn(&mut stub, &args).await?;
    leash.wait_for_all()?;
    let request = CancelRequest {
        filter: Some(tasks::named(id)),
        how: Some(How::Force(ForcedStop {})),
        wait: true,
        ..CancelRequest::default()
    };
    let begun = Instant::now();
    let answer = stub.cancel(request).await?.into_inner();
    let took = millis(begun.elapsed());
    let proven = answer.results.into_iter().all(|result| {
        let stop = result.task.and_then(|task| task.stop);
        let proof = stop.and_then(|stop| stop.proof?.result);
        matches!(proof, Some(proof::Result::Proven(_)))
    });
    Ok((took, proven && leash.is_loose()?))
}
