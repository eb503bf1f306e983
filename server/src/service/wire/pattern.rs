//! The patterns of a task, in and out, and the lines that match them.

use std::time::Duration;

use heeler_proto::v1;

use super::{check, convert, output, refusal::Refusal};
use crate::task::{
    DEFAULT_COOLDOWN, DEFAULT_EVENTS, LinePlace, MOST_PATTERNS, Match, Pattern, Task,
};

const LONGEST_COOLDOWN: Duration = Duration::from_secs(24 * 3600);
const MOST_EVENTS: u32 = 10_000;

/// Reads patterns, whose names must be unique.
pub(crate) fn read_all(
    field: &str,
    patterns: Vec<v1::OutputPattern>,
) -> Result<Vec<Pattern>, Refusal> {
    if patterns.len() > MOST_PATTERNS {
        let problem = format!("has more than {MOST_PATTERNS} patterns");
        return Err(Refusal::field(field, problem));
    }
    let mut read: Vec<Pattern> = Vec::with_capacity(patterns.len());
    for (at, pattern) in patterns.into_iter().enumerate() {
        let field = format!("{field}[{at}]");
        if read.iter().any(|earlier| earlier.name == pattern.name) {
            return Err(Refusal::field(
                format!("{field}.name"),
                "is the name of an earlier pattern",
            ));
        }
        read.push(read_one(&field, pattern)?);
    }
    Ok(read)
}

fn read_one(field: &str, pattern: v1::OutputPattern) -> Result<Pattern, Refusal> {
    let below = |name: &str| format!("{field}.{name}");
    let name = check::optional_text(&below("name"), pattern.name, check::SHORT_TEXT)?;
    output::required_pattern(&below("regex"), &pattern.regex)?;
    let cooldown = check::optional_duration(&below("cooldown"), pattern.cooldown)?;
    let cooldown = cooldown.unwrap_or(DEFAULT_COOLDOWN);
    if cooldown > LONGEST_COOLDOWN {
        return Err(Refusal::field(below("cooldown"), "is longer than a day"));
    }
    let max_events = match pattern.max_events {
        0 => DEFAULT_EVENTS,
        events if events > MOST_EVENTS => {
            let problem = format!("is more than {MOST_EVENTS}");
            return Err(Refusal::field(below("max_events"), problem));
        }
        events => events,
    };
    Ok(Pattern {
        name: name.ok_or_else(|| Refusal::field(below("name"), "is required"))?,
        regex: pattern.regex,
        stream: output::stream(&below("stream"), pattern.stream)?,
        cooldown,
        max_events,
        from_offset: pattern.from_offset,
    })
}

pub(crate) fn show(pattern: &Pattern) -> v1::OutputPattern {
    let stream = pattern.stream.map(convert::stream);
    v1::OutputPattern {
        name: pattern.name.clone(),
        regex: pattern.regex.clone(),
        stream: stream.unwrap_or(v1::OutputStream::Unspecified).into(),
        cooldown: Some(convert::duration(pattern.cooldown)),
        max_events: pattern.max_events,
        from_offset: pattern.from_offset,
    }
}

/// Shows the matches of each pattern of a task.
pub(crate) fn show_matches(task: &Task) -> Vec<v1::PatternMatches> {
    let show = |pattern: &Pattern| {
        let matches = task.matches_of(pattern);
        v1::PatternMatches {
            name: pattern.name.clone(),
            count: matches.count,
            events: matches.events,
            last_offset: matches.last_offset,
            searched_offset: matches.searched,
        }
    };
    task.spec.output.patterns.iter().map(show).collect()
}

/// Shows the lines that an event tells of, with the text of each that is still there.
pub(crate) fn show_match(matched: &Match, texts: &[Option<String>]) -> v1::OutputMatch {
    let text = |at: usize| texts.get(at).cloned().flatten();
    let lines = matched.lines.iter().enumerate();
    v1::OutputMatch {
        pattern: matched.pattern.clone(),
        count: matched.count,
        suppressed: matched.count.saturating_sub(matched.lines.len() as u64),
        lines: lines.map(|(at, line)| show_line(line, text(at))).collect(),
    }
}

pub(crate) fn show_line(line: &LinePlace, text: Option<String>) -> v1::MatchedLine {
    v1::MatchedLine {
        offset: line.offset,
        stream: convert::stream(line.stream).into(),
        text,
    }
}
