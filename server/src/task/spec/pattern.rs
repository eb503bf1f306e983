//! Patterns that are looked for in a task's output, and what was found. Places in the output alone are
//! kept, never the output itself.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::task::{Monotonic, Stream};

/// Default time between two events of a pattern.
pub(crate) const DEFAULT_COOLDOWN: Duration = Duration::from_secs(1);
/// Default number of events of a pattern.
pub(crate) const DEFAULT_EVENTS: u32 = 100;
/// Maximum number of patterns of a task.
pub(crate) const MOST_PATTERNS: usize = 16;
/// Maximum number of lines that one event tells of.
const EVENT_LINES: usize = 16;

/// A pattern to look for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Unique within the task.
    pub name: String,
    /// A valid regular expression.
    pub regex: String,
    /// Only this stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// Minimum time between two events.
    pub cooldown: Duration,
    /// Maximum number of events.
    pub max_events: u32,
    /// The offset to search from.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub from_offset: u64,
}

/// The matches of one pattern so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PatternMatches {
    /// Lines.
    pub count: u64,
    pub events: u32,
    /// The offset of the latest line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_offset: Option<u64>,
    /// The lines that end up to here were searched, and those that match are counted.
    pub searched: u64,
    /// The time of the latest event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event: Option<Monotonic>,
}

/// Lines that match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// The name of the pattern.
    pub pattern: String,
    /// The number of lines.
    pub count: u64,
    /// The first of them.
    pub lines: Vec<LinePlace>,
}

/// Lines that match and are not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FoundLines {
    pub(crate) count: u64,
    /// The offset of the latest one.
    pub(crate) last_offset: Option<u64>,
    /// The first of them.
    pub(crate) lines: Vec<LinePlace>,
}

impl FoundLines {
    pub(crate) fn add(&mut self, line: LinePlace) {
        self.count += 1;
        self.last_offset = Some(line.offset);
        if self.lines.len() < EVENT_LINES {
            self.lines.push(line);
        }
    }
}

/// The place of a line in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinePlace {
    /// The offset of the first byte.
    pub offset: u64,
    /// The offset after the last byte. The other stream may have bytes between the two.
    pub end: u64,
    pub stream: Stream,
}

impl Pattern {
    /// The state of a pattern that was not searched for yet.
    pub fn unsearched(&self) -> PatternMatches {
        PatternMatches {
            searched: self.from_offset,
            ..PatternMatches::default()
        }
    }
}

/// The matches of each pattern, by its name. A pattern without an entry was not searched for yet.
pub(crate) type MatchesByName = BTreeMap<String, PatternMatches>;

fn is_zero(number: &u64) -> bool {
    *number == 0
}
