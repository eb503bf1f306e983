//! The progress that a worker has reported, and its result.

use heeler_client::v1::{BackgroundTask, Block, BlockKind, Progress, WorkerResult};

use super::{outcome, status, text, units};

/// The present activity of a live task, as its worker has said; empty if it has not.
pub(crate) fn intent(task: &BackgroundTask) -> &str {
    let progress = task
        .progress
        .as_ref()
        .filter(|_| !status::is_finished(task));
    progress.map_or("", |progress| &progress.intent)
}

/// A clause, such as `40% reads the tests (12 blocks)`.
pub(crate) fn clause(progress: &Progress) -> String {
    let percent = progress.percent.map(|percent| format!("{percent}% "));
    let blocks = match progress.block_count {
        0 => String::new(),
        1 => " (1 block)".to_owned(),
        count => format!(" ({count} blocks)"),
    };
    let clause = format!("{}{}{blocks}", percent.unwrap_or_default(), progress.intent);
    clause.trim().to_owned()
}

/// The counters, such as `tokens=1200 tool_calls=7`.
pub(crate) fn counts(progress: &Progress) -> String {
    let counts = progress.counts.iter();
    let counts: Vec<String> = counts
        .map(|(name, count)| format!("{name}={count}"))
        .collect();
    counts.join(" ")
}

/// The lines of one block: its time, kind and tool, then its text.
pub(crate) fn block_lines(block: &Block) -> Vec<String> {
    let at = block.block_time.map(units::timestamp).unwrap_or_default();
    let kind = match block.kind() {
        BlockKind::Unspecified | BlockKind::Note => "note",
        BlockKind::Text => "text",
        BlockKind::Thought => "thought",
        BlockKind::ToolCall => "tool call",
        BlockKind::ToolResult => "tool result",
    };
    let name = text::visible(&block.name);
    let heading = format!("  {at} {kind} {name}");
    let mut lines = vec![heading.trim_end().to_owned()];
    for line in block.text.lines() {
        lines.push(format!("  | {}", text::visible(line)));
    }
    let shown = block.text.len() as u64;
    if block.text_bytes > shown {
        lines.push(format!("  | ... ({shown} of {} bytes)", block.text_bytes));
    }
    lines
}

/// The lines of a result: its status, then its text.
pub(crate) fn result_lines(result: &WorkerResult) -> Vec<String> {
    let data = match result.data.len() {
        0 => String::new(),
        bytes => format!(", {bytes} bytes of data"),
    };
    let status = outcome::worker_status(result.status);
    let mut lines = vec![format!("result: {status}{data}")];
    let text = result.text.lines();
    lines.extend(text.map(|line| format!("  | {}", text::visible(line))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P9
    #[test]
    fn progress_is_one_clause_without_what_is_absent() {
        let mut progress = Progress::default();
        assert_eq!(clause(&progress), "");
        progress.intent = "reads".to_owned();
        assert_eq!(clause(&progress), "reads");
        progress.percent = Some(40);
        progress.block_count = 12;
        assert_eq!(clause(&progress), "40% reads (12 blocks)");
    }

    /// P1, S10
    #[test]
    fn a_block_shows_that_it_was_cut_and_no_escapes() {
        let block = Block {
            kind: BlockKind::ToolCall.into(),
            name: "bash".to_owned(),
            text: "ls\n\u{1b}[2J".to_owned(),
            text_bytes: 99,
            ..Block::default()
        };
        let lines = block_lines(&block);
        assert_eq!(lines[0].trim(), "tool call bash");
        assert_eq!(lines[1], "  | ls");
        assert!(!lines[2].contains('\u{1b}'), "{lines:?}");
        assert_eq!(lines[3], "  | ... (7 of 99 bytes)");
    }
}
