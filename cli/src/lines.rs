//! Output as whole lines, each with who wrote it and when: for several tasks on one screen. Pure.

use heeler_client::{Chunk, v1::OutputStream};
use prost_types::Timestamp;

use crate::words;

/// A line is shown in pieces of this size: nobody's memory is for a task to fill.
const LONGEST_LINE: usize = 64 << 10;

/// What stands before a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// When it was read from the task.
    Time,
    /// Nothing.
    None,
}

/// The lines of one task: what has begun on one stream waits for its end, whatever comes on the
/// other.
#[derive(Debug)]
pub(crate) struct Lines {
    prefix: String,
    stamp: Stamp,
    stdout: Begun,
    stderr: Begun,
}

/// A line that has no end yet.
#[derive(Debug, Default)]
struct Begun {
    at: Timestamp,
    bytes: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(prefix: String, stamp: Stamp) -> Self {
        Self {
            prefix,
            stamp,
            stdout: Begun::default(),
            stderr: Begun::default(),
        }
    }

    /// The lines that a chunk completes.
    pub(crate) fn take(&mut self, chunk: &Chunk) -> Vec<u8> {
        let mut whole = Vec::new();
        for piece in chunk.data.split_inclusive(|&byte| byte == b'\n') {
            for piece in piece.chunks(LONGEST_LINE) {
                self.add(chunk, piece, &mut whole);
            }
        }
        whole
    }

    fn add(&mut self, chunk: &Chunk, piece: &[u8], whole: &mut Vec<u8>) {
        let begun = self.begun(chunk.stream);
        if begun.bytes.is_empty() {
            begun.at = chunk.read_time.into();
        }
        begun.bytes.extend_from_slice(piece);
        if begun.bytes.ends_with(b"\n") || begun.bytes.len() >= LONGEST_LINE {
            self.end(chunk.stream, whole);
        }
    }

    /// What is left of one stream when no more will come.
    pub(crate) fn finish(&mut self, stream: OutputStream) -> Vec<u8> {
        let mut whole = Vec::new();
        if !self.begun(stream).bytes.is_empty() {
            self.end(stream, &mut whole);
        }
        whole
    }

    fn end(&mut self, stream: OutputStream, whole: &mut Vec<u8>) {
        let Begun { at, bytes } = std::mem::take(self.begun(stream));
        whole.extend_from_slice(self.prefix.as_bytes());
        if self.stamp == Stamp::Time {
            whole.extend_from_slice(words::moment(at).as_bytes());
            whole.push(b' ');
        }
        whole.extend_from_slice(&bytes);
        if !bytes.ends_with(b"\n") {
            whole.push(b'\n');
        }
    }

    fn begun(&mut self, stream: OutputStream) -> &mut Begun {
        match stream {
            OutputStream::Stderr => &mut self.stderr,
            OutputStream::Stdout | OutputStream::Unspecified => &mut self.stdout,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn chunk(stream: OutputStream, second: u64, data: &'static [u8]) -> Chunk {
        let read_time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        Chunk {
            offset: 0,
            stream,
            read_time,
            data: data.into(),
        }
    }

    #[test]
    fn lines_of_two_streams_are_not_torn() {
        let mut lines = Lines::new("a | ".to_owned(), Stamp::None);
        assert_eq!(lines.take(&chunk(OutputStream::Stdout, 0, b"one, ")), b"");
        assert_eq!(
            lines.take(&chunk(OutputStream::Stderr, 0, b"oops\n")),
            b"a | oops\n"
        );
        assert_eq!(
            lines.take(&chunk(OutputStream::Stdout, 0, b"two\nth")),
            b"a | one, two\n"
        );
        assert_eq!(lines.finish(OutputStream::Stdout), b"a | th\n");
        assert_eq!(lines.finish(OutputStream::Stderr), b"");
    }

    #[test]
    fn a_line_has_the_time_of_its_first_byte() {
        let mut lines = Lines::new(String::new(), Stamp::Time);
        lines.take(&chunk(OutputStream::Stdout, 1, b"x"));
        let whole = lines.take(&chunk(OutputStream::Stdout, 5, b"y\n"));
        assert_eq!(whole, b"1970-01-01T00:00:01.000Z xy\n");
    }

    /// O9
    #[test]
    fn a_line_without_end_is_shown_in_pieces() {
        let mut lines = Lines::new(String::new(), Stamp::None);
        let data = vec![b'x'; 3 * LONGEST_LINE + 1].leak();
        let whole = lines.take(&chunk(OutputStream::Stdout, 0, data));
        assert_eq!(whole.iter().filter(|&&byte| byte == b'\n').count(), 3);
        assert!(lines.stdout.bytes.len() < LONGEST_LINE);
    }
}
