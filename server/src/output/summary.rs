//! The end of a task in words, for people and models: one text of at most 4 KiB.
//!
//! ```text
//! shell-k3v7q2mzha FAILED: exit code 101, after 3.2 s
//! command: cargo test
//! output: 18230 bytes
//!
//! first errors:
//! error[E0425]: cannot find value `x` in this scope
//!
//! last lines:
//! error: could not compile `heeler` (lib) due to 1 previous error
//!
//! all output: heeler logs shell-k3v7q2mzha
//! ```

use std::{collections::VecDeque, fmt::Write, ops::ControlFlow, sync::LazyLock, time::Duration};

use regex::Regex;

use super::{
    lines::{Line, Lines},
    plain::line_text,
};
use crate::task::{Actor, Command, EndState, Item, Outcome, StopCause, Task, WorkerStatus};

/// The size of a summary, at most.
pub(crate) const SUMMARY_BYTES: usize = 4096;
/// The size of each value that a client has given.
const VALUE: usize = 256;
/// The size of each line.
const LINE: usize = 256;
/// The number of lines that look like errors.
const ERRORS: usize = 8;
/// The number of last lines that can be shown.
const LAST: usize = 64;

/// Words by which compilers, test runners, shells and run-time systems report errors.
static ERROR: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"(?i)\b(?:error|fatal|panic|panicked|exception|traceback|assertion failed|fail|failed|failure|failures|segmentation fault|core dumped|aborted|killed|undefined reference|no such file|not found|permission denied|out of memory|cannot|could not|unable to)\b|error[:\[]";
    Regex::new(words).expect("a constant")
});
/// Reports of no error.
static NO_ERROR: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"(?i)\b(?:0|no) (?:errors?|failed|failures?)\b|\b(?:errors?|failed|failures?)\b\s*[:=]\s*0\b";
    Regex::new(words).expect("a constant")
});

/// The output that a summary is made of.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) head: Vec<Item>,
    /// Empty if the head is all output.
    pub(crate) tail: Vec<Item>,
    /// The number of bytes between them.
    pub(crate) omitted: u64,
}

/// Summarises a finished task. `signal_name` turns a signal's number into its name.
pub(crate) fn of(task: &Task, ends: &Ends, signal_name: fn(i32) -> String) -> String {
    let mut summary = facts(task, signal_name);
    let footer = format!("\nall output: heeler logs {}", task.id);
    let excerpt = Excerpt::of(ends);
    let room = SUMMARY_BYTES.saturating_sub(summary.len() + footer.len());
    if excerpt.has_lines {
        excerpt.write(task, room, &mut summary);
        summary.push_str(&footer);
    }
    summary.truncate(summary.floor_char_boundary(SUMMARY_BYTES));
    summary
}

fn facts(task: &Task, signal_name: fn(i32) -> String) -> String {
    let mut text = format!("{} {}", task.id, end(task, signal_name));
    if let (Some(started), Some(ended)) = (&task.started, &task.ended) {
        let took = ended.at.since(started.at.wall);
        let _ = write!(text, ", after {}", span(took));
    }
    let mut value = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = write!(text, "\n{name}: {}", one_line(value, VALUE));
        }
    };
    value("name", &task.spec.name);
    value("command", &command(&task.spec.command));
    if let Some(stop) = &task.stop {
        value("stopped by", &actor(&stop.actor));
        value("reason", stop.reason.as_deref().unwrap_or_default());
    }
    value(
        "capture error",
        task.capture_error.as_deref().unwrap_or_default(),
    );
    if let Some(result) = &task.result {
        value("result", &result.text);
    }
    if task.is_hosted() {
        return text;
    }
    let output = match task.output_bytes {
        0 => "none".to_owned(),
        bytes => format!("{bytes} bytes"),
    };
    value("output", &output);
    text
}

fn end(task: &Task, signal_name: fn(i32) -> String) -> String {
    let state = match task.ended.as_ref().map(|ended| ended.state) {
        Some(EndState::Completed) => "COMPLETED",
        Some(EndState::Failed) => "FAILED",
        Some(EndState::Cancelled) => "CANCELLED",
        Some(EndState::TimedOut) => "TIMED_OUT",
        Some(EndState::Lost) => "LOST",
        None => "is not finished",
    };
    let cause = task.stop.as_ref().map(|stop| match stop.cause {
        StopCause::Cancel => "cancelled",
        StopCause::Timeout => "its timeout was over",
        StopCause::Shutdown => "the server shut down",
        StopCause::IdleTimeout => "it was silent for too long",
        StopCause::ClientDisconnected => "its client disconnected",
        StopCause::Replaced => "another task replaced it",
        StopCause::NotReady => "it was not ready in time",
        StopCause::OutputLimit => "its output reached its limit",
    });
    let outcome = task.leader_end.as_ref().map(|end| match &end.outcome {
        Outcome::Exited(code) => format!("exit code {code}"),
        Outcome::Signalled {
            signal,
            core_dumped,
        } => {
            let core = if *core_dumped { " (core dumped)" } else { "" };
            format!("ended by {}{core}", signal_name(signal.0))
        }
        Outcome::SpawnFailed(failure) => one_line(&failure.to_string(), VALUE),
        Outcome::Worker(status) => match status {
            WorkerStatus::Ok => "its worker is done".to_owned(),
            WorkerStatus::Failed => "its worker failed".to_owned(),
            WorkerStatus::Cancelled => "its worker was cancelled".to_owned(),
        },
        Outcome::Unknown(circumstances) => one_line(circumstances, VALUE),
    });
    let told: Vec<String> = cause
        .map(str::to_owned)
        .into_iter()
        .chain(outcome)
        .collect();
    match told.is_empty() {
        true => state.to_owned(),
        false => format!("{state}: {}", told.join(", ")),
    }
}

fn command(command: &Command) -> String {
    match command {
        Command::Argv(args) => args.join(" "),
        Command::Shell { script, .. } => script.clone(),
        Command::Hosted { .. } => String::new(),
    }
}

fn actor(actor: &Actor) -> String {
    match (&actor.name, actor.pid) {
        (Some(name), _) => name.clone(),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => String::new(),
    }
}

/// A duration in its two largest units.
fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", span.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A text in one line, cut at `limit` bytes.
fn one_line(text: &str, limit: usize) -> String {
    let words = text.split(|char: char| char.is_whitespace() || char.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>();
    cut(line.join(" "), limit)
}

fn cut(mut text: String, limit: usize) -> String {
    const MARK: &str = "…";
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit - MARK.len()));
        text.push_str(MARK);
    }
    text
}

/// The lines of the output that a summary shows.
#[derive(Debug, Default)]
struct Excerpt {
    /// False if the output is empty.
    has_lines: bool,
    /// True if `last` has every line.
    is_whole: bool,
    errors: Vec<String>,
    last: VecDeque<String>,
}

impl Excerpt {
    fn of(ends: &Ends) -> Self {
        let mut excerpt = Self {
            is_whole: ends.omitted == 0,
            ..Self::default()
        };
        for items in [&ends.head, &ends.tail] {
            let mut lines = Lines::from(0);
            let mut take = |line: Line<'_>| {
                excerpt.take(line);
                ControlFlow::Continue(())
            };
            for item in items {
                let _ = match item {
                    Item::Chunk(chunk) => lines.feed(chunk, &mut take),
                    Item::Gap(gap) => lines.gap(gap, &mut take),
                };
            }
            let _ = lines.finish(&mut take);
        }
        excerpt
    }

    fn take(&mut self, line: Line<'_>) {
        // A progress display writes its states over one another, and the last one stays.
        let text = line_text(line.bytes, LINE + 1);
        let shown = text.rsplit('\r').next().unwrap_or_default().trim_end();
        if shown.is_empty() {
            return;
        }
        self.has_lines = true;
        let shown = cut(shown.to_owned(), LINE);
        let is_error = ERROR.is_match(&shown) && !NO_ERROR.is_match(&shown);
        if is_error && self.errors.len() < ERRORS && !self.errors.contains(&shown) {
            self.errors.push(shown.clone());
        }
        if self.last.len() == LAST {
            self.last.pop_front();
            self.is_whole = false;
        }
        self.last.push_back(shown);
    }

    /// Writes what fits.
    fn write(mut self, task: &Task, room: usize, summary: &mut String) {
        let size: usize = self.last.iter().map(|line| line.len() + 1).sum();
        let label = "\n\nlines:".len();
        if self.is_whole && size + label <= room {
            return section("lines", self.last.iter(), summary);
        }
        let mut left = room.saturating_sub("\n\nfirst errors:\n\nlast lines:".len());
        let is_failure = task
            .ended
            .as_ref()
            .is_some_and(|ended| ended.state != EndState::Completed);
        if is_failure {
            let mut errors_left = left / 2;
            self.errors.retain(|line| take_room(&mut errors_left, line));
            left -= left / 2 - errors_left;
            section("first errors", self.errors.iter(), summary);
        }
        let mut shown = 0;
        while shown < self.last.len()
            && take_room(&mut left, &self.last[self.last.len() - 1 - shown])
        {
            shown += 1;
        }
        section(
            "last lines",
            self.last.iter().skip(self.last.len() - shown),
            summary,
        );
    }
}

fn section<'a>(name: &str, lines: impl ExactSizeIterator<Item = &'a String>, summary: &mut String) {
    if lines.len() == 0 {
        return;
    }
    let _ = write!(summary, "\n\n{name}:");
    for line in lines {
        let _ = write!(summary, "\n{line}");
    }
}

/// Takes the room for a line, if there is as much.
fn take_room(left: &mut usize, line: &str) -> bool {
    let has_room = line.len() < *left;
    if has_room {
        *left -= line.len() + 1;
    }
    has_room
}

#[cfg(test)]
mod tests;
