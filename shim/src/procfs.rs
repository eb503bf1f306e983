//! Parsers for the texts of `/proc` and of cgroup files. No I/O.

/// The fields of `/proc/<pid>/stat` that a shim uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The kernel's state letter: `Z` and `X` are dead.
    pub state: u8,
    pub parent: u32,
    pub group: u32,
    pub threads: u32,
    /// The start time in clock ticks since boot; with the pid it identifies the process.
    pub start_ticks: u64,
}

impl Stat {
    /// Needs the first 22 fields of the file.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        // The second field is the program's name in parentheses, which may itself contain `) `.
        let name_end = bytes.iter().rposition(|byte| *byte == b')')?;
        let mut fields = bytes.get(name_end + 2..)?.split(|byte| *byte == b' ');
        let state = *fields.next()?.first()?;
        let parent = number(fields.next()?)?;
        let group = number(fields.next()?)?;
        let threads = number(fields.nth(14)?)?;
        let start_ticks = number(fields.nth(1)?)?;
        Some(Self {
            state,
            parent: u32::try_from(parent).ok()?,
            group: u32::try_from(group).ok()?,
            threads: u32::try_from(threads).ok()?,
            start_ticks,
        })
    }

    /// Returns whether the process has ended and waits to be reaped. A process whose first thread
    /// has ended before the others shows the same letter, but has more than one thread.
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

/// The length of a clock tick. The kernel reports 100 ticks a second on both architectures.
const TICK_NANOS: u64 = 10_000_000;

/// Returns the start time in clock ticks of a process that was created between two moments, in
/// nanoseconds since boot. `None` if a tick ends between them: then `/proc/<pid>/stat` must be read,
/// which takes as long as the rest of a start.
pub const fn ticks_between(earlier: u64, later: u64) -> Option<u64> {
    let tick = later / TICK_NANOS;
    if earlier / TICK_NANOS == tick {
        Some(tick)
    } else {
        None
    }
}

/// Reads the process ids of a `children` file, whose text may come in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PidReader {
    value: u32,
}

impl PidReader {
    /// Takes the next byte and returns the pid that it ends. A space follows the last pid as well.
    pub const fn push(&mut self, byte: u8) -> Option<u32> {
        if byte.is_ascii_digit() {
            let digit = (byte - b'0') as u32;
            self.value = self.value.wrapping_mul(10).wrapping_add(digit);
            return None;
        }
        let pid = self.value;
        self.value = 0;
        if pid == 0 { None } else { Some(pid) }
    }
}

/// Returns whether a `cgroup.events` file reports a live member in the cgroup or below it.
pub fn is_populated(events: &[u8]) -> bool {
    events
        .split(|byte| *byte == b'\n')
        .any(|line| line == b"populated 1")
}

/// Parses a UUID in hex, with or without hyphens. Nothing may follow it.
pub fn parse_uuid(text: &[u8]) -> Option<[u8; 16]> {
    let mut out = [0; 16];
    let mut digits = text.iter().filter(|byte| **byte != b'-');
    for byte in &mut out {
        let high = char::from(*digits.next()?).to_digit(16)?;
        let low = char::from(*digits.next()?).to_digit(16)?;
        *byte = (high << 4 | low) as u8;
    }
    digits.next().is_none().then_some(out)
}

/// Parses a decimal number; `None` if it is malformed or too large.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{format, vec::Vec};

    fn line(name: &str) -> std::string::String {
        format!(
            "812 ({name}) S 7 812 811 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 9876543210 11 12 13"
        )
    }

    #[test]
    fn a_stat_line_is_parsed_with_any_program_name() {
        let stat = Stat {
            state: b'S',
            parent: 7,
            group: 812,
            threads: 3,
            start_ticks: 9_876_543_210,
        };
        for name in ["sh", "a) Z 1 (b", "", ") ) )", "sp ace"] {
            assert_eq!(Stat::parse(line(name).as_bytes()), Some(stat), "{name:?}");
        }
        assert!(!stat.is_dead());
    }

    #[test]
    fn a_truncated_stat_line_is_rejected() {
        let whole = line("sh");
        let needed = whole.find("9876543210").expect("there");
        for len in 0..needed {
            assert_eq!(Stat::parse(&whole.as_bytes()[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn a_start_time_is_known_if_both_moments_are_in_one_tick() {
        assert_eq!(ticks_between(30_000_000, 39_999_999), Some(3));
        assert_eq!(ticks_between(39_999_999, 40_000_000), None);
        assert_eq!(ticks_between(0, u64::MAX), None);
    }

    #[test]
    fn pids_are_parsed_across_parts() {
        let mut reader = PidReader::default();
        let parts: [&[u8]; 3] = [b"1 22 33", b"3 4194303", b" "];
        let pids: Vec<u32> = parts
            .iter()
            .flat_map(|part| part.iter())
            .filter_map(|b| reader.push(*b))
            .collect();
        assert_eq!(pids, [1, 22, 333, 4_194_303]);
    }

    #[test]
    fn a_populated_cgroup_is_recognised() {
        assert!(is_populated(b"populated 1\nfrozen 0\n"));
        assert!(!is_populated(b"populated 0\nfrozen 1\n"));
        assert!(!is_populated(b""));
    }

    #[test]
    fn uuids_are_parsed_with_and_without_hyphens() {
        let uuid = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\x00\x11\x22\x33\x44\x55\x66\x77";
        assert_eq!(parse_uuid(b"0123456789abcdef0011223344556677"), Some(uuid));
        assert_eq!(
            parse_uuid(b"01234567-89ab-cdef-0011-223344556677"),
            Some(uuid)
        );
        for bad in [
            &b"0123456789abcdef001122334455667"[..],
            b"",
            b"0123456789abcdef0011223344556677x",
        ] {
            assert_eq!(parse_uuid(bad), None);
        }
    }
}
