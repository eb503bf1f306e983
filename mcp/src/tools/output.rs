//! `heeler_output`: the output of a task: what is unread, from a cursor, its end, or the lines that match.

mod tail;

use std::time::Duration;

use heeler_client::{
    time,
    v1::{OutputFilter, OutputStream, OutputView, ReadOutputRequest, read_output_request::Start},
};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Effect, Tool};
use crate::{
    connection::Call,
    problem::Problem,
    progress::with_progress,
    view::{Cursor, Excerpt, Limit, Part, TaskView, bytes},
};
use tail::Piece;

pub(crate) struct Output;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct OutputArgs {
    /// The id of the task, or the name of a live one.
    id: String,
    /// Read on from here: a next_cursor or omitted_cursor of an earlier answer. Default: what you have not
    /// read yet.
    #[serde(default)]
    cursor: Option<String>,
    /// Only the last lines, this many, read or not. If they are longer than max_bytes, the last of them.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    tail_lines: Option<u32>,
    /// Only lines that match this regular expression (Rust syntax), from the cursor or the beginning on.
    #[serde(default)]
    grep: Option<String>,
    /// With grep: lines to show around each match.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20))]
    context_lines: Option<u32>,
    /// Only this stream.
    #[serde(default)]
    stream: Option<Stream>,
    /// If there is nothing new, wait up to this many seconds for it.
    #[serde(default)]
    #[schemars(range(min = 0, max = 50))]
    wait_seconds: Option<u32>,
    /// The most to return, in bytes. Default: 16384.
    #[serde(default)]
    #[schemars(range(min = 1024, max = 65536))]
    max_bytes: Option<u32>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(rename_all = "snake_case")]
enum Stream {
    Stdout,
    Stderr,
}

/// A part of a task's output.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Read {
    id: String,
    task: TaskView,
    /// Without terminal escape sequences.
    output: String,
    /// The cursor after this part.
    next_cursor: String,
    /// True if there is more after next_cursor now.
    more: bool,
    /// True if the task has ended and this is the end of its output.
    complete: bool,
    /// Bytes of output in all.
    total_bytes: u64,
    /// The number of bytes left out in the middle, or with tail_lines at the beginning. Read them with
    /// omitted_cursor.
    omitted_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted_cursor: Option<String>,
}

impl Tool for Output {
    const NAME: &'static str = "heeler_output";
    const TITLE: &'static str = "Read output";
    const DESCRIPTION: &'static str = "Reads the output of a task, also of a finished one. Without options it \
returns what you have not read yet: if that is long, its beginning and end with the number of bytes between. Use \
grep to search (also far back), tail_lines for the end, cursor to page, wait_seconds to wait for new lines. Do not \
read everything in pages when a grep answers the question, and do not poll: heeler_wait waits for the end or for \
a line.";
    const EFFECT: Effect = Effect::Reads;
    type Input = OutputArgs;
    type Output = Read;

    async fn call(input: OutputArgs, call: &Call<'_>) -> Result<Read, Problem> {
        let id = call.task(&input.id).await?.id;
        let cursor = input.cursor.as_deref();
        let cursor = cursor
            .map(|cursor| Cursor::offset_in(cursor, &id))
            .transpose()?;
        let limit = Limit::of(input.max_bytes);
        if input.tail_lines.is_some() && (cursor.is_some() || input.grep.is_some()) {
            let fault = "cannot be combined with `cursor` or `grep`";
            return Err(Problem::argument("tail_lines", fault));
        }
        let from = cursor.unwrap_or_else(|| call.connection.read_up_to(&id));
        if let Some(wait) = input.wait_seconds.filter(|wait| *wait > 0) {
            let waited = new_output(call, &id, from, Duration::from_secs(wait.into()));
            with_progress(call, "waits for output", waited).await?;
        }
        let mut excerpt = if input.is_selective() {
            let read = |start| selected(call, &id, &input, start, limit);
            match input.tail_lines {
                Some(lines) => tail::last_lines(read, lines, limit).await?,
                None => read(Start::Offset(cursor.unwrap_or(0))).await?.excerpt,
            }
        } else {
            let part = cursor.map_or(Part::Since(from), Part::From);
            Excerpt::read(&call.client, &id, part, limit).await?
        };
        // A cursor may be beyond the end.
        excerpt.next = excerpt.next.min(excerpt.end);
        if !input.is_selective() {
            call.connection.mark_read(&id, from..excerpt.next);
        }
        // After the output, so that the state is not older than it.
        let task = call.client.task(&id).get().await?;
        Ok(Read::of(TaskView::of(&task), excerpt))
    }
}

impl OutputArgs {
    /// True if not every byte is returned.
    fn is_selective(&self) -> bool {
        self.tail_lines.is_some() || self.grep.is_some() || self.stream.is_some()
    }

    fn filter(&self) -> OutputFilter {
        let context = self.context_lines.unwrap_or(0);
        let stream = match self.stream {
            Some(Stream::Stdout) => OutputStream::Stdout,
            Some(Stream::Stderr) => OutputStream::Stderr,
            None => OutputStream::Unspecified,
        };
        OutputFilter {
            stream: stream.into(),
            include: self.grep.clone().unwrap_or_default(),
            lines_before: context,
            lines_after: context,
            ..OutputFilter::default()
        }
    }
}

/// Waits for a byte after this offset, or for the end of the task.
async fn new_output(call: &Call<'_>, id: &str, from: u64, wait: Duration) -> Result<(), Problem> {
    let request = ReadOutputRequest {
        task_id: id.to_owned(),
        start: Some(Start::Offset(from)),
        max_bytes: 1,
        wait: Some(time::to_proto(wait)),
        ..ReadOutputRequest::default()
    };
    tokio::select! {
        answer = call.client.read_output(request) => answer.map(drop).map_err(Problem::from),
        () = call.abandoned() => Err(Problem::Cancelled(String::new())),
    }
}

async fn selected(
    call: &Call<'_>,
    id: &str,
    input: &OutputArgs,
    start: Start,
    limit: Limit,
) -> Result<Piece, Problem> {
    let filter = Some(input.filter()).filter(|filter| *filter != OutputFilter::default());
    let request = ReadOutputRequest {
        task_id: id.to_owned(),
        start: Some(start),
        max_bytes: limit.bytes(),
        view: OutputView::Plain.into(),
        filter,
        ..ReadOutputRequest::default()
    };
    Ok(Piece::of(&call.client.read_output(request).await?))
}

impl Read {
    fn of(task: TaskView, excerpt: Excerpt) -> Self {
        let (omitted_cursor, omitted_bytes) = match excerpt.omitted {
            Some((offset, length)) => (Some(Cursor::new(&task.id, offset).to_string()), length),
            None => (None, 0),
        };
        let more = excerpt.next < excerpt.end;
        Self {
            id: task.id.clone(),
            next_cursor: Cursor::new(&task.id, excerpt.next).to_string(),
            task,
            output: excerpt.text,
            more,
            complete: excerpt.complete && !more,
            total_bytes: excerpt.end,
            omitted_bytes,
            omitted_cursor,
        }
    }
}

impl Answer for Read {
    fn text(&self) -> String {
        let mut text = self.task.to_string();
        if let Some(cursor) = &self.omitted_cursor {
            text += &format!(
                "\n{} omitted; read them with cursor {cursor}",
                bytes(self.omitted_bytes)
            );
        }
        text += match (self.more, self.complete) {
            (true, _) => "\nThere is more: call again with cursor ",
            (false, true) => "\nThis is the end of its output, cursor ",
            (false, false) => "\nThis is all so far; next cursor ",
        };
        text += &self.next_cursor;
        match self.output.trim_end() {
            "" => text + "\n(nothing)",
            output => text + "\n--- output\n" + output,
        }
    }
}
