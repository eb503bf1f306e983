//! The progress of a worker.

use heeler_proto::v1::{Block, BlockKind, ProgressUpdate};

/// The length at which the daemon cuts the text of a block. It is cut here, so that it does not travel.
const TEXT: usize = 4 * 1024;

/// A change of a task's progress.
///
/// ```
/// use heeler_client::Progress;
///
/// let step = Progress::new()
///     .intent("reads the tests")
///     .percent(40)
///     .tool_call("grep", "-rn TODO");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress(ProgressUpdate);

impl Progress {
    pub fn new() -> Self {
        Self::default()
    }

    /// The present activity in one line.
    pub fn intent(mut self, intent: impl Into<String>) -> Self {
        self.0.intent = Some(intent.into());
        self
    }

    /// The part that is done, from 0 to 100.
    pub fn percent(mut self, percent: u32) -> Self {
        self.0.percent = Some(percent);
        self
    }

    /// A counter. The counters of one change replace all earlier ones.
    pub fn count(mut self, name: impl Into<String>, count: u64) -> Self {
        self.0.counts.insert(name.into(), count);
        self
    }

    /// Text that the worker has written.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(BlockKind::Text, "", text)
    }

    /// The worker's reasoning.
    pub fn thought(self, text: impl Into<String>) -> Self {
        self.block(BlockKind::Thought, "", text)
    }

    /// The call of a tool.
    pub fn tool_call(self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.block(BlockKind::ToolCall, name, arguments)
    }

    /// The result of a tool.
    pub fn tool_result(self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.block(BlockKind::ToolResult, name, text)
    }

    /// Anything else.
    pub fn note(self, text: impl Into<String>) -> Self {
        self.block(BlockKind::Note, "", text)
    }

    fn block(mut self, kind: BlockKind, name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut text = text.into();
        let text_bytes = text.len() as u64;
        text.truncate(text.floor_char_boundary(TEXT));
        self.0.blocks.push(Block {
            kind: kind.into(),
            text,
            text_bytes,
            name: name.into(),
            ..Block::default()
        });
        self
    }
}

impl From<Progress> for ProgressUpdate {
    fn from(progress: Progress) -> Self {
        progress.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P1
    #[test]
    fn a_long_text_is_cut_at_a_character_before_it_is_sent() {
        let update = ProgressUpdate::from(Progress::new().note("é".repeat(TEXT)));
        assert_eq!(update.blocks[0].text.len(), TEXT);
        assert_eq!(update.blocks[0].text_bytes, 2 * TEXT as u64);
    }
}
