//! `heeler queue`: lists the queues, or changes one.

use clap::{Args, value_parser};
use heeler_client::{QueueUpdate, v1::Queue as Shown};

use crate::{
    context::{ClientArgs, Context, Printed},
    exit::{Exit, Failure},
    out,
    table::{Column, Fit, Table},
};

const COLUMNS: [Column; 5] = [
    Column {
        title: "QUEUE",
        fit: Fit::Between {
            least: 7,
            most: usize::MAX,
        },
    },
    whole("SLOTS"),
    whole("RUNNING"),
    whole("WAITING"),
    whole("PAUSED"),
];

const EXAMPLES: &str = "\
Examples:
  heeler queue
  heeler queue builds --slots 4
  heeler queue builds --pause

`heeler spawn --queue NAME` puts a task into a queue. What runs is not touched: fewer slots, or a
pause, count for the tasks that wait. Changes outlive the daemon.";

/// List the queues, or change one: how many of its tasks run at a time, and whether any may begin
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Queue {
    /// The queue; none: list those that have live tasks or were changed
    name: Option<String>,

    /// How many of its tasks may run at a time
    #[arg(long, value_name = "N", requires = "name", value_parser = value_parser!(u32).range(1..=10_000))]
    slots: Option<u32>,

    /// Let no further task begin
    #[arg(long, requires = "name", conflicts_with = "resume")]
    pause: bool,

    /// Let tasks begin again
    #[arg(long, requires = "name")]
    resume: bool,

    #[command(flatten)]
    client: ClientArgs,
}

impl Queue {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let shown = match self.update() {
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
        for line in lines(&shown) {
            cx.out.line(&line)?;
        }
        cx.out.flush()?;
        Ok(Exit::Done)
    }

    /// A name alone changes nothing, and so shows the queue as it is.
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

const fn whole(title: &'static str) -> Column {
    Column {
        title,
        fit: Fit::Whole,
    }
}

/// No title without a queue: a script gets nothing.
fn lines(queues: &[Shown]) -> Vec<String> {
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
    use clap::Parser;

    #[test]
    fn only_a_named_queue_can_be_changed_and_not_two_ways_at_once() {
        let parse =
            |args: &[&str]| crate::Cli::try_parse_from([&["heeler", "queue"], args].concat());
        assert!(parse(&[]).is_ok());
        assert!(parse(&["q"]).is_ok());
        assert!(parse(&["q", "--slots", "3", "--pause"]).is_ok());
        assert!(parse(&["--slots", "3"]).is_err());
        assert!(parse(&["--pause"]).is_err());
        assert!(parse(&["q", "--pause", "--resume"]).is_err());
        assert!(parse(&["q", "--slots", "0"]).is_err());
    }
}
