//! Other people's text on our terminal: made harmless, and cut by what it looks like.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with everything escaped that could move the cursor, hide, or pose as something else.
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

/// Control characters, and those that break lines, join, hide or turn the direction of text.
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// How many columns it takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// At most this many columns of it; what is missing is shown by an ellipsis.
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
    fn escapes_newlines_and_direction_marks_are_shown_not_obeyed() {
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
    fn ten_kilobytes_fit_ten_columns() {
        assert_eq!(width(&cut(&"x".repeat(10_000), 10)), 10);
    }
}
