//! `heeler logs`: what tasks have written.
//!
//! Readers, one a task, hand pages to one printer over a bounded channel: whoever looks away stops
//! the readers, and never a task.

use clap::Args;
use heeler_client::{
    Chunk, Client, Error,
    v1::{OutputStream, ReadOutputResponse},
};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    context::{ClientArgs, Context, Printed},
    exit::{Exit, Failure},
    follow::{self, Reader, Select, Until},
    lines::{Lines, Stamp},
    out, text, values,
};

/// Pages that wait for the printer: enough to read one while another is printed.
const PAGES_AHEAD: usize = 2;

const EXAMPLES: &str = "\
Examples:
  heeler logs shell-4k2mzq7xda
  heeler logs -f --tail 20 shell-4k2mzq7xda
  heeler logs -ft shell-4k2mzq7xda shell-7rw3hm2pqe
  heeler logs --stderr shell-4k2mzq7xda | grep -i error

The task's stdout goes to stdout and its stderr to stderr, byte for byte and in the order of arrival; a
stream that is asked for alone goes to stdout. With --timestamps, or for several tasks, output is
printed in whole lines, each with its time and the id of its task.";

/// Print what tasks have written
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Logs {
    /// The tasks
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,

    /// Go on until the end of the tasks
    #[arg(short, long)]
    follow: bool,

    /// Only the last N lines
    #[arg(long, value_name = "N")]
    tail: Option<u64>,

    /// Only what was written to stdout
    #[arg(long)]
    stdout: bool,

    /// Only what was written to stderr
    #[arg(long)]
    stderr: bool,

    /// Put the time before each line
    #[arg(short, long)]
    timestamps: bool,

    #[command(flatten)]
    client: ClientArgs,
}

/// What a reader has to say of its task.
enum Said {
    Page(ReadOutputResponse),
    Over,
    Failed(Error),
}

/// A task by its place among those that were asked for.
type Saying = (usize, Said);

/// What to read of each task.
#[derive(Clone, Copy)]
struct Range {
    tail: Option<u64>,
    select: Select,
    until: Until,
}

impl Logs {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let ids = values::distinct(&self.ids);
        let mut cx = Context::open(&self.client).await?;
        if cx.json.is_some() && ids.len() > 1 {
            let text = "--json takes one task: the response does not name it";
            return Err(Failure::Usage(text.to_owned()));
        }
        let (sayings, mut said) = mpsc::channel(PAGES_AHEAD);
        // Ended when the command is: nothing outlives the printer.
        let _readers = self.start_readers(&cx.client, &ids, sayings);
        let mut printer = Printer {
            select: self.select(),
            sources: self.sources(&ids),
        };
        let mut exit = Exit::Done;
        while let Some((place, said)) = said.recv().await {
            match said {
                Said::Page(page) => printer.page(&mut cx, place, page)?,
                Said::Over => printer.over(&mut cx, place)?,
                Said::Failed(error) => {
                    let failure = Failure::from(error);
                    out::note(&failure.report().unwrap_or_default());
                    exit = exit.and(failure.exit());
                }
            }
            cx.out.flush()?;
        }
        Ok(exit)
    }

    /// Side by side where they are followed; else one after the other.
    fn start_readers(
        &self,
        client: &Client,
        ids: &[String],
        sayings: mpsc::Sender<Saying>,
    ) -> JoinSet<()> {
        let until = if self.follow {
            Until::End
        } else {
            Until::Present
        };
        let range = Range {
            tail: self.tail,
            select: self.select(),
            until,
        };
        let all = ids.iter().cloned().enumerate();
        let mut readers = JoinSet::new();
        match until {
            Until::End => {
                for (place, id) in all {
                    readers.spawn(read(client.clone(), id, range, place, sayings.clone()));
                }
            }
            Until::Present => {
                let (client, all) = (client.clone(), all.collect::<Vec<_>>());
                readers.spawn(async move {
                    for (place, id) in all {
                        read(client.clone(), id, range, place, sayings.clone()).await;
                    }
                });
            }
        }
        readers
    }

    fn select(&self) -> Select {
        match (self.stdout, self.stderr) {
            (true, false) => Select::Only(OutputStream::Stdout),
            (false, true) => Select::Only(OutputStream::Stderr),
            (true, true) | (false, false) => Select::Both,
        }
    }

    /// Who is printed line by line; a single task without times is printed byte for byte.
    fn sources(&self, ids: &[String]) -> Vec<Option<Lines>> {
        let stamp = if self.timestamps {
            Stamp::Time
        } else {
            Stamp::None
        };
        match (ids, stamp) {
            ([_], Stamp::None) => vec![None],
            ([_], Stamp::Time) => vec![Some(Lines::new(String::new(), stamp))],
            (ids, stamp) => {
                let prefix = |id: &String| format!("{} | ", text::visible(id));
                ids.iter()
                    .map(|id| Some(Lines::new(prefix(id), stamp)))
                    .collect()
            }
        }
    }
}

async fn read(
    client: Client,
    id: String,
    range: Range,
    place: usize,
    sayings: mpsc::Sender<Saying>,
) {
    let last = match read_pages(client, id, range, place, &sayings).await {
        Ok(()) => Said::Over,
        Err(error) => Said::Failed(error),
    };
    // A printer that has gone needs no last word.
    let _ = sayings.send((place, last)).await;
}

async fn read_pages(
    client: Client,
    id: String,
    range: Range,
    place: usize,
    sayings: &mpsc::Sender<Saying>,
) -> Result<(), Error> {
    let offset = match range.tail {
        Some(count) => follow::last_lines(&client, &id, count, range.select).await?,
        None => 0,
    };
    let mut reader = Reader::new(client, id, offset, range.until);
    while let Some(page) = reader.page().await? {
        if sayings.send((place, Said::Page(page))).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Puts pages where they belong.
struct Printer {
    select: Select,
    sources: Vec<Option<Lines>>,
}

impl Printer {
    fn page(
        &mut self,
        cx: &mut Context,
        place: usize,
        mut page: ReadOutputResponse,
    ) -> Result<(), Failure> {
        let select = self.select;
        page.chunks.retain(|chunk| select.has(chunk.stream()));
        if cx.print_json_line(&page)? == Printed::Yes {
            return Ok(());
        }
        for chunk in page.chunks.into_iter().map(Chunk::from) {
            let bytes = match &mut self.sources[place] {
                Some(lines) => lines.take(&chunk).into(),
                None => chunk.data,
            };
            self.put(cx, chunk.stream, &bytes)?;
        }
        Ok(())
    }

    fn over(&mut self, cx: &mut Context, place: usize) -> Result<(), Failure> {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            if let Some(lines) = &mut self.sources[place] {
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
        match (self.select, stream) {
            (Select::Both, OutputStream::Stderr) => cx.out.stderr_bytes(bytes)?,
            (Select::Both, OutputStream::Stdout | OutputStream::Unspecified)
            | (Select::Only(_), _) => cx.out.bytes(bytes)?,
        }
        Ok(())
    }
}
