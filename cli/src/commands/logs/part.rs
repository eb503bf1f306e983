//! The part of the output that `heeler logs` prints: its flags, and the requests that they make.

use std::time::{Duration, SystemTime};

use clap::Args;
use heeler_client::v1::{
    FollowOutputRequest, HeadAndTail, OutputFilter, OutputStream, OutputView, ReadOutputRequest,
    follow_output_request, head_and_tail, read_output_request,
};
use prost_types::Timestamp;

use crate::{
    args::{selection, value::duration},
    failure::Failure,
};

/// The number of bytes in a page.
const PAGE: u32 = 256 << 10;

#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// Only the last N lines
    #[arg(short = 'n', long, visible_alias = "tail", value_name = "N")]
    lines: Option<u32>,

    /// Only the first N lines; with -n, the first and the last ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "follow")]
    head: Option<u32>,

    /// Only output of the last T, e.g. 5m
    #[arg(long, value_name = "T", value_parser = duration::parse)]
    since: Option<Duration>,

    /// Only stdout
    #[arg(long)]
    stdout: bool,

    /// Only stderr
    #[arg(long)]
    stderr: bool,

    /// Only lines that match this regular expression; (?i) ignores case
    #[arg(long, value_name = "RE", value_parser = selection::not_empty())]
    grep: Option<String>,

    /// Only lines that do not match it
    #[arg(short = 'v', long, requires = "grep", conflicts_with_all = ["after_context", "before_context", "context"])]
    invert_match: bool,

    /// Also N lines after each match
    #[arg(short = 'A', long, value_name = "N", requires = "grep")]
    after_context: Option<u32>,

    /// Also N lines before each match
    #[arg(short = 'B', long, value_name = "N", requires = "grep")]
    before_context: Option<u32>,

    /// Also N lines before and after each match
    #[arg(short = 'C', long, value_name = "N", requires = "grep")]
    context: Option<u32>,

    /// Remove terminal escape sequences
    #[arg(long)]
    strip_ansi: bool,
}

/// A part of the output of each task.
#[derive(Debug, Clone)]
pub(super) struct Part {
    start: Start,
    /// Earlier output is not printed. Only with a start by lines.
    pub(super) not_before: Option<Timestamp>,
    max_lines: u32,
    filter: Option<OutputFilter>,
    view: OutputView,
    pub(super) streams: Streams,
}

#[derive(Debug, Clone, Copy)]
enum Start {
    First,
    LastLines(u32),
    Since(Timestamp),
    HeadAndTail { head: u32, tail: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streams {
    Both,
    Only(OutputStream),
}

impl PartArgs {
    pub(super) fn part(&self) -> Result<Part, Failure> {
        let filter = self.filter();
        let since = self.since.and_then(|since| {
            let at = SystemTime::now().checked_sub(since)?;
            Some(Timestamp::from(at))
        });
        let start = match (self.head, self.lines, since) {
            (Some(_), Some(_), since) if filter.is_some() || since.is_some() => {
                let text = "--head with -n cannot be combined with --grep, --since, --stdout and --stderr; \
                            use one of them";
                return Err(Failure::Usage(text.to_owned()));
            }
            (Some(head), Some(tail), _) => Start::HeadAndTail { head, tail },
            (None, Some(lines), _) => Start::LastLines(lines),
            (_, None, Some(since)) => Start::Since(since),
            (_, None, None) => Start::First,
        };
        Ok(Part {
            not_before: since.filter(|_| self.lines.is_some()),
            max_lines: self.head.filter(|_| self.lines.is_none()).unwrap_or(0),
            start,
            filter,
            view: match self.strip_ansi {
                true => OutputView::Plain,
                false => OutputView::Raw,
            },
            streams: self.streams(),
        })
    }

    fn filter(&self) -> Option<OutputFilter> {
        let stream = match self.streams() {
            Streams::Both => OutputStream::Unspecified,
            Streams::Only(stream) => stream,
        };
        let regex = self.grep.clone().unwrap_or_default();
        let (include, exclude) = match self.invert_match {
            true => (String::new(), regex),
            false => (regex, String::new()),
        };
        let around = self.context.unwrap_or(0);
        let filter = OutputFilter {
            stream: stream.into(),
            include,
            exclude,
            lines_before: self.before_context.unwrap_or(around),
            lines_after: self.after_context.unwrap_or(around),
        };
        (filter != OutputFilter::default()).then_some(filter)
    }

    fn streams(&self) -> Streams {
        match (self.stdout, self.stderr) {
            (true, false) => Streams::Only(OutputStream::Stdout),
            (false, true) => Streams::Only(OutputStream::Stderr),
            (true, true) | (false, false) => Streams::Both,
        }
    }
}

impl Part {
    /// The request of the first page of one task.
    pub(super) fn of_task(&self, id: &str) -> ReadOutputRequest {
        use read_output_request::Start as Begin;
        let (start, max_bytes) = match self.start {
            Start::First => (Begin::Offset(0), PAGE),
            Start::LastLines(lines) => (Begin::TailLines(lines.into()), PAGE),
            Start::Since(time) => (Begin::Since(time), PAGE),
            Start::HeadAndTail { head, tail } => {
                let parts = HeadAndTail {
                    head: Some(head_and_tail::Head::HeadLines(head)),
                    tail: Some(head_and_tail::Tail::TailLines(tail)),
                };
                (Begin::HeadAndTail(parts), 0)
            }
        };
        ReadOutputRequest {
            task_id: id.to_owned(),
            start: Some(start),
            max_bytes,
            wait: None,
            view: self.view.into(),
            filter: self.filter.clone(),
            max_lines: self.max_lines,
        }
    }

    /// The request of a stream over many tasks, which the caller selects.
    pub(super) fn of_many(&self) -> FollowOutputRequest {
        use follow_output_request::Start as Begin;
        let start = match self.start {
            // clap refuses --head with --follow.
            Start::First | Start::HeadAndTail { .. } => None,
            Start::LastLines(lines) => Some(Begin::TailLines(lines.into())),
            Start::Since(time) => Some(Begin::Since(time)),
        };
        FollowOutputRequest {
            start,
            output_filter: self.filter.clone(),
            view: self.view.into(),
            ..FollowOutputRequest::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::logs::Logs;

    fn part(args: &[&str]) -> Part {
        let logs: Logs = crate::args::parse(args).unwrap();
        logs.part.part().unwrap()
    }

    /// O12
    #[test]
    fn a_search_becomes_a_filter_with_its_context() {
        let filter = |args: &[&str]| part(args).of_task("a").filter;
        assert_eq!(filter(&["a"]), None);
        let found = filter(&["a", "--grep", "x", "-C", "3", "-B", "1"]).unwrap();
        assert_eq!((found.lines_before, found.lines_after), (1, 3));
        let inverted = filter(&["a", "--grep", "x", "-v", "--stderr"]).unwrap();
        assert_eq!((&*inverted.include, &*inverted.exclude), ("", "x"));
        assert_eq!(inverted.stream(), OutputStream::Stderr);
        let refused = |args: &[&str]| crate::args::parse::<Logs>(args).is_err();
        assert!(refused(&["-v"]) && refused(&["-A", "1"]) && refused(&["--grep", ""]));
        assert!(refused(&["--grep", "x", "-v", "-A", "1"]));
    }

    /// O13
    #[test]
    fn head_alone_is_a_number_of_lines_and_with_n_a_view_of_both_ends() {
        let head = part(&["--head", "5"]).of_task("a");
        assert_eq!(head.max_lines, 5);
        let both = part(&["--head", "5", "-n", "3"]).of_task("a");
        assert_eq!((both.max_lines, both.max_bytes), (0, 0));
        let start = read_output_request::Start::HeadAndTail(HeadAndTail {
            head: Some(head_and_tail::Head::HeadLines(5)),
            tail: Some(head_and_tail::Tail::TailLines(3)),
        });
        assert_eq!(both.start, Some(start));
        let refused = |args: &[&str]| {
            let logs = crate::args::parse::<Logs>(args);
            logs.is_err() || logs.is_ok_and(|logs| logs.part.part().is_err())
        };
        assert!(refused(&["--head", "0"]) && refused(&["-f", "--head", "1"]));
        assert!(refused(&["--head", "1", "-n", "1", "--grep", "x"]));
    }
}
