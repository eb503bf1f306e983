//! `heeler logs`: prints the output of tasks.
//!
//! One reader per task sends pages to one printer over a bounded channel: a slow terminal slows the
//! readers, and never a task.

use std::time::{Duration, SystemTime};

use clap::Args;
use heeler_client::{
    Chunk, Client, Error,
    v1::{OutputStream, ReadOutputResponse},
};
use prost_types::Timestamp;
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    args::{duration, selection},
    completion,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    output_reader::{self, OutputReader, Streams, Until},
    render::{
        gap,
        log_lines::{LogLines, Timestamps},
        status, text,
    },
    task_ref,
};

/// Pages that wait for the printer: one is read while another is printed.
const PAGES_AHEAD: usize = 2;

const EXAMPLES: &str = "\
Examples:
  heeler logs shell-4k2mzq7xda
  heeler logs -f -n 20 shell-4k2mzq7xda
  heeler logs --since 5m dev
  heeler logs
  heeler logs -ft shell-4k2mzq7xda shell-7rw3hm2pqe
  heeler logs --stderr shell-4k2mzq7xda | grep -i error

A task's stdout goes to stdout and its stderr to stderr, byte for byte and in the order of arrival. \
With only one of --stdout and --stderr, that stream goes to stdout. With --timestamps, or for \
several tasks, output is printed in whole lines, each with its time or the id of its task.";

/// Print the output of tasks
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Logs {
    /// The tasks: ids, unique prefixes of ids, or names of live tasks; without one, the latest task
    #[arg(value_name = "ID", add = completion::tasks(), value_parser = selection::not_empty())]
    ids: Vec<String>,

    /// Print new output until the tasks finish
    #[arg(short, long)]
    follow: bool,

    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    tail: Option<u64>,

    /// Only output of the last T, e.g. 5m
    #[arg(long, value_name = "T", value_parser = duration::parse)]
    since: Option<Duration>,

    /// Only stdout
    #[arg(long)]
    stdout: bool,

    /// Only stderr
    #[arg(long)]
    stderr: bool,

    /// Print the time before each line
    #[arg(short, long)]
    timestamps: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The part of the output to read.
#[derive(Clone, Copy)]
struct Range {
    tail: Option<u64>,
    streams: Streams,
    until: Until,
}

/// A message of a reader to the printer.
struct Message {
    /// The index of the task on the command line.
    task: usize,
    content: Content,
}

enum Content {
    Page(ReadOutputResponse),
    /// The last page was sent. The text says that output is missing.
    End(Option<String>),
    Failed(Error),
}

impl Logs {
    /// The command as `heeler follow` runs it.
    pub(crate) fn following(mut self) -> Self {
        self.follow = true;
        self
    }

    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let ids = match self.ids.as_slice() {
            [] => vec![latest(&cx).await?],
            words => task_ref::resolve(&cx.client, words).await?,
        };
        if cx.json.is_some() && ids.len() > 1 {
            let text = "--json accepts one task only: the response does not name its task";
            return Err(Failure::Usage(text.to_owned()));
        }
        let (sender, mut messages) = mpsc::channel(PAGES_AHEAD);
        // Dropped with the printer, which aborts the readers.
        let _readers = self.start_readers(&cx.client, &ids, sender);
        let mut printer = Printer {
            names: ids.clone(),
            streams: self.streams(),
            lines: self.lines(&ids),
            after: self
                .since
                .and_then(|since| SystemTime::now().checked_sub(since)),
        };
        let mut exit = Exit::Success;
        while let Some(Message { task, content }) = messages.recv().await {
            match content {
                Content::Page(page) => printer.page(&mut cx, task, page)?,
                Content::End(missing) => {
                    printer.end(&mut cx, task)?;
                    if let Some(text) = missing {
                        cx.out.flush()?;
                        out::note(&text);
                        exit = exit.and(Exit::Failed);
                    }
                }
                Content::Failed(error) => exit = exit.and(out::report(&error.into())),
            }
            cx.out.flush()?;
        }
        Ok(exit)
    }

    /// Reads the tasks in parallel with `-f`, else one after the other.
    fn start_readers(
        &self,
        client: &Client,
        ids: &[String],
        sender: mpsc::Sender<Message>,
    ) -> JoinSet<()> {
        let until = if self.follow {
            Until::End
        } else {
            Until::Present
        };
        let range = Range {
            tail: self.tail,
            streams: self.streams(),
            until,
        };
        let tasks = ids.iter().cloned().enumerate();
        let mut readers = JoinSet::new();
        match until {
            Until::End => {
                for (task, id) in tasks {
                    readers.spawn(read(client.clone(), id, range, task, sender.clone()));
                }
            }
            Until::Present => {
                let (client, tasks) = (client.clone(), tasks.collect::<Vec<_>>());
                readers.spawn(async move {
                    for (task, id) in tasks {
                        read(client.clone(), id, range, task, sender.clone()).await;
                    }
                });
            }
        }
        readers
    }

    fn streams(&self) -> Streams {
        match (self.stdout, self.stderr) {
            (true, false) => Streams::Only(OutputStream::Stdout),
            (false, true) => Streams::Only(OutputStream::Stderr),
            (true, true) | (false, false) => Streams::Both,
        }
    }

    /// The lines of each task; none for a single task without timestamps, which is printed byte for byte.
    fn lines(&self, ids: &[String]) -> Vec<Option<LogLines>> {
        let timestamps = match self.timestamps {
            true => Timestamps::Shown,
            false => Timestamps::Hidden,
        };
        match (ids, timestamps) {
            ([_], Timestamps::Hidden) => vec![None],
            ([_], Timestamps::Shown) => vec![Some(LogLines::new(String::new(), timestamps))],
            (ids, timestamps) => {
                let prefix = |id: &String| format!("{} | ", text::visible(id));
                ids.iter()
                    .map(|id| Some(LogLines::new(prefix(id), timestamps)))
                    .collect()
            }
        }
    }
}

/// The latest task, named on stderr.
async fn latest(cx: &Context) -> Result<String, Failure> {
    let id = task_ref::latest(&cx.client).await?;
    out::note(&format!("output of {id}, the latest task"));
    Ok(id)
}

async fn read(
    client: Client,
    id: String,
    range: Range,
    task: usize,
    sender: mpsc::Sender<Message>,
) {
    let content = match read_pages(client, id, range, task, &sender).await {
        Ok(missing) => Content::End(missing),
        Err(error) => Content::Failed(error),
    };
    // The printer may have ended.
    let _ = sender.send(Message { task, content }).await;
}

async fn read_pages(
    client: Client,
    id: String,
    range: Range,
    task: usize,
    sender: &mpsc::Sender<Message>,
) -> Result<Option<String>, Error> {
    let offset = match range.tail {
        Some(count) => output_reader::last_lines(&client, &id, count, range.streams).await?,
        None => 0,
    };
    let mut reader = OutputReader::new(client.clone(), id.clone(), offset, range.until);
    let mut is_complete = false;
    while let Some(page) = reader.page().await? {
        is_complete = page.complete;
        let content = Content::Page(page);
        if sender.send(Message { task, content }).await.is_err() {
            return Ok(None);
        }
    }
    // The capture of a live task has not failed yet.
    match is_complete {
        true => Ok(status::missing_output(&client.task(id).get().await?)),
        false => Ok(None),
    }
}

struct Printer {
    names: Vec<String>,
    streams: Streams,
    lines: Vec<Option<LogLines>>,
    /// Earlier output is not printed.
    after: Option<SystemTime>,
}

impl Printer {
    fn page(
        &mut self,
        cx: &mut Context,
        task: usize,
        mut page: ReadOutputResponse,
    ) -> Result<(), Failure> {
        let streams = self.streams;
        page.chunks
            .retain(|chunk| gap::of(chunk).is_some() || streams.contains(chunk.stream()));
        if let Some(after) = self.after.map(Timestamp::from) {
            let key = |at: Timestamp| (at.seconds, at.nanos);
            page.chunks
                .retain(|chunk| chunk.read_time.is_none_or(|at| key(at) >= key(after)));
        }
        if cx.print_json_line(&page)? == Printed::Yes {
            return Ok(());
        }
        for chunk in page.chunks.into_iter().map(Chunk::from) {
            if let Some(missing) = &chunk.gap {
                cx.out.flush()?;
                out::note(&self.gap_note(task, gap::clause(chunk.offset, missing)));
                continue;
            }
            let bytes = match &mut self.lines[task] {
                Some(lines) => lines.take(&chunk).into(),
                None => chunk.data,
            };
            self.put(cx, chunk.stream, &bytes)?;
        }
        Ok(())
    }

    /// With several tasks, the note names its task.
    fn gap_note(&self, task: usize, clause: String) -> String {
        match &self.names[..] {
            [_] => clause,
            names => format!("{}: {clause}", names[task]),
        }
    }

    fn end(&mut self, cx: &mut Context, task: usize) -> Result<(), Failure> {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            if let Some(lines) = &mut self.lines[task] {
                let rest = lines.finish(stream);
                self.put(cx, stream, &rest)?;
            }
        }
        Ok(())
    }

    fn put(&self, cx: &mut Context, stream: OutputStream, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        match (self.streams, stream) {
            (Streams::Both, OutputStream::Stderr) => cx.out.stderr_bytes(bytes)?,
            (Streams::Both, OutputStream::Stdout | OutputStream::Unspecified)
            | (Streams::Only(_), _) => cx.out.bytes(bytes)?,
        }
        Ok(())
    }
}
