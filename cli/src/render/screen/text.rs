//! Untrusted text on a terminal: escaped, measured and cut by its columns.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Escapes every character that could move the cursor, hide text or change its direction.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hostile(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Control characters, line separators, joiners, invisible characters and direction marks.
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The number of terminal columns.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts the text to this many columns; an ellipsis stands for the rest.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        shown.push(c);
    }
    if columns > 0 {
        shown.push('…');
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S10
    #[test]
    fn escape_codes_newlines_and_direction_marks_are_escaped() {
        assert_eq!(visible("\x1b[2Jhi\r\n"), "\\u{1b}[2Jhi\\r\\n");
        assert_eq!(visible("a\u{202e}b\u{9b}c"), "a\\u{202e}b\\u{9b}c");
        assert_eq!(visible("plain é 漢"), "plain é 漢");
    }

    #[test]
    fn text_is_cut_by_columns_not_by_bytes() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello!", 5), "hell…");
        assert_eq!(cut("漢漢漢", 5), "漢漢…");
        assert_eq!(cut("漢漢漢", 4), "漢…");
        assert_eq!(cut("hello", 0), "");
    }

    #[test]
    fn ten_kilobytes_are_cut_to_ten_columns() {
        assert_eq!(width(&cut(&"x".repeat(10_000), 10)), 10);
    }
}
