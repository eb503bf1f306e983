//! A task's output on its way out: piece by piece, and never more of it in memory than one.

use std::io;

use heeler_client::{AttachItem, Bytes, v1};

use crate::{
    json::Json,
    outlet::{Outlet, Piece, Target},
};

/// What is on its way.
#[derive(Debug)]
pub(crate) struct Flow {
    /// None once nobody reads any more: what comes then is dropped.
    outlet: Option<Outlet>,
    waiting: Option<Piece>,
    json: Option<Json>,
    line: Line,
}

/// Where a reader of stdout stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Start,
    Within,
}

impl Flow {
    pub(crate) fn open(json: Option<Json>) -> io::Result<Self> {
        Ok(Self {
            outlet: Some(Outlet::open()?),
            waiting: None,
            json,
            line: Line::Start,
        })
    }

    /// Whether something waits, and nothing more should come.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.is_some()
    }

    /// What is to be seen of an item.
    pub(crate) fn put(&mut self, item: &AttachItem) -> io::Result<()> {
        let piece = match (&self.json, item) {
            (Some(json), item) => {
                let mut bytes = Vec::new();
                json.line(&mut bytes, &response(item))?;
                stdout(bytes)
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

    /// The id of a task that goes on, on a line of its own. In JSON the release has it.
    pub(crate) fn put_id(&mut self, id: &str) {
        if self.json.is_none() {
            let start = match self.line {
                Line::Start => "",
                Line::Within => "\n",
            };
            self.push(stdout(format!("{start}{id}\n").into_bytes()));
        }
    }

    fn push(&mut self, piece: Piece) {
        if let (Target::Stdout, Some(last)) = (piece.target, piece.bytes.last()) {
            self.line = match last {
                b'\n' => Line::Start,
                _ => Line::Within,
            };
        }
        self.waiting = Some(piece).filter(|_| self.outlet.is_some());
    }

    /// Until what waits is on its way. Where nothing does, only a failure ends it; after one, there is
    /// nothing left to fail.
    pub(crate) async fn advance(&mut self) -> io::Result<()> {
        let Some(outlet) = &self.outlet else {
            return std::future::pending().await;
        };
        if self.waiting.is_some() {
            if let Some(room) = outlet.room().await {
                if let Some(piece) = self.waiting.take() {
                    room.send(piece);
                }
                return Ok(());
            }
        } else {
            outlet.failed().await;
        }
        self.waiting = None;
        Err(self.outlet.take().map_or_else(gone, Outlet::error))
    }

    /// Until everything is written.
    pub(crate) async fn finish(mut self) -> io::Result<()> {
        while self.is_full() {
            self.advance().await?;
        }
        match self.outlet {
            Some(outlet) => outlet.finish().await,
            None => Ok(()),
        }
    }
}

fn gone() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

fn stdout(bytes: Vec<u8>) -> Piece {
    Piece {
        target: Target::Stdout,
        bytes: Bytes::from(bytes),
    }
}

/// The message of the contract that an item was made from.
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
