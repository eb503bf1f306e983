//! The key that detaches a task from `run` or `attach`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetachKey {
    /// The byte that the terminal sends for the key.
    Byte(u8),
    /// No key is read.
    None,
}

const EXPECTED: &str = "expected ctrl- and a letter, such as ctrl-b, or none";

/// Parses `ctrl-b` and the like, or `none`.
pub(crate) fn parse(text: &str) -> Result<DetachKey, String> {
    let lower = text.to_ascii_lowercase();
    match lower.strip_prefix("ctrl-").map(str::as_bytes) {
        // Signals, line ends and flow control.
        Some([b'c' | b'z' | b'm' | b'j' | b's' | b'q']) => {
            Err("the terminal uses this key itself; choose another letter".to_owned())
        }
        Some([letter @ b'a'..=b'z']) => Ok(DetachKey::Byte(letter & 0x1f)),
        None if lower == "none" => Ok(DetachKey::None),
        Some(_) | None => Err(EXPECTED.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_byte_that_the_terminal_sends() {
        assert_eq!(parse("ctrl-b"), Ok(DetachKey::Byte(2)));
        assert_eq!(parse("Ctrl-P"), Ok(DetachKey::Byte(16)));
        assert_eq!(parse("none"), Ok(DetachKey::None));
        for text in ["", "b", "ctrl-", "ctrl-c", "ctrl-bb", "ctrl-1"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
