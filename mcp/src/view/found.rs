//! Lines that a search has found, within the bounds of an answer: the daemon returns whole lines of up to 64 KiB.

use heeler_client::v1::{OutputChunk, output_chunk::Content};

use super::{Limit, bytes};

/// The room for a note in a line.
const NOTE: usize = 32;

/// Cuts the longest lines, so that all of them fit.
pub(crate) fn cut_lines(lines: &mut [OutputChunk], limit: Limit) {
    let lengths: Vec<usize> = lines.iter().filter_map(text).map(String::len).collect();
    let Some(longest) = longest(lengths, limit.bytes() as usize) else {
        return;
    };
    for line in lines {
        if let Some(Content::Text(text)) = &mut line.content {
            cut(text, longest);
        }
    }
}

/// The length to which lines are cut; `None` if they fit.
fn longest(mut lengths: Vec<usize>, mut room: usize) -> Option<usize> {
    lengths.sort_unstable();
    for (index, length) in lengths.iter().enumerate() {
        let share = room / (lengths.len() - index);
        if *length > share {
            return Some(share);
        }
        room -= length;
    }
    None
}

/// Cuts the end of a line, and says how much that is.
fn cut(line: &mut String, longest: usize) {
    if line.len() <= longest {
        return;
    }
    let kept = line.floor_char_boundary(longest.saturating_sub(NOTE));
    let left_out = bytes((line.len() - kept) as u64);
    line.truncate(kept);
    line.push_str(&format!("[… {left_out} of this line]\n"));
}

fn text(line: &OutputChunk) -> Option<&String> {
    match &line.content {
        Some(Content::Text(text)) => Some(text),
        Some(Content::Data(_) | Content::Gap(_)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: &[String], limit: u32) -> Vec<String> {
        let chunk = |line: &String| OutputChunk {
            content: Some(Content::Text(line.clone())),
            ..OutputChunk::default()
        };
        let mut chunks: Vec<_> = lines.iter().map(chunk).collect();
        cut_lines(&mut chunks, Limit::of(Some(limit)));
        chunks.iter().filter_map(text).cloned().collect()
    }

    /// M3
    #[test]
    fn the_longest_lines_are_cut_and_the_others_kept() {
        let line = |length| "x".repeat(length) + "\n";
        let short = [line(10), line(20)];
        assert_eq!(found(&short, 32), short);
        let long = found(&[line(10), line(60_000), line(400), line(50_000)], 2048);
        assert_eq!((&long[0], &long[2]), (&line(10), &line(400)));
        assert!(
            long[1].ends_with("x[… 59 kB of this line]\n"),
            "{}",
            long[1]
        );
        let total: usize = long.iter().map(String::len).sum();
        assert!(total <= 2048, "{total}");
        let many = found(&vec![line(60_000); 41], 1024);
        assert!(many.concat().len() <= 41 * 32, "{many:?}");
        let wide = found(&["ä".repeat(2000)], 1024);
        assert!(wide.concat().len() <= 1024, "{wide:?}");
    }
}
