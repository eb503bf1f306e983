//! The output that a run has received, within the bounds of its answer: for a task that is removed before its
//! output is read. The daemon forgets ended runs when many commands run at once.

use heeler_client::Chunk;

use super::{Excerpt, Limit, bytes};

/// The beginning and the end of what was received.
#[derive(Debug)]
pub(crate) struct Kept {
    head: Vec<u8>,
    tail: Vec<u8>,
    half: usize,
    /// The offset after the last byte.
    end: u64,
}

impl Kept {
    pub(crate) fn within(limit: Limit) -> Self {
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            half: limit.bytes() as usize / 2,
            end: 0,
        }
    }

    pub(crate) fn add(&mut self, chunk: &Chunk) {
        self.end = chunk.end();
        let room = self.half - self.head.len().min(self.half);
        let (head, tail) = chunk.data.split_at(room.min(chunk.data.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        // Twice as much as is wanted, so that few bytes are moved.
        if self.tail.len() > 2 * self.half {
            self.tail.drain(..self.tail.len() - self.half);
        }
    }

    /// As text. Unlike the daemon's plain text, it keeps what is left of escape sequences without ESC.
    pub(crate) fn excerpt(mut self) -> Excerpt {
        self.tail.drain(..self.tail.len().saturating_sub(self.half));
        let length = self.end - (self.head.len() + self.tail.len()) as u64;
        let note = match length {
            0 => String::new(),
            length => format!("\n[… {} omitted here …]\n", bytes(length)),
        };
        Excerpt {
            text: format!("{}{note}{}", text(&self.head), text(&self.tail)),
            next: self.end,
            end: self.end,
            complete: true,
            omitted: None,
        }
    }
}

fn text(data: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(data).into_owned();
    text.retain(|one| !one.is_control() || matches!(one, '\n' | '\t' | '\r'));
    text
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use heeler_client::v1::OutputStream;

    use super::*;

    fn chunk(offset: u64, data: &str) -> Chunk {
        Chunk {
            offset,
            stream: OutputStream::Stdout,
            read_time: SystemTime::UNIX_EPOCH,
            data: data.to_owned().into(),
            gap: None,
            begins_group: false,
        }
    }

    /// M3
    #[test]
    fn the_beginning_and_the_end_of_what_was_received_are_kept() {
        let mut kept = Kept::within(Limit::of(Some(8)));
        kept.add(&chunk(0, "ab\u{1b}"));
        kept.add(&chunk(3, "c"));
        assert_eq!(kept.excerpt().text, "abc");
        let mut kept = Kept::within(Limit::of(Some(8)));
        for number in 0..100 {
            kept.add(&chunk(number * 3, "xyz"));
        }
        let excerpt = kept.excerpt();
        let expected = "xyzx\n[… 292 bytes omitted here …]\nzxyz";
        assert_eq!((&*excerpt.text, excerpt.next), (expected, 300));
    }
}
