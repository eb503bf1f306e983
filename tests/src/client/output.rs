//! Reading a task's output.

use heeler_proto::v1::{
    OutputChunk, OutputGap, OutputGapCause, ReadOutputRequest, ReadOutputResponse, output_chunk,
};
use tokio::task::JoinHandle;
use tonic::{Response, Status};

use crate::{Api, request::read, secs, within};

impl Api {
    pub async fn read(&self, request: ReadOutputRequest) -> Result<ReadOutputResponse, Status> {
        let answer = self.raw().read_output(request).await;
        answer.map(Response::into_inner)
    }

    /// Starts a long poll.
    pub fn poll(&self, id: &str, offset: u64) -> JoinHandle<ReadOutputResponse> {
        let request = ReadOutputRequest {
            wait: Some(secs(60)),
            ..read(id, offset)
        };
        let api = self.clone();
        tokio::spawn(async move { api.read(request).await.expect("readable output") })
    }

    /// Waits until the task file has at least this many bytes of output.
    pub async fn output_reaches(&self, id: &str, bytes: u64) {
        while self.output_end(id).await < bytes {
            let more = within("more output", self.poll(id, bytes - 1)).await;
            let more = more.expect("a poll");
            let end = more.end_offset;
            assert!(end >= bytes || !more.complete, "ended after {end} bytes");
        }
    }

    /// All output so far, from the first byte.
    pub async fn output(&self, id: &str) -> Vec<u8> {
        self.try_output(id).await.expect("readable output")
    }

    /// All output so far, up to a part that is lost, from a server that may die during the call.
    pub async fn try_output(&self, id: &str) -> Result<Vec<u8>, Status> {
        let mut all = Vec::new();
        for chunk in self.chunks(id).await? {
            match gap(&chunk) {
                None => all.extend_from_slice(raw(&chunk)),
                Some(gap) => assert_eq!(gap.cause(), OutputGapCause::Lost, "{chunk:?}"),
            }
        }
        Ok(all)
    }

    /// The text before the first gap.
    pub async fn output_up_to_gap(&self, id: &str) -> String {
        let chunks = self.chunks(id).await.expect("readable output");
        let kept = chunks.iter().take_while(|chunk| gap(chunk).is_none());
        let bytes: Vec<u8> = kept.flat_map(|chunk| raw(chunk).to_vec()).collect();
        String::from_utf8(bytes).expect("text")
    }

    /// All output so far, gaps included: each chunk begins where the one before it ends.
    pub async fn chunks(&self, id: &str) -> Result<Vec<OutputChunk>, Status> {
        let (mut all, mut offset) = (Vec::new(), 0);
        loop {
            let answer = self.read(read(id, offset)).await?;
            for chunk in &answer.chunks {
                assert_eq!(chunk.offset, offset, "not where the last one ended");
                offset = end(chunk);
            }
            assert_eq!(answer.next_offset, offset);
            if answer.chunks.is_empty() {
                return Ok(all);
            }
            all.extend(answer.chunks);
        }
    }

    /// All output so far, as lines of text.
    pub async fn lines(&self, id: &str) -> Vec<String> {
        let all = String::from_utf8(self.output(id).await).expect("text");
        all.lines().map(str::to_owned).collect()
    }

    /// Waits for the port on which the fixture says that it listens.
    pub async fn listening_port(&self, id: &str) -> u32 {
        self.output_reaches(id, "listening 1\n".len() as u64).await;
        let lines = self.lines(id).await;
        let port = lines[0].strip_prefix("listening ").expect("a port");
        port.parse().expect("a number")
    }

    /// The offset behind the last byte so far.
    pub async fn output_end(&self, id: &str) -> u64 {
        let answer = self.read(read(id, 0)).await;
        answer.expect("readable output").end_offset
    }
}

/// The gap that a chunk stands for.
pub fn gap(chunk: &OutputChunk) -> Option<OutputGap> {
    match &chunk.content {
        Some(output_chunk::Content::Gap(gap)) => Some(*gap),
        Some(output_chunk::Content::Data(_) | output_chunk::Content::Text(_)) | None => None,
    }
}

/// The offset behind a raw chunk or a gap.
pub fn end(chunk: &OutputChunk) -> u64 {
    chunk.offset + gap(chunk).map_or_else(|| raw(chunk).len() as u64, |gap| gap.length)
}

/// The bytes of a raw chunk.
#[track_caller]
pub fn raw(chunk: &OutputChunk) -> &[u8] {
    match &chunk.content {
        Some(output_chunk::Content::Data(data)) => data,
        other => panic!("not raw: {other:?}"),
    }
}

/// The bytes of raw chunks, joined.
pub fn bytes(chunks: &[OutputChunk]) -> Vec<u8> {
    chunks.iter().flat_map(raw).copied().collect()
}

/// The text of a text chunk.
#[track_caller]
pub fn text(chunk: &OutputChunk) -> &str {
    match &chunk.content {
        Some(output_chunk::Content::Text(text)) => text,
        other => panic!("not text: {other:?}"),
    }
}
