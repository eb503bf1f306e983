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
    view::{Cursor, Excerpt, Limit, Part, TaskView, bytes, cut_lines},
};
use tail::Piece;

pub(crate) struct Output;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct OutputArgs {
    /// The id of the task, or its name.
    id: String,
    /// Read on from here: a next_cursor or omitted_cursor of an earlier answer. Default: what you have not
    /// read yet; with grep or stream, the beginning.
    #[serde(default)]
    cursor: Option<String>,
    /// Only the last lines, this many, read or not. If they are longer than max_bytes, the last of them.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    tail_lines: Option<u32>,
    /// Only lines that match this regular expression (Rust syntax), from the cursor or the beginning on.
    #[serde(default)]
    grep: Option<String>,
    /// With grep: lines to show around each match. Long lines are cut to make room for all.
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
        let reading = with_progress(
            call,
            "waits for output",
            input.read(&id, cursor, limit, call),
        );
        let (excerpt, more) = tokio::select! {
            read = reading => read?,
            () = call.abandoned() => return Err(Problem::Cancelled(String::new())),
        };
        // After the output, so that the state is not older than it.
        let task = call.client.task(&id).get().await?;
        Ok(Read::of(TaskView::of(&task), excerpt, more))
    }
}

impl OutputArgs {
    /// The part that was asked for, and whether there is more behind it.
    async fn read(
        &self,
        id: &str,
        cursor: Option<u64>,
        limit: Limit,
        call: &Call<'_>,
    ) -> Result<(Excerpt, bool), Problem> {
        if self.grep.is_none() && self.stream.is_none() && self.tail_lines.is_none() {
            let from = cursor.unwrap_or_else(|| call.connection.read_up_to(id));
            self.wait_beyond(id, from, call).await?;
            let part = cursor.map_or(Part::Since(from), Part::From);
            let excerpt = Excerpt::read(&call.client, id, part, limit)
                .await?
                .bounded();
            call.connection.mark_read(id, from..excerpt.next);
            let more = excerpt.next < excerpt.end;
            return Ok((excerpt, more));
        }
        if let Some(lines) = self.tail_lines {
            let read_up_to = call.connection.read_up_to(id);
            self.wait_beyond(id, read_up_to, call).await?;
            let read = |start| self.selected(id, start, limit, Duration::ZERO, call);
            let excerpt = tail::last_lines(read, lines, limit).await?.bounded();
            let more = excerpt.next < excerpt.end;
            return Ok((excerpt, more));
        }
        let from = cursor.unwrap_or(0);
        let read = self.selected(id, Start::Offset(from), limit, self.wait(call), call);
        let excerpt = read.await?.excerpt.bounded();
        // While the task runs, the place to read on from is before the lines that may yet be the context of a match.
        let has_moved = excerpt.next > from || !excerpt.text.is_empty();
        let more = has_moved && excerpt.next < excerpt.end;
        Ok((excerpt, more))
    }

    fn wait(&self, call: &Call<'_>) -> Duration {
        let wait = Duration::from_secs(self.wait_seconds.unwrap_or(0).into());
        wait.min(call.time_left())
    }

    /// Waits, if that was asked for, for a byte after this offset, or for the end of the task.
    async fn wait_beyond(&self, id: &str, from: u64, call: &Call<'_>) -> Result<(), Problem> {
        let wait = self.wait(call);
        if wait.is_zero() {
            return Ok(());
        }
        let request = ReadOutputRequest {
            task_id: id.to_owned(),
            start: Some(Start::Offset(from)),
            max_bytes: 1,
            wait: Some(time::to_proto(wait)),
            ..ReadOutputRequest::default()
        };
        call.client.read_output(request).await?;
        Ok(())
    }

    /// Reads what the filter selects, and waits for it as long.
    async fn selected(
        &self,
        id: &str,
        start: Start,
        limit: Limit,
        wait: Duration,
        call: &Call<'_>,
    ) -> Result<Piece, Problem> {
        let filter = Some(self.filter()).filter(|filter| *filter != OutputFilter::default());
        let request = ReadOutputRequest {
            task_id: id.to_owned(),
            start: Some(start),
            max_bytes: match self.grep {
                // The last line and the lines around it may be longer than the rest.
                Some(_) => limit.bytes() / 2,
                None => limit.bytes(),
            },
            view: OutputView::Plain.into(),
            wait: Some(wait)
                .filter(|wait| !wait.is_zero())
                .map(time::to_proto),
            filter,
            ..ReadOutputRequest::default()
        };
        let mut answer = call.client.read_output(request).await?;
        if self.grep.is_some() {
            cut_lines(&mut answer.chunks, limit);
        }
        Ok(Piece::of(&answer))
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

impl Read {
    fn of(task: TaskView, excerpt: Excerpt, more: bool) -> Self {
        let (omitted_cursor, omitted_bytes) = match excerpt.omitted {
            Some((offset, length)) => (Some(Cursor::new(&task.id, offset).to_string()), length),
            None => (None, 0),
        };
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
