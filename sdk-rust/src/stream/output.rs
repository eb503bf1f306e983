//! A task's output as a stream that follows it to its end.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use heeler_proto::v1::{
    OutputChunk, OutputGap, OutputStream, ReadOutputRequest, output_chunk::Content,
    read_output_request::Start,
};
use tokio_stream::Stream;
use tonic::codegen::Bytes;

use super::batches::{Batch, Batches};
use crate::{client::Client, error::Error, time};

/// Maximum time that one call waits for output; then the stream calls again.
const POLL: Duration = Duration::from_secs(60);

/// Bytes of one stream that arrived together, or a gap.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// The offset of the first byte.
    pub offset: u64,
    /// Unspecified for a gap.
    pub stream: OutputStream,
    /// The time at which they were read from the task; 1970 for a gap.
    pub read_time: SystemTime,
    /// Empty for a gap.
    pub data: Bytes,
    /// Present if output is missing from `offset` on.
    pub gap: Option<OutputGap>,
    /// A filter with lines of context has left out the line before this one.
    pub begins_group: bool,
}

impl Chunk {
    /// The offset after the last byte, or after the gap.
    pub fn end(&self) -> u64 {
        let missing = self.gap.as_ref().map_or(0, |gap| gap.length);
        self.offset + self.data.len() as u64 + missing
    }
}

impl From<OutputChunk> for Chunk {
    fn from(chunk: OutputChunk) -> Self {
        let stream = chunk.stream();
        let (data, gap) = match chunk.content {
            Some(Content::Data(data)) => (data, None),
            Some(Content::Text(text)) => (text.into(), None),
            Some(Content::Gap(gap)) => (Bytes::new(), Some(gap)),
            None => (Bytes::new(), None),
        };
        let read_time = chunk
            .read_time
            .map_or(SystemTime::UNIX_EPOCH, time::to_system);
        Self {
            offset: chunk.offset,
            stream,
            read_time,
            data,
            gap,
            begins_group: chunk.begins_group.unwrap_or(false),
        }
    }
}

impl From<Chunk> for OutputChunk {
    fn from(chunk: Chunk) -> Self {
        let (read_time, content) = match chunk.gap {
            Some(gap) => (None, Content::Gap(gap)),
            None => (Some(chunk.read_time.into()), Content::Data(chunk.data)),
        };
        Self {
            offset: chunk.offset,
            stream: chunk.stream.into(),
            read_time,
            content: Some(content),
            begins_group: chunk.begins_group.then_some(true),
        }
    }
}

/// A task's output from an offset to its end.
///
/// Reading has no effect on the task or on other readers. To resume later, keep [`Chunk::end`] of the
/// last chunk.
#[derive(Debug)]
pub struct Output {
    batches: Batches<u64, Chunk>,
}

impl Output {
    pub(crate) fn new(client: Client, id: Arc<str>, offset: u64) -> Self {
        let fetch = move |offset| {
            let (client, id) = (client.clone(), Arc::clone(&id));
            async move {
                let page = client
                    .read_output(ReadOutputRequest {
                        task_id: id.to_string(),
                        start: Some(Start::Offset(offset)),
                        wait: Some(time::to_proto(POLL)),
                        ..ReadOutputRequest::default()
                    })
                    .await?;
                let over = page.complete && page.next_offset >= page.end_offset;
                let next = (!over).then_some(page.next_offset);
                Ok(Batch {
                    items: page.chunks.into_iter().map(Chunk::from).collect(),
                    next,
                })
            }
        };
        Self {
            batches: Batches::new(offset, fetch),
        }
    }
}

impl Stream for Output {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.batches).poll_next(cx)
    }
}
