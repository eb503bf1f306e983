//! `heeler queue`: lists queues, or changes one.

use clap::{Args, value_parser};
use heeler_client::{QueueUpdate, v1::Queue as QueueState};

use crate::{
    completion,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::table::{Column, Table},
};

const COLUMNS: [Column; 5] = [
    Column::between("QUEUE", 7, usize::MAX),
    Column::whole("SLOTS"),
    Column::whole("RUNNING"),
    Column::whole("WAITING"),
    Column::whole("PAUSED"),
];

const EXAMPLES: &str = "\
Examples:
  heeler queue
  heeler queue builds --slots 4
  heeler queue builds --pause

`heeler spawn --queue NAME` puts a task into a queue. Fewer slots or a pause do not stop running \
tasks; they apply to the waiting ones. Changes survive a restart of the daemon.";

/// List queues, or change one: the number of tasks that run at a time, and whether tasks may start
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Queue {
    /// The queue; without it, list queues that have live tasks or were changed
    #[arg(add = completion::queues())]
    name: Option<String>,

    /// The number of tasks that may run at a time
    #[arg(long, value_name = "N", requires = "name", value_parser = value_parser!(u32).range(1..=10_000))]
    slots: Option<u32>,

    /// Start no more tasks
    #[arg(long, requires = "name", conflicts_with = "resume")]
    pause: bool,

    /// Start tasks again
    #[arg(long, requires = "name")]
    resume: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Queue {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let queues = match self.update() {
            Some(update) => {
                let response = cx.client.update_queue(update).await?;
                match cx.print_json(&response)? {
                    Printed::Yes => Vec::new(),
                    Printed::No => response.queue.into_iter().collect(),
                }
            }
            None => {
                let response = cx.client.queues().await?;
                match cx.print_json(&response)? {
                    Printed::Yes => Vec::new(),
                    Printed::No => response.queues,
                }
            }
        };
        for line in lines(&queues) {
            cx.out.line(&line)?;
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }

    /// A name alone is an empty update, which returns the queue unchanged.
    fn update(&self) -> Option<QueueUpdate> {
        let mut update = QueueUpdate::of(self.name.as_ref()?);
        if let Some(slots) = self.slots {
            update = update.slots(slots);
        }
        if self.pause {
            update = update.pause();
        }
        if self.resume {
            update = update.resume();
        }
        Some(update)
    }
}

/// No queues, no header: a script reads empty output.
fn lines(queues: &[QueueState]) -> Vec<String> {
    if queues.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&COLUMNS);
    for queue in queues {
        let counts = [queue.slots, queue.running, queue.waiting].map(|count| count.to_string());
        let paused = match queue.paused {
            true => "yes",
            false => "no",
        };
        table.row([&queue.name, &counts[0], &counts[1], &counts[2], paused]);
    }
    table.lines(out::width())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_needs_a_name_and_pause_conflicts_with_resume() {
        let parse = |args: &[&str]| crate::args::parse::<Queue>(args);
        assert!(parse(&[]).is_ok());
        assert!(parse(&["q"]).is_ok());
        assert!(parse(&["q", "--slots", "3", "--pause"]).is_ok());
        assert!(parse(&["--slots", "3"]).is_err());
        assert!(parse(&["--pause"]).is_err());
        assert!(parse(&["q", "--pause", "--resume"]).is_err());
        assert!(parse(&["q", "--slots", "0"]).is_err());
    }
}
