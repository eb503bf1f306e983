//! Holds the queries of earlier output back from this terminal. The terminal would answer them again, and the answer
//! would be typed into the task, which has had one and reads it as keys.
//!
//! ```text
//! earlier output ──> sequence ──┬─ colours, titles, modes, … ──> terminal
//!                               └─ queries, unknown strings ──> dropped
//! live output ─────────────────────────────────────────────────> terminal
//! ```

use std::{collections::BTreeSet, mem, ops::RangeInclusive};

use anstyle_parse::state::{Action, State, state_change};
use heeler_client::Bytes;

use super::terminal_modes::{is_numbers, number};

/// The most bytes of a sequence that are held. Longer ones are dropped.
const LONGEST: usize = 4096;
const ENQUIRY: u8 = 0x05;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
const ESCAPE: u8 = 0x1b;
/// The first byte in UTF-8 of the control codes beyond ASCII, and the range of the second one.
const LEAD: u8 = 0xc2;
const CONTROL_CODES: RangeInclusive<u8> = 0x80..=0x9f;
const STRING_END: &[u8] = b"\x1b\\";
/// The modes in which a terminal reports at once: its focus, its colours, its size.
const REPORTING_MODES: [u16; 3] = [1004, 2031, 2048];
/// The window operations that a terminal answers.
const WINDOW_REPORTS: [u16; 9] = [11, 13, 14, 15, 16, 18, 19, 20, 21];

#[derive(Debug)]
pub(crate) struct QueryFilter {
    /// The offset of the first byte of live output.
    live: u64,
    stage: Stage,
    state: State,
    sequence: Sequence,
    /// A `LEAD` waits for the byte that follows.
    has_lead: bool,
    /// The reporting modes that are set.
    reporting: BTreeSet<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Earlier,
    Live,
}

/// The bytes of the present sequence.
#[derive(Debug)]
enum Sequence {
    /// They are passed on as they come, like text.
    Passed,
    /// Its end decides.
    Held(Vec<u8>),
    Dropped,
}

impl QueryFilter {
    /// `live`: the offset at which the live output begins.
    pub(crate) fn before(live: u64) -> Self {
        Self {
            live,
            stage: Stage::Earlier,
            state: State::default(),
            sequence: Sequence::Passed,
            has_lead: false,
            reporting: BTreeSet::new(),
        }
    }

    /// Returns the part of a piece of output that the terminal gets. A sequence may continue in the next piece; one
    /// that ends in live output is live.
    pub(crate) fn pass(&mut self, offset: u64, output: Bytes) -> Bytes {
        let mut passed = Vec::new();
        for (index, &byte) in output.iter().enumerate() {
            if self.is_over(offset + index as u64) {
                if index == 0 && passed.is_empty() && self.stage == Stage::Live {
                    return output;
                }
                self.end(&mut passed);
                passed.extend_from_slice(&output[index..]);
                return passed.into();
            }
            self.read(byte, &mut passed);
        }
        if self.is_over(offset + output.len() as u64) {
            self.end(&mut passed);
        }
        passed.into()
    }

    /// Output is missing: the sequence has no end.
    pub(crate) fn skip_gap(&mut self) {
        (self.state, self.sequence) = (State::default(), Sequence::Passed);
        self.has_lead = false;
    }

    /// Returns whether the output from this offset on is live. A string of which a part was passed on or dropped is
    /// treated alike to its end.
    fn is_over(&self, offset: u64) -> bool {
        let is_whole = self.state == State::Ground || matches!(self.sequence, Sequence::Held(_));
        self.stage == Stage::Live || offset >= self.live && is_whole
    }

    /// Passes on what was held.
    fn end(&mut self, passed: &mut Vec<u8>) {
        self.stage = Stage::Live;
        for mode in mem::take(&mut self.reporting) {
            passed.extend_from_slice(format!("\x1b[?{mode}h").as_bytes());
        }
        if let Sequence::Held(sequence) = mem::replace(&mut self.sequence, Sequence::Passed) {
            passed.extend_from_slice(&sequence);
        }
        if mem::take(&mut self.has_lead) {
            passed.push(LEAD);
        }
    }

    fn read(&mut self, byte: u8, passed: &mut Vec<u8>) {
        if mem::take(&mut self.has_lead) {
            if CONTROL_CODES.contains(&byte) {
                return;
            }
            self.put(LEAD, passed);
        }
        match byte {
            LEAD => self.has_lead = true,
            ENQUIRY => {}
            ESCAPE => {
                self.interrupt(passed);
                self.state = State::Escape;
                self.sequence = Sequence::Held(vec![ESCAPE]);
            }
            // Bytes beyond ASCII are parts of characters, which end no sequence.
            _ if !byte.is_ascii() => self.put(byte, passed),
            _ => self.step(byte, passed),
        }
    }

    /// Puts a byte where those of the present sequence go.
    fn put(&mut self, byte: u8, passed: &mut Vec<u8>) {
        match &mut self.sequence {
            Sequence::Passed => passed.push(byte),
            Sequence::Held(_) if !byte.is_ascii() && self.state != State::OscString => {}
            Sequence::Held(held) if held.len() < LONGEST => held.push(byte),
            Sequence::Held(_) => self.sequence = Sequence::Dropped,
            Sequence::Dropped => {}
        }
    }

    /// An escape character ends a string, and breaks any other sequence off.
    fn interrupt(&mut self, passed: &mut Vec<u8>) {
        match (&self.sequence, self.state) {
            (Sequence::Held(held), State::OscString) if is_kept_command(&held[2..]) => {
                passed.extend_from_slice(held);
                passed.extend_from_slice(STRING_END);
            }
            (Sequence::Passed, State::DcsPassthrough) => passed.extend_from_slice(STRING_END),
            (Sequence::Passed | Sequence::Held(_) | Sequence::Dropped, _) => {}
        }
    }

    fn step(&mut self, byte: u8, passed: &mut Vec<u8>) {
        let before = self.state;
        let (next, action) = state_change(before, byte);
        if next != State::Anywhere {
            self.state = next;
        }
        if action == Action::Execute && self.state != State::Ground {
            // A control character within a sequence acts at once.
            passed.push(byte);
        } else if action != Action::Ignore {
            self.put(byte, passed);
        }
        let is_other = self.state != before;
        if is_other && self.state == State::Ground {
            self.finish(before, byte, passed);
        } else if is_other && self.state == State::DcsPassthrough {
            self.begin_string(byte, passed);
        } else if is_refused(self.state) {
            self.sequence = Sequence::Dropped;
        }
    }

    /// Of the device control strings, pictures alone are passed on. Others are queries, or hide some.
    fn begin_string(&mut self, last: u8, passed: &mut Vec<u8>) {
        let string = mem::replace(&mut self.sequence, Sequence::Dropped);
        if let Sequence::Held(held) = string
            && last == b'q'
            && is_numbers(&held[2..held.len() - 1])
        {
            passed.extend_from_slice(&held);
            self.sequence = Sequence::Passed;
        }
    }

    /// A sequence ends with this byte.
    fn finish(&mut self, kind: State, last: u8, passed: &mut Vec<u8>) {
        let Sequence::Held(held) = mem::replace(&mut self.sequence, Sequence::Passed) else {
            return;
        };
        // Without the introducer and the last byte.
        let inner = held.get(2..held.len() - 1).unwrap_or_default();
        let is_kept = if matches!(last, CANCEL | SUBSTITUTE) {
            false
        } else if kind == State::OscString {
            is_kept_command(inner)
        } else if is_control(kind) {
            self.control(inner, last, passed)
        } else {
            if (kind, last) == (State::Escape, b'c') {
                // A reset of everything.
                self.reporting.clear();
            }
            // An old query for the terminal's kind.
            (kind, last) != (State::Escape, b'Z')
        };
        if is_kept {
            passed.extend_from_slice(&held);
        }
    }

    /// Returns whether a control sequence is passed on as it is.
    fn control(&mut self, parameters: &[u8], last: u8, passed: &mut Vec<u8>) -> bool {
        let ([b'?', modes @ ..], b'h' | b'l') = (parameters, last) else {
            return !is_query(parameters, last);
        };
        let modes = modes.split(|byte| *byte == b';');
        let is_reporting =
            |mode: &&[u8]| number(mode).is_some_and(|n| REPORTING_MODES.contains(&n));
        let (reporting, others): (Vec<_>, Vec<_>) = modes.partition(is_reporting);
        if reporting.is_empty() {
            return true;
        }
        for mode in reporting.into_iter().filter_map(number) {
            match last {
                b'h' => self.reporting.insert(mode),
                _ => self.reporting.remove(&mode),
            };
        }
        if !others.is_empty() {
            passed.extend_from_slice(b"\x1b[?");
            passed.extend_from_slice(&others.join(&b';'));
            passed.push(last);
        }
        false
    }
}

/// Returns whether the state is that of a string, or of a malformed sequence, that is not passed on.
fn is_refused(state: State) -> bool {
    matches!(
        state,
        State::SosPmApcString | State::CsiIgnore | State::DcsIgnore
    )
}

fn is_control(state: State) -> bool {
    matches!(
        state,
        State::CsiEntry | State::CsiParam | State::CsiIntermediate
    )
}

/// Returns whether a terminal may answer a control sequence.
fn is_query(parameters: &[u8], last: u8) -> bool {
    match (parameters, last) {
        // The kind of the terminal, its version, its keyboard.
        (_, b'c') | ([b'>', ..], b'q') | ([b'?', ..], b'u' | b'm' | b'S') => true,
        // Its status and the cursor. With a `>` it is a setting.
        ([b'>', ..], b'n') => false,
        (_, b'n') => true,
        (_, b'x') => is_numbers(parameters),
        // Modes, state, a checksum, colours, the extent, the mouse.
        ([.., b'$'], b'p' | b'u' | b'w') | ([.., b'&'], b'u') | ([.., b'*'], b'y') => true,
        ([.., b'#'], b'R' | b'|') | ([.., b'"'], b'v') | ([.., b'\''], b'|') => true,
        (_, b't') => {
            let first = parameters.split(|byte| *byte == b';').next();
            let operation = first.and_then(number);
            is_numbers(parameters) && operation.is_some_and(|n| WINDOW_REPORTS.contains(&n))
        }
        _ => false,
    }
}

/// Returns whether an operating system command is passed on: titles, directories, links and marks, and colours and the
/// pointer unless they are asked for. Others are queries, or act once: the clipboard, notifications.
fn is_kept_command(text: &[u8]) -> bool {
    let mut parts = text.split(|byte| *byte == b';');
    match parts.next().and_then(number) {
        Some(0..=2 | 7 | 8 | 133) => true,
        Some(4 | 5 | 10..=19 | 22 | 104 | 105 | 110..=119) => {
            !parts.any(|part| part.starts_with(b"?"))
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERIES: [&str; 38] = [
        "\x1b[c",
        "\x1b[0c",
        "\x1b[>c",
        "\x1b[>0c",
        "\x1b[=c",
        "\x1bZ",
        "\x05",
        "\x1b[5n",
        "\x1b[6n",
        "\x1b[?6n",
        "\x1b[?996n",
        "\x1b[1x",
        "\x1b[?2026$p",
        "\x1b[4$p",
        "\x1b[>q",
        "\x1b[>0q",
        "\x1b[?u",
        "\x1b[?4m",
        "\x1b[?1;1;0S",
        "\x1b[14t",
        "\x1b[18t",
        "\x1b[21t",
        "\x1b[1;1;1;1;2;2*y",
        "\x1b[1$w",
        "\x1b]10;?\x07",
        "\x1b]11;?\x1b\\",
        "\x1b]4;1;?;2;?\x07",
        "\x1b]52;c;?\x07",
        "\x1b]22;?\x1b\\",
        "\x1b]1337;ReportCellSize\x07",
        "\x1bP$qm\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1bPtmux;\x1b\x1b[c\x1b\\",
        "\x1b_Gi=1,a=q;AAAA\x1b\\",
        "\x1b[\r6n",
        "\x1b[5\x1b[6n",
        "\u{9b}6n",
        "\x1b[?2048h\x1b[?2048l",
    ];

    const KEPT: [&str; 18] = [
        "plain text, é and 漢字",
        "\x1b[1;31mred\x1b[m",
        "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H",
        "\x1b7\x1b8\x1b(B\x1b=",
        "\x1b[>1u\x1b[<u\x1b[u",
        "\x1b[>4;2m",
        "\x1b[2 q",
        "\x1b[>1n",
        "\x1b[22;0t",
        "\x1b[8;24;80t",
        "\x1b[1;24r",
        "\x1b[!p",
        "\x1b[1;1;2;2$x",
        "\x1b]0;a title?\x07",
        "\x1b]2;Übersicht\x1b\\",
        "\x1b]8;;https://example.org/?q=1\x1b\\link\x1b]8;;\x1b\\",
        "\x1b]11;rgb:00/00/00\x07",
        "\x1bP0;1q#0;2;0;0;0#0~~@@\x1b\\after",
    ];

    /// Passes pieces of earlier output, and live output after them.
    fn shown(earlier: &[&[u8]], live: &str) -> Vec<u8> {
        let mut filter = QueryFilter::before(earlier.concat().len() as u64);
        let (mut offset, mut shown) = (0, Vec::new());
        for piece in earlier.iter().chain([&live.as_bytes()]) {
            shown.extend(filter.pass(offset, Bytes::copy_from_slice(piece)));
            offset += piece.len() as u64;
        }
        shown
    }

    /// Removes the string ends that stand alone: they mean nothing.
    fn without_ends(shown: &[u8]) -> String {
        let text = String::from_utf8(shown.to_vec()).unwrap();
        text.replace("\x1b\\", "").replace('\r', "")
    }

    /// I5
    #[test]
    fn queries_are_held_back_wherever_they_are_cut() {
        for query in QUERIES {
            for at in 0..=query.len() {
                let (first, rest) = query.as_bytes().split_at(at);
                let shown = shown(&[b"before ", first, rest, b"after"], " live");
                let text = without_ends(&shown);
                let rest = match query {
                    // A sequence of this form is not valid in every terminal.
                    "\u{9b}6n" => "6n",
                    _ => "",
                };
                assert_eq!(text, format!("before {rest}after live"), "{query:?}");
            }
        }
    }

    /// I5
    #[test]
    fn other_sequences_are_passed_on_wherever_they_are_cut() {
        for kept in KEPT {
            for at in 0..=kept.len() {
                let (first, rest) = kept.as_bytes().split_at(at);
                let shown = shown(&[first, rest], "");
                assert_eq!(without_ends(&shown), without_ends(kept.as_bytes()), "{at}");
            }
        }
    }

    /// I5
    #[test]
    fn live_queries_are_passed_on_and_so_are_those_that_end_in_live_output() {
        let text = |earlier: &str, live: &str| {
            String::from_utf8(shown(&[earlier.as_bytes()], live)).unwrap()
        };
        for query in QUERIES {
            assert_eq!(text("x", query), format!("x{query}"));
        }
        for query in ["\x1b[6n", "\x1b]11;?\x07", "\x1b[?1;1;0S"] {
            for at in 1..query.len() {
                let (first, rest) = query.split_at(at);
                assert_eq!(text(first, rest), query);
                assert_eq!(text(query, rest), rest);
            }
        }
        assert_eq!(
            text("\x1b]52;c;AAAA", "AAAA\x07\x1b[6n"),
            "\x1b]52;c;AAAAAAAA\x07\x1b[6n"
        );
    }

    /// I5
    #[test]
    fn a_mode_with_reports_is_set_once_at_the_end() {
        let earlier = b"\x1b[?1000;1004h\x1b[?2048h\x1b[?2048l\x1b[?2048htext";
        let shown = shown(&[earlier], "live");
        let text = String::from_utf8(shown).unwrap();
        assert_eq!(text, "\x1b[?1000htext\x1b[?1004h\x1b[?2048hlive");
    }

    /// I5
    #[test]
    fn endless_strings_are_dropped_to_their_end_and_a_gap_ends_them() {
        let long = format!("\x1b]0;{}", "x".repeat(2 * LONGEST));
        let text = shown(&[long.as_bytes()], "x\x07live");
        assert_eq!(text, b"live");
        let mut filter = QueryFilter::before(100);
        assert!(filter.pass(0, Bytes::from_static(b"\x1b]0;")).is_empty());
        filter.skip_gap();
        assert_eq!(filter.pass(50, Bytes::from_static(b"text")), "text");
    }
}
