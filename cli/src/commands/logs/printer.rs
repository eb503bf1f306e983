//! Prints output: byte for byte, or in whole lines with the id of the task or the time.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use heeler_client::{
    Chunk,
    v1::{
        FollowOutputResponse, FollowedOutput, OutputStream, ReadOutputResponse,
        follow_output_response::Item,
    },
};
use prost_types::Timestamp;

use super::part::{Part, Streams};
use crate::{
    context::{Context, Printed},
    failure::Failure,
    out,
    render::{
        colour, gap,
        log_lines::{LogLines, Prefix, Timestamps},
        text,
    },
};

/// The line between two groups of a search with context, as grep prints it.
const SEPARATOR: &[u8] = b"--\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// There is one task: its output is not named.
    Hidden,
    Shown,
}

pub(super) struct Printer {
    names: Names,
    timestamps: Timestamps,
    streams: Streams,
    not_before: Option<Timestamp>,
    /// The unfinished lines of each task that has not ended.
    tasks: HashMap<String, LogLines>,
    /// The tasks of which a line was printed.
    begun: HashSet<String>,
    /// The number of tasks so far, which decides the colour of the next one.
    seen: usize,
}

impl Printer {
    pub(super) fn new(part: &Part, names: Names, timestamps: Timestamps) -> Self {
        Self {
            names,
            timestamps,
            streams: part.streams,
            not_before: part.not_before,
            tasks: HashMap::new(),
            begun: HashSet::new(),
            seen: 0,
        }
    }

    pub(super) fn page(
        &mut self,
        cx: &mut Context,
        id: &str,
        mut page: ReadOutputResponse,
    ) -> Result<(), Failure> {
        page.chunks
            .retain(|chunk| chunk.read_time.is_none_or(|at| self.is_recent(at)));
        let printed = match self.names {
            Names::Hidden => cx.print_json_line(&page)?,
            Names::Shown => cx.print_json_line(&FollowedOutput {
                task_id: id.to_owned(),
                chunks: page.chunks.clone(),
                next_offset: page.next_offset,
            })?,
        };
        if printed == Printed::No {
            for chunk in page.chunks {
                self.put(cx, id, Chunk::from(chunk))?;
            }
        }
        Ok(cx.out.flush()?)
    }

    pub(super) fn chunk(
        &mut self,
        cx: &mut Context,
        id: &str,
        chunk: Chunk,
    ) -> Result<(), Failure> {
        if chunk.gap.is_none() && !self.is_recent(chunk.read_time.into()) {
            return Ok(());
        }
        let output = FollowedOutput {
            task_id: id.to_owned(),
            next_offset: chunk.end(),
            chunks: vec![chunk.clone().into()],
        };
        match self.message(cx, Item::Output(output))? {
            Printed::Yes => Ok(()),
            Printed::No => self.put(cx, id, chunk),
        }
    }

    /// Prints a message of FollowOutput, with `--json`.
    pub(super) fn message(&self, cx: &mut Context, item: Item) -> Result<Printed, Failure> {
        let message = FollowOutputResponse {
            item: Some(item),
            ..FollowOutputResponse::default()
        };
        cx.print_json_line(&message)
    }

    fn is_recent(&self, at: Timestamp) -> bool {
        let key = |at: Timestamp| (at.seconds, at.nanos);
        self.not_before.is_none_or(|first| key(at) >= key(first))
    }

    fn put(&mut self, cx: &mut Context, id: &str, chunk: Chunk) -> Result<(), Failure> {
        if let Some(missing) = &chunk.gap {
            cx.out.flush()?;
            let clause = gap::clause(chunk.offset, missing);
            out::note(&match self.names {
                Names::Hidden => clause,
                Names::Shown => format!("{id}: {clause}"),
            });
            return Ok(());
        }
        if !self.begun.contains(id) {
            self.begun.insert(id.to_owned());
        } else if chunk.begins_group {
            self.write(cx, chunk.stream, SEPARATOR)?;
        }
        match (self.names, self.timestamps) {
            (Names::Hidden, Timestamps::Hidden) => self.write(cx, chunk.stream, &chunk.data),
            (Names::Hidden, Timestamps::Shown) | (Names::Shown, _) => {
                let whole = self.lines(id).take(&chunk);
                self.write(cx, chunk.stream, &whole)
            }
        }
    }

    /// Prints the lines of a task that had no end.
    pub(super) fn end(&mut self, cx: &mut Context, id: &str) -> Result<(), Failure> {
        if let Some(mut lines) = self.tasks.remove(id) {
            for stream in [OutputStream::Stdout, OutputStream::Stderr] {
                self.write(cx, stream, &lines.finish(stream))?;
            }
        }
        Ok(())
    }

    fn lines(&mut self, id: &str) -> &mut LogLines {
        let (seen, timestamps) = (&mut self.seen, self.timestamps);
        let (names, streams) = (self.names, self.streams);
        self.tasks.entry(id.to_owned()).or_insert_with(|| {
            let prefix = match names {
                Names::Hidden => Prefix::default(),
                Names::Shown => prefix(id, *seen, streams),
            };
            *seen += 1;
            LogLines::new(prefix, timestamps)
        })
    }

    fn write(&self, cx: &mut Context, stream: OutputStream, bytes: &[u8]) -> Result<(), Failure> {
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

/// The id before each line of a task, coloured where the line goes to a terminal.
fn prefix(id: &str, index: usize, streams: Streams) -> Prefix {
    let id = text::visible(id);
    let shown = |is_coloured: bool| match is_coloured {
        true => format!("{} ", colour::of_task(&format!("{id} |"), index)),
        false => format!("{id} | "),
    };
    let stdout = colour::is_wanted_on(&io::stdout());
    let stderr = match streams {
        Streams::Both => colour::is_wanted_on(&io::stderr()),
        Streams::Only(_) => stdout,
    };
    Prefix {
        stdout: shown(stdout),
        stderr: shown(stderr),
    }
}
