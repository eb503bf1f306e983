//! The patterns of a task: changes to them, and the lines that match.

use super::{Effect, Life};
use crate::task::{EventKind, FoundLines, Match, Moment, Monotonic, Pattern, Task};

/// A change of a task's patterns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PatternChange {
    /// Patterns to add, or to put in the place of those with their names.
    pub(crate) set: Vec<Pattern>,
    /// The names of patterns to remove.
    pub(crate) remove: Vec<String>,
}

/// The lines of one pattern that a search has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::supervisor) struct PatternFound {
    pub(in crate::supervisor) name: String,
    pub(in crate::supervisor) found: FoundLines,
    /// The lines that end up to here were searched.
    pub(in crate::supervisor) searched: u64,
}

impl PatternChange {
    /// The patterns after the change.
    pub(in crate::supervisor) fn apply(&self, patterns: &[Pattern]) -> Vec<Pattern> {
        let is_kept = |pattern: &&Pattern| !self.remove.contains(&pattern.name);
        let mut changed: Vec<_> = patterns.iter().filter(is_kept).cloned().collect();
        for pattern in &self.set {
            match changed.iter_mut().find(|kept| kept.name == pattern.name) {
                Some(kept) => *kept = pattern.clone(),
                None => changed.push(pattern.clone()),
            }
        }
        changed
    }
}

impl Life {
    /// The time from which on lines of a pattern may be told; `None`: never.
    pub(in crate::supervisor) fn match_due(&self, name: &str) -> Option<Monotonic> {
        let pattern = pattern(&self.task, name)?;
        let matches = self.task.matches_of(pattern);
        let since = |last: Monotonic| last.saturating_add(pattern.cooldown);
        let due = matches.last_event.map_or(Monotonic(0), since);
        (matches.events < pattern.max_events).then_some(due)
    }

    pub(super) fn matched(&mut self, found: PatternFound, now: Moment) -> Vec<Effect> {
        let due = self.match_due(&found.name);
        if due.is_none_or(|due| now.mono < due) {
            return Vec::new();
        }
        let event = Match {
            pattern: found.name.clone(),
            count: found.found.count,
            lines: found.found.lines.clone(),
        };
        let name = found.name.clone();
        self.searched(found);
        if let Some(matches) = self.task.matches.get_mut(&name) {
            matches.events += 1;
            matches.last_event = Some(now.mono);
        }
        self.task.last_match = Some(event);
        vec![Effect::Record(EventKind::Matched)]
    }

    /// Counts what was found, without an event.
    pub(super) fn searched(&mut self, found: PatternFound) -> Vec<Effect> {
        let PatternFound {
            name,
            found,
            searched,
        } = found;
        let Some(pattern) = pattern(&self.task, &name) else {
            return Vec::new();
        };
        let mut matches = self.task.matches_of(pattern);
        matches.count += found.count;
        matches.last_offset = found.last_offset.or(matches.last_offset);
        matches.searched = matches.searched.max(searched);
        self.task.matches.insert(name, matches);
        Vec::new()
    }

    pub(super) fn patterns_changed(&mut self, change: &PatternChange) -> Vec<Effect> {
        let task = &mut self.task;
        let patterns = change.apply(&task.spec.output.patterns);
        if patterns == task.spec.output.patterns {
            return Vec::new();
        }
        task.matches.retain(|name, _| {
            let of = |patterns: &[Pattern]| patterns.iter().find(|of| of.name == *name).cloned();
            of(&patterns) == of(&task.spec.output.patterns)
        });
        let mut spec = (*task.spec).clone();
        spec.output.patterns = patterns;
        task.spec = spec.into();
        vec![Effect::Record(EventKind::Updated)]
    }
}

fn pattern<'a>(task: &'a Task, name: &str) -> Option<&'a Pattern> {
    let patterns = &task.spec.output.patterns;
    patterns.iter().find(|pattern| pattern.name == name)
}
