//! Output that is missing, in words.

use heeler_client::v1::{OutputChunk, OutputGap, OutputGapCause, output_chunk::Content};

use super::units;

/// A clause such as `336.0 MiB of output are not kept (offsets 1048576 to 353370112)`.
pub(crate) fn clause(offset: u64, gap: &OutputGap) -> String {
    let end = offset.saturating_add(gap.length);
    let size = match gap.lines {
        Some(lines) => format!("{lines} lines ({})", units::size(gap.length)),
        None => units::size(gap.length),
    };
    let fate = match gap.cause() {
        OutputGapCause::Unspecified | OutputGapCause::Rotated | OutputGapCause::Truncated => {
            "not kept"
        }
        OutputGapCause::Lost => "lost",
        OutputGapCause::Omitted => "left out",
    };
    format!("{size} of output are {fate} (offsets {offset} to {end})")
}

/// The gap that a chunk stands for.
pub(crate) fn of(chunk: &OutputChunk) -> Option<OutputGap> {
    match &chunk.content {
        Some(Content::Gap(gap)) => Some(*gap),
        Some(Content::Data(_) | Content::Text(_)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O17
    #[test]
    fn a_gap_is_described_by_its_size_and_its_offsets() {
        let gap = |cause: OutputGapCause| OutputGap {
            length: 336 << 20,
            cause: cause.into(),
            lines: None,
        };
        assert_eq!(
            clause(1 << 20, &gap(OutputGapCause::Rotated)),
            "336.0 MiB of output are not kept (offsets 1048576 to 353370112)"
        );
        let lost = clause(0, &gap(OutputGapCause::Lost));
        assert!(lost.contains("are lost"), "{lost}");
        let omitted = OutputGap {
            lines: Some(7),
            ..gap(OutputGapCause::Omitted)
        };
        let omitted = clause(0, &omitted);
        assert!(
            omitted.starts_with("7 lines (336.0 MiB) of output are left out"),
            "{omitted}"
        );
    }
}
