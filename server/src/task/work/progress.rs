//! The progress of a task: its latest blocks, and a summary of all that was reported.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::task::Timestamp;

/// The number of blocks that are kept of each task.
pub(crate) const LATEST_BLOCKS: usize = 64;
/// Maximum length of a block's text, of its name and of the intent. Longer ones are cut.
const TEXT: usize = 4 * 1024;
const NAME: usize = 256;
const INTENT: usize = 1024;

/// The progress of a task, without its blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// The present activity; empty if the worker has not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub intent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
    /// Counters of the worker's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// The number of all blocks reported.
    pub blocks: u64,
    /// The time of the latest report.
    pub at: Timestamp,
}

/// One piece of a worker's progress, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// 1 for the first block of the task.
    pub(crate) number: u64,
    pub(crate) block: NewBlock,
    pub(crate) at: Timestamp,
}

/// One piece of a worker's progress, as it is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewBlock {
    pub(crate) kind: BlockKind,
    pub(crate) text: String,
    /// The length of the text before it was cut.
    pub(crate) text_bytes: u64,
    /// The name of the tool.
    pub(crate) name: String,
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BlockKind {
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Note,
}

/// A change of a task's progress; `None` keeps a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ProgressUpdate {
    /// The latest of the new blocks, at most as many as are kept.
    blocks: Vec<NewBlock>,
    /// The number of new blocks that came before them and are not kept.
    skipped: u64,
    intent: Option<String>,
    percent: Option<u32>,
    /// Empty: they stay as they are.
    counts: BTreeMap<String, u64>,
}

/// The origin of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportedBy {
    /// A call that is not numbered.
    Call,
    /// A connected worker, which numbers its reports.
    Worker { id: Uuid, sequence: u64 },
}

/// A change of a task's progress and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) update: ProgressUpdate,
    pub(crate) by: ReportedBy,
}

impl NewBlock {
    /// A block with its text and name cut. `text_bytes` is the length that the client has named.
    pub(crate) fn new(kind: BlockKind, text: String, text_bytes: u64, name: String) -> Self {
        Self {
            kind,
            text_bytes: text_bytes.max(text.len() as u64),
            text: cut(text, TEXT),
            name: cut(name, NAME),
        }
    }
}

impl ProgressUpdate {
    pub(crate) fn new(
        blocks: Vec<NewBlock>,
        intent: Option<String>,
        percent: Option<u32>,
        counts: BTreeMap<String, u64>,
    ) -> Self {
        let mut update = Self {
            blocks,
            skipped: 0,
            intent: intent.map(|intent| cut(intent, INTENT)),
            percent,
            counts,
        };
        update.skip_old_blocks();
        update
    }

    /// Adds a later change. The effect is that of both, one after the other.
    pub(crate) fn merge(&mut self, later: Self) {
        self.skipped += later.skipped;
        if later.skipped > 0 {
            self.skipped += self.blocks.len() as u64;
            self.blocks.clear();
        }
        self.blocks.extend(later.blocks);
        self.skip_old_blocks();
        self.intent = later.intent.or(self.intent.take());
        self.percent = later.percent.or(self.percent);
        if !later.counts.is_empty() {
            self.counts = later.counts;
        }
    }

    fn skip_old_blocks(&mut self) {
        let old = self.blocks.len().saturating_sub(LATEST_BLOCKS);
        self.skipped += old as u64;
        self.blocks.drain(..old);
    }

    /// Changes the summary, and returns the blocks to keep, with their numbers.
    pub(crate) fn apply(&self, progress: &mut Progress, at: Timestamp) -> Vec<Block> {
        let first = progress.blocks.saturating_add(self.skipped) + 1;
        progress.blocks = first - 1 + self.blocks.len() as u64;
        progress.at = at;
        if let Some(intent) = &self.intent {
            progress.intent.clone_from(intent);
        }
        progress.percent = self.percent.or(progress.percent);
        if !self.counts.is_empty() {
            progress.counts.clone_from(&self.counts);
        }
        let numbered = (first..).zip(self.blocks.iter().cloned());
        numbered
            .map(|(number, block)| Block { number, block, at })
            .collect()
    }
}

/// Cuts a text at the end of a character.
fn cut(mut text: String, limit: usize) -> String {
    text.truncate(text.floor_char_boundary(limit));
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn note(text: &str) -> NewBlock {
        NewBlock::new(BlockKind::Note, text.to_owned(), 0, String::new())
    }

    fn update(blocks: Vec<NewBlock>) -> ProgressUpdate {
        ProgressUpdate::new(blocks, None, None, BTreeMap::new())
    }

    /// P1
    #[test]
    fn a_text_is_cut_at_the_end_of_a_character_and_keeps_its_length() {
        let text = "é".repeat(TEXT);
        let block = note(&text);
        assert_eq!(block.text.len(), TEXT);
        assert_eq!(block.text_bytes, 2 * TEXT as u64);
        let block = note(&format!("a{text}"));
        assert_eq!(block.text.len(), TEXT - 1, "the last character is whole");
        let cut_by_client = NewBlock::new(BlockKind::Text, "ab".into(), 1000, String::new());
        assert_eq!(cut_by_client.text_bytes, 1000);
    }

    /// P1
    #[test]
    fn only_the_latest_blocks_are_kept_and_all_are_counted() {
        let many = (0..100).map(|number| note(&number.to_string())).collect();
        let mut progress = Progress::default();
        let kept = update(many).apply(&mut progress, Timestamp(7));
        assert_eq!(progress.blocks, 100);
        assert_eq!(kept.len(), LATEST_BLOCKS);
        assert_eq!((kept[0].number, &*kept[0].block.text), (37, "36"));
        let next = update(vec![note("next")]).apply(&mut progress, Timestamp(8));
        assert_eq!(next[0].number, 101);
    }

    #[test]
    fn an_absent_field_changes_nothing() {
        let mut progress = Progress::default();
        let counts = BTreeMap::from([("tokens".to_owned(), 5)]);
        let all = ProgressUpdate::new(Vec::new(), Some("read".into()), Some(40), counts);
        all.apply(&mut progress, Timestamp(1));
        update(Vec::new()).apply(&mut progress, Timestamp(2));
        assert_eq!((&*progress.intent, progress.percent), ("read", Some(40)));
        assert_eq!(progress.counts["tokens"], 5);
        assert_eq!(progress.at, Timestamp(2));
    }

    fn any_update() -> impl Strategy<Value = ProgressUpdate> {
        let blocks = prop::collection::vec("[a-z]{0,3}".prop_map(|text| note(&text)), 0..100);
        let counts = prop::collection::btree_map("[ab]", 0..9_u64, 0..3);
        let intent = prop::option::of("[a-z]{0,3}");
        (blocks, intent, prop::option::of(0..=100_u32), counts).prop_map(
            |(blocks, intent, percent, counts)| {
                ProgressUpdate::new(blocks, intent, percent, counts)
            },
        )
    }

    proptest! {
        /// P9: a worker that reports faster than the disk loses nothing by it.
        #[test]
        fn merged_updates_have_the_effect_of_both(first in any_update(), later in any_update()) {
            let (mut apart, mut together) = (Progress::default(), Progress::default());
            let mut kept = first.apply(&mut apart, Timestamp(1));
            kept.extend(later.apply(&mut apart, Timestamp(1)));
            let mut merged = first;
            merged.merge(later);
            let merged = merged.apply(&mut together, Timestamp(1));
            prop_assert_eq!(&together, &apart);
            // Older blocks have lost their places to newer ones.
            let oldest = apart.blocks.saturating_sub(LATEST_BLOCKS as u64);
            kept.retain(|block| block.number > oldest);
            prop_assert_eq!(merged, kept);
        }
    }
}
