//! The names of keys, as tmux has them, and the bytes that a terminal sends for them.

/// The keys with a name of their own.
const KEYS: [(&str, &str); 30] = [
    ("enter", "\r"),
    ("tab", "\t"),
    ("btab", "\x1b[Z"),
    ("escape", "\x1b"),
    ("space", " "),
    ("bspace", "\x7f"),
    ("up", "\x1b[A"),
    ("down", "\x1b[B"),
    ("right", "\x1b[C"),
    ("left", "\x1b[D"),
    ("home", "\x1b[H"),
    ("end", "\x1b[F"),
    ("insert", "\x1b[2~"),
    ("delete", "\x1b[3~"),
    ("pageup", "\x1b[5~"),
    ("pgup", "\x1b[5~"),
    ("pagedown", "\x1b[6~"),
    ("pgdn", "\x1b[6~"),
    ("f1", "\x1bOP"),
    ("f2", "\x1bOQ"),
    ("f3", "\x1bOR"),
    ("f4", "\x1bOS"),
    ("f5", "\x1b[15~"),
    ("f6", "\x1b[17~"),
    ("f7", "\x1b[18~"),
    ("f8", "\x1b[19~"),
    ("f9", "\x1b[20~"),
    ("f10", "\x1b[21~"),
    ("f11", "\x1b[23~"),
    ("f12", "\x1b[24~"),
];

/// The bytes that a terminal sends for a key: `C-c` (Ctrl-C), `M-x` (Alt-X), a single character, or a name such
/// as `Enter`, `Tab`, `Escape`, `Up` or `F1`. `None`: there is no such key.
///
/// ```
/// assert_eq!(heeler_client::key_bytes("C-c"), Some(vec![3]));
/// ```
pub fn key_bytes(name: &str) -> Option<Vec<u8>> {
    if let Some(letter) = name.strip_prefix("C-") {
        return control(letter);
    }
    if let Some(rest) = name.strip_prefix("M-") {
        return Some([b"\x1b", key_bytes(rest)?.as_slice()].concat());
    }
    let lower = name.to_ascii_lowercase();
    let named = KEYS.iter().find(|(name, _)| *name == lower);
    match (named, name.chars().count()) {
        (Some((_, bytes)), _) => Some(bytes.as_bytes().to_vec()),
        (None, 1) => Some(name.as_bytes().to_vec()),
        (None, _) => None,
    }
}

fn control(letter: &str) -> Option<Vec<u8>> {
    match letter.to_ascii_uppercase().as_bytes() {
        [byte @ (b'@'..=b'_')] => Some(vec![byte & 0x1f]),
        b"?" => Some(vec![0x7f]),
        b"SPACE" => Some(vec![0]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I5
    #[test]
    fn a_key_is_the_bytes_that_a_terminal_sends() {
        let bytes = |text| key_bytes(text).unwrap();
        assert_eq!(bytes("C-c"), [3]);
        assert_eq!(bytes("C-D"), [4]);
        assert_eq!(bytes("C-["), bytes("Escape"));
        assert_eq!(bytes("Enter"), b"\r");
        assert_eq!(bytes("M-x"), b"\x1bx");
        assert_eq!(bytes("up"), b"\x1b[A");
        assert_eq!(bytes("é"), "é".as_bytes());
        for text in ["", "C-", "C-cc", "nokey", "M-"] {
            assert!(key_bytes(text).is_none(), "{text:?}");
        }
    }
}
