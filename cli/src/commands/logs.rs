//! `heeler logs`: prints the output of tasks.
//!
//! The output of one task is read page by page, that of several tasks one after the other; with `-f` one
//! stream carries the output of all.

mod part;
mod printer;
mod summary;
mod targets;

use std::time::Duration;

use clap::Args;
use heeler_client::{
    Error, FollowItem, StreamExt,
    v1::{FollowOutputRequest, follow_output_response::Item},
};
use tokio::time::timeout;

use crate::{
    args::selection,
    completion,
    context::{ClientArgs, Context, RECONNECT_LIMIT},
    exit::Exit,
    failure::Failure,
    out,
    output_reader::{OutputReader, Until},
    render::{log_lines::Timestamps, status},
};
use part::{Part, PartArgs};
use printer::{Names, Printer};
use targets::Targets;

const EXAMPLES: &str = "\
Examples:
  heeler logs shell-4k2mzq7xda
  heeler logs -f -n 20 shell-4k2mzq7xda
  heeler logs --head 20 -n 20 dev
  heeler logs --since 5m --grep '(?i)error' -C 3 dev
  heeler logs
  heeler logs -ft shell-4k2mzq7xda shell-7rw3hm2pqe
  heeler logs --session s1 --grep 'panicked at'
  heeler logs -f -n 0 --all
  heeler logs --summary shell-4k2mzq7xda

A task's stdout goes to stdout and its stderr to stderr, byte for byte and in the order of arrival. \
With only one of --stdout and --stderr, that stream goes to stdout. With --timestamps, or for \
several tasks, output is printed in whole lines, each with its time or the id of its task. Output \
that is not kept is named on stderr.

A search goes through the output in the daemon. Its expressions are those of the Rust crate regex. \
-n and --head then count the lines that are found. With -A, -B and -C, groups of lines that do not \
follow one another have a line -- between them.

With --json the responses of ReadOutput are printed; for several tasks, objects with taskId, chunks \
and nextOffset, and with -f the messages of FollowOutput.";

/// Print the output of tasks
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Logs {
    /// The tasks: ids, unique prefixes of ids, or names of live tasks; without one, the latest task
    #[arg(value_name = "ID", add = completion::tasks(), value_parser = selection::not_empty())]
    ids: Vec<String>,

    /// All tasks of this session, live and finished
    #[arg(long, value_parser = selection::not_empty(), add = completion::sessions(), conflicts_with = "ids")]
    session: Option<String>,

    /// All tasks, live and finished
    #[arg(long, conflicts_with_all = ["ids", "session"])]
    all: bool,

    /// Print new output until the tasks finish
    #[arg(short, long)]
    follow: bool,

    #[command(flatten)]
    part: PartArgs,

    /// Print the time before each line
    #[arg(short, long)]
    timestamps: bool,

    /// Print the summary of a finished task instead: its end, its errors and its last lines
    #[arg(long, conflicts_with_all = ["follow", "PartArgs", "timestamps"])]
    summary: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Logs {
    /// The command as `heeler follow` runs it.
    pub(crate) fn following(mut self) -> Self {
        self.follow = true;
        self
    }

    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let part = self.part.part()?;
        let mut cx = Context::open(&self.client).await?;
        let targets = Targets::of(&self, &cx).await?;
        if self.summary {
            let ids = targets.ids(&cx).await?;
            return summary::print(&mut cx, &ids).await;
        }
        let names = match targets {
            Targets::One(_) => Names::Hidden,
            Targets::Several(_) | Targets::Matching(_) => Names::Shown,
        };
        let mut printer = Printer::new(&part, names, self.timestamps());
        match (self.follow, targets) {
            (true, Targets::One(id)) => read(&mut cx, &mut printer, &part, &id, Until::End).await,
            (true, targets @ (Targets::Several(_) | Targets::Matching(_))) => {
                let request = targets.follow(&cx, part.of_many()).await?;
                follow(&mut cx, &mut printer, request).await
            }
            (false, targets) => {
                let ids = targets.ids(&cx).await?;
                read_each(&mut cx, &mut printer, &part, &ids).await
            }
        }
    }

    fn timestamps(&self) -> Timestamps {
        match self.timestamps {
            true => Timestamps::Shown,
            false => Timestamps::Hidden,
        }
    }
}

/// Prints the present output of one task after the other. A task that fails does not hide the others.
async fn read_each(
    cx: &mut Context,
    printer: &mut Printer,
    part: &Part,
    ids: &[String],
) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
    for id in ids {
        exit = exit.and(match read(cx, printer, part, id, Until::Present).await {
            Err(failure @ Failure::Client(Error::Refused(_))) => out::report(&failure),
            result => result?,
        });
    }
    Ok(exit)
}

async fn read(
    cx: &mut Context,
    printer: &mut Printer,
    part: &Part,
    id: &str,
    until: Until,
) -> Result<Exit, Failure> {
    let mut reader = OutputReader::new(cx.client.clone(), part.of_task(id), until);
    let mut is_complete = false;
    while let Some(page) = reader.page().await? {
        is_complete = page.complete;
        printer.page(cx, id, page)?;
    }
    printer.end(cx, id)?;
    cx.out.flush()?;
    // The capture of a live task has not failed yet.
    match is_complete {
        true => Ok(note_missing(status::missing_output(
            &cx.client.task(id).get().await?,
        ))),
        false => Ok(Exit::Success),
    }
}

/// Prints the output of many tasks from one stream, until all are finished.
async fn follow(
    cx: &mut Context,
    printer: &mut Printer,
    request: FollowOutputRequest,
) -> Result<Exit, Failure> {
    let mut items = cx
        .client
        .follow_output(request)
        .give_up_after(RECONNECT_LIMIT);
    let mut exit = Exit::Success;
    loop {
        let item = match timeout(Duration::ZERO, items.next()).await {
            Ok(item) => item,
            Err(_) => {
                // Nothing is left to print before a wait.
                cx.out.flush()?;
                items.next().await
            }
        };
        match item.transpose()? {
            Some(FollowItem::Task(task)) => {
                printer.message(cx, Item::Task(task))?;
            }
            Some(FollowItem::Output { task_id, chunk }) => printer.chunk(cx, &task_id, chunk)?,
            Some(FollowItem::Ended(task)) => {
                printer.end(cx, &task.id)?;
                printer.message(cx, Item::Ended(task.clone()))?;
                cx.out.flush()?;
                exit = exit.and(note_missing(status::missing_output(&task)));
            }
            Some(FollowItem::Gone(id)) => {
                printer.end(cx, &id)?;
                cx.out.flush()?;
                let failure = Failure::NoSuchTask(format!("no task has the id {id}"));
                exit = exit.and(out::report(&failure));
            }
            None => break,
        }
    }
    cx.out.flush()?;
    Ok(exit)
}

/// Tells that output is missing, which is a failure.
fn note_missing(missing: Option<String>) -> Exit {
    match missing {
        Some(text) => {
            out::note(&text);
            Exit::Failed
        }
        None => Exit::Success,
    }
}
