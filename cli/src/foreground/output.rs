//! The output of a session: formats items and hands them to the writer thread. It keeps one piece at a
//! time, and the session reads nothing while that one waits.

use std::io;

use heeler_client::{AttachItem, Bytes, Chunk, v1};

use super::writer_thread::{Piece, Target, WriterThread};
use crate::render::{gap, json::Json};

#[derive(Debug)]
pub(crate) struct ForegroundOutput {
    /// None after a failed write: later output is dropped.
    writer: Option<WriterThread>,
    waiting: Option<Piece>,
    json: Option<Json>,
    column: Column,
}

/// The position on stdout after the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    LineStart,
    WithinLine,
}

impl ForegroundOutput {
    pub(crate) fn open(json: Option<Json>) -> io::Result<Self> {
        Ok(Self {
            writer: Some(WriterThread::start()?),
            waiting: None,
            json,
            column: Column::LineStart,
        })
    }

    /// Returns whether a piece waits for the writer.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.is_some()
    }

    /// Formats an item: output as it is, or any item as a line of JSON.
    pub(crate) fn put(&mut self, item: &AttachItem) -> io::Result<()> {
        let piece = match (&self.json, item) {
            (Some(json), item) => {
                let mut bytes = Vec::new();
                json.line(&mut bytes, &response(item))?;
                stdout(bytes)
            }
            (
                None,
                AttachItem::Output(Chunk {
                    offset,
                    gap: Some(missing),
                    ..
                }),
            ) => {
                let text = format!("heeler: {}\n", gap::clause(*offset, missing));
                Piece {
                    target: Target::Stderr,
                    bytes: text.into(),
                }
            }
            (None, AttachItem::Output(chunk)) => Piece {
                target: match chunk.stream {
                    v1::OutputStream::Stderr => Target::Stderr,
                    v1::OutputStream::Stdout | v1::OutputStream::Unspecified => Target::Stdout,
                },
                bytes: chunk.data.clone(),
            },
            (None, AttachItem::Attached(_) | AttachItem::Ended(_)) => return Ok(()),
        };
        self.push(piece);
        Ok(())
    }

    /// Prints the id of a task that continues, on its own line. In JSON the last item has it.
    pub(crate) fn put_id(&mut self, id: &str) {
        if self.json.is_none() {
            let start = match self.column {
                Column::LineStart => "",
                Column::WithinLine => "\n",
            };
            self.push(stdout(format!("{start}{id}\n").into_bytes()));
        }
    }

    fn push(&mut self, piece: Piece) {
        if let (Target::Stdout, Some(last)) = (piece.target, piece.bytes.last()) {
            self.column = match last {
                b'\n' => Column::LineStart,
                _ => Column::WithinLine,
            };
        }
        self.waiting = Some(piece).filter(|_| self.writer.is_some());
    }

    /// Hands the waiting piece to the writer. Without one it returns only when a write has failed, and
    /// after that never.
    pub(crate) async fn advance(&mut self) -> io::Result<()> {
        let Some(writer) = &self.writer else {
            return std::future::pending().await;
        };
        if self.waiting.is_some() {
            if let Some(permit) = writer.reserve().await {
                if let Some(piece) = self.waiting.take() {
                    permit.send(piece);
                }
                return Ok(());
            }
        } else {
            writer.failed().await;
        }
        self.waiting = None;
        Err(self
            .writer
            .take()
            .map_or_else(broken_pipe, WriterThread::error))
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(mut self) -> io::Result<()> {
        while self.is_full() {
            self.advance().await?;
        }
        match self.writer {
            Some(writer) => writer.finish().await,
            None => Ok(()),
        }
    }
}

fn broken_pipe() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

fn stdout(bytes: Vec<u8>) -> Piece {
    Piece {
        target: Target::Stdout,
        bytes: Bytes::from(bytes),
    }
}

/// The message of the contract that the SDK made this item from.
fn response(item: &AttachItem) -> v1::AttachResponse {
    use v1::attach_response::Item;
    let item = match item {
        AttachItem::Attached(task) => Item::Attached(v1::Attached {
            task: Some(task.clone()),
        }),
        AttachItem::Output(chunk) => Item::Output(v1::AttachedOutput {
            next_offset: chunk.end(),
            chunks: vec![chunk.clone().into()],
        }),
        AttachItem::Ended(ended) => Item::Ended(v1::AttachEnded {
            task: Some(ended.task.clone()),
            reason: ended.reason.into(),
        }),
    };
    v1::AttachResponse { item: Some(item) }
}
