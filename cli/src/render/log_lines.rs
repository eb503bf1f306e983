//! Output in whole lines, each with the id of its task and its time. Pure.

use heeler_client::{Chunk, v1::OutputStream};
use prost_types::Timestamp;

use super::units;

/// A longer line is printed in pieces, so that a task cannot fill the memory of `heeler logs`.
const LONGEST_LINE: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timestamps {
    /// Each line begins with the time at which its first byte was read from the task.
    Shown,
    Hidden,
}

/// The lines of one task. An unfinished line of one stream waits for its end while the other stream's
/// lines pass.
#[derive(Debug)]
pub(crate) struct LogLines {
    prefix: Prefix,
    timestamps: Timestamps,
    stdout: Unfinished,
    stderr: Unfinished,
}

/// The beginning of each line, for each stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefix {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[derive(Debug, Default)]
struct Unfinished {
    read_time: Timestamp,
    bytes: Vec<u8>,
}

impl LogLines {
    pub(crate) fn new(prefix: Prefix, timestamps: Timestamps) -> Self {
        Self {
            prefix,
            timestamps,
            stdout: Unfinished::default(),
            stderr: Unfinished::default(),
        }
    }

    /// Returns the lines that this chunk completes.
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
        let line = self.unfinished(chunk.stream);
        if line.bytes.is_empty() {
            line.read_time = chunk.read_time.into();
        }
        line.bytes.extend_from_slice(piece);
        if line.bytes.ends_with(b"\n") || line.bytes.len() >= LONGEST_LINE {
            self.end(chunk.stream, whole);
        }
    }

    /// Returns the unfinished line of a stream that has ended.
    pub(crate) fn finish(&mut self, stream: OutputStream) -> Vec<u8> {
        let mut whole = Vec::new();
        if !self.unfinished(stream).bytes.is_empty() {
            self.end(stream, &mut whole);
        }
        whole
    }

    fn end(&mut self, stream: OutputStream, whole: &mut Vec<u8>) {
        let Unfinished { read_time, bytes } = std::mem::take(self.unfinished(stream));
        let prefix = match stream {
            OutputStream::Stderr => &self.prefix.stderr,
            OutputStream::Stdout | OutputStream::Unspecified => &self.prefix.stdout,
        };
        whole.extend_from_slice(prefix.as_bytes());
        if self.timestamps == Timestamps::Shown {
            whole.extend_from_slice(units::timestamp(read_time).as_bytes());
            whole.push(b' ');
        }
        whole.extend_from_slice(&bytes);
        if !bytes.ends_with(b"\n") {
            whole.push(b'\n');
        }
    }

    fn unfinished(&mut self, stream: OutputStream) -> &mut Unfinished {
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
            gap: None,
            begins_group: false,
        }
    }

    #[test]
    fn lines_of_two_streams_do_not_mix() {
        let prefix = Prefix {
            stdout: "a | ".to_owned(),
            stderr: "a ! ".to_owned(),
        };
        let mut lines = LogLines::new(prefix, Timestamps::Hidden);
        assert_eq!(lines.take(&chunk(OutputStream::Stdout, 0, b"one, ")), b"");
        assert_eq!(
            lines.take(&chunk(OutputStream::Stderr, 0, b"oops\n")),
            b"a ! oops\n"
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
        let mut lines = LogLines::new(Prefix::default(), Timestamps::Shown);
        lines.take(&chunk(OutputStream::Stdout, 1, b"x"));
        let whole = lines.take(&chunk(OutputStream::Stdout, 5, b"y\n"));
        assert_eq!(whole, b"1970-01-01T00:00:01.000Z xy\n");
    }

    /// O9
    #[test]
    fn a_line_without_an_end_is_printed_in_pieces() {
        let mut lines = LogLines::new(Prefix::default(), Timestamps::Hidden);
        let data = vec![b'x'; 3 * LONGEST_LINE + 1].leak();
        let whole = lines.take(&chunk(OutputStream::Stdout, 0, data));
        assert_eq!(whole.iter().filter(|&&byte| byte == b'\n').count(), 3);
        assert!(lines.stdout.bytes.len() < LONGEST_LINE);
    }
}
