//! The time until a killed daemon serves again, with 1,000 live tasks to recover.

use heeler_proto::v1::ListRequest;

use crate::{
    Result,
    bench::Bench,
    measured::{daemon::Containment, tasks},
    result::{
        figures::{median, millis, time},
        report::{Goal, Row},
    },
    tell,
};

const ROUNDS: usize = 5;
const TASKS: usize = 1000;

pub(super) async fn run(bench: &Bench) -> Result {
    let mut daemon = bench.daemon(Containment::Best).await?;
    tasks::sleepers(&daemon.socket(), TASKS).await?;
    let mut figures = Vec::new();
    for _ in 0..ROUNDS {
        daemon.kill9()?;
        figures.push(millis(daemon.restart()?));
        let answer = daemon.stub().await?.list(ListRequest::default()).await?;
        let live = answer.into_inner().server.unwrap_or_default().live_tasks;
        if live as usize != TASKS {
            return Err(format!("{live} tasks are live after a restart").into());
        }
    }
    daemon.end().await?;
    let figure = median(&figures);
    tell(Row {
        what: "kill -9, then serving again with 1,000 live tasks".to_owned(),
        figure: time(figure),
        floor: String::new(),
        value: figure,
        goal: Some(Goal::bound(500.0, 150.0, "ms")),
    });
    Ok(())
}
