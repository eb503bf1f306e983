//! Reads a task's output page by page.

use std::time::Duration;

use heeler_client::{
    Client, Error, time,
    v1::{
        OutputChunk, ReadOutputRequest, ReadOutputResponse, output_chunk::Content,
        read_output_request::Start,
    },
};

/// The time for which one call waits for output.
const POLL: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The end at the time of the first page.
    Present,
    /// The last byte of a finished task.
    End,
}

#[derive(Debug)]
pub(crate) struct OutputReader {
    client: Client,
    /// The request of the next page.
    request: ReadOutputRequest,
    until: Until,
    /// The end offset in the first page.
    present: Option<u64>,
    done: bool,
}

impl OutputReader {
    /// Reads what this request asks for, up to its `max_lines` in all.
    pub(crate) fn new(client: Client, request: ReadOutputRequest, until: Until) -> Self {
        let wait = match until {
            Until::Present => None,
            Until::End => Some(time::to_proto(POLL)),
        };
        Self {
            client,
            request: ReadOutputRequest { wait, ..request },
            until,
            present: None,
            done: false,
        }
    }

    /// The next page; none after the last one.
    pub(crate) async fn page(&mut self) -> Result<Option<ReadOutputResponse>, Error> {
        if self.done {
            return Ok(None);
        }
        let page = self.client.read_output(self.request.clone()).await?;
        let present = *self.present.get_or_insert(page.end_offset);
        let next = Some(Start::Offset(page.next_offset));
        self.done = match (&self.request.start, self.until) {
            // All of it is in one answer.
            (Some(Start::HeadAndTail(_)), _) => true,
            // The last line or character may be incomplete: it is left for a later read.
            (asked, Until::Present) => page.next_offset >= present || *asked == next,
            (_, Until::End) => page.complete && page.next_offset >= page.end_offset,
        };
        self.request.start = next;
        self.count_lines(&page);
        Ok(Some(page))
    }

    fn count_lines(&mut self, page: &ReadOutputResponse) {
        if self.request.max_lines > 0 {
            let read: u32 = page.chunks.iter().map(line_ends).sum();
            self.request.max_lines = self.request.max_lines.saturating_sub(read);
            self.done |= self.request.max_lines == 0;
        }
    }
}

fn line_ends(chunk: &OutputChunk) -> u32 {
    let bytes = match &chunk.content {
        Some(Content::Data(data)) => data.as_ref(),
        Some(Content::Text(text)) => text.as_bytes(),
        Some(Content::Gap(_)) | None => &[],
    };
    let count = bytes.iter().filter(|&&byte| byte == b'\n').count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The offset at which the last `count` lines begin.
pub(crate) async fn last_lines(client: &Client, id: &str, count: u64) -> Result<u64, Error> {
    let request = ReadOutputRequest {
        task_id: id.to_owned(),
        start: Some(Start::TailLines(count)),
        max_bytes: 1,
        ..ReadOutputRequest::default()
    };
    let page = client.read_output(request).await?;
    let first = page.chunks.first();
    Ok(first.map_or(page.next_offset, |chunk| chunk.offset))
}

/// The offset after the last byte so far.
pub(crate) async fn present_end(client: &Client, id: &str) -> Result<u64, Error> {
    let request = ReadOutputRequest {
        task_id: id.to_owned(),
        start: Some(Start::TailBytes(1)),
        max_bytes: 1,
        ..ReadOutputRequest::default()
    };
    Ok(client.read_output(request).await?.end_offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_counted_in_bytes_and_in_text_and_not_in_gaps() {
        let ends = |content: Option<Content>| {
            line_ends(&OutputChunk {
                content,
                ..OutputChunk::default()
            })
        };
        assert_eq!(ends(Some(Content::Data(b"a\nb\nc".as_slice().into()))), 2);
        assert_eq!(ends(Some(Content::Text("a\n".to_owned()))), 1);
        assert_eq!(ends(Some(Content::Gap(Default::default()))), 0);
    }
}
