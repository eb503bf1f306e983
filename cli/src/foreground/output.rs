//! The output of a session: formats items and hands them to the writer thread. It keeps one piece at a
//! time, and the session reads nothing while that one waits.

use std::io::{self, IsTerminal};

use heeler_client::{AttachEnded, AttachItem, Bytes, Chunk, v1};

use super::{
    keyboard::Keyboard,
    query_filter::QueryFilter,
    terminal_modes::TerminalModes,
    writer_thread::{Piece, Target, WriterThread},
};
use crate::render::{gap, json::Json};

#[derive(Debug)]
pub(crate) struct ForegroundOutput {
    /// None after a failed write: later output is dropped.
    writer: Option<WriterThread>,
    waiting: Option<Piece>,
    json: Option<Json>,
    column: Column,
    /// The modes of this terminal that the output of a task with a terminal has changed.
    modes: Option<TerminalModes>,
    /// Holds the queries of earlier output back from this terminal.
    filter: Option<QueryFilter>,
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
            modes: None,
            filter: None,
        })
    }

    /// Follows what the output of a task with a terminal changes on this one, to change it back.
    pub(crate) fn follow_modes(mut self) -> Self {
        self.modes =
            (self.json.is_none() && io::stdout().is_terminal()).then(TerminalModes::default);
        self
    }

    /// Holds back the queries to a terminal in the output before an offset. They would be answered again.
    pub(crate) fn hold_queries_before(mut self, live: u64) -> Self {
        let has_terminal = io::stdout().is_terminal() || io::stdin().is_terminal();
        let is_text = self.json.is_none();
        self.filter = (is_text && has_terminal).then(|| QueryFilter::before(live));
        self
    }

    /// Returns whether a piece waits for the writer.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.is_some()
    }

    /// Puts a piece of output.
    pub(crate) fn put_chunk(&mut self, chunk: Chunk) -> io::Result<()> {
        self.put(&AttachItem::Output(chunk))
    }

    /// Waits until all pieces so far are written.
    pub(crate) async fn written(&mut self) -> io::Result<()> {
        self.make_room().await?;
        let Some(writer) = &self.writer else {
            return Err(broken_pipe());
        };
        // The writer has a place for one piece: it takes this one after it has written those before.
        if let Some(permit) = writer.reserve().await {
            permit.send(stdout(Vec::new()));
        }
        match writer.reserve().await {
            Some(_) => Ok(()),
            None => Err(broken_pipe()),
        }
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
                if let Some(filter) = &mut self.filter {
                    filter.skip_gap();
                }
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
                bytes: match &mut self.filter {
                    Some(filter) => filter.pass(chunk.offset, chunk.data.clone()),
                    None => chunk.data.clone(),
                },
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
        if let (Target::Stdout, Some(modes)) = (piece.target, &mut self.modes) {
            modes.read(&piece.bytes);
        }
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

    /// Leaves the terminal as it was, for as long as the command is suspended.
    pub(crate) async fn suspend_modes(&mut self) -> io::Result<()> {
        let Some(restore) = self.modes.as_ref().map(TerminalModes::restore) else {
            return Ok(());
        };
        self.make_room().await?;
        self.waiting = Some(stdout(restore)).filter(|_| self.writer.is_some());
        self.written().await
    }

    /// Changes the terminal again.
    pub(crate) async fn resume_modes(&mut self) -> io::Result<()> {
        let Some(redo) = self.modes.as_ref().map(TerminalModes::redo) else {
            return Ok(());
        };
        self.make_room().await?;
        self.waiting = Some(stdout(redo)).filter(|_| self.writer.is_some());
        Ok(())
    }

    async fn make_room(&mut self) -> io::Result<()> {
        while self.is_full() {
            self.advance().await?;
        }
        Ok(())
    }

    /// Writes what is left, leaves the terminal as it was, and puts the end of the session.
    pub(crate) async fn close(
        mut self,
        keyboard: Keyboard,
        ended: Option<&AttachEnded>,
    ) -> io::Result<()> {
        self.make_room().await?;
        if let Some(modes) = self.modes.take() {
            self.push(stdout(modes.restore()));
        }
        if self.writer.is_some() {
            self.written().await?;
        }
        // With it go the modes that keys are read in.
        drop(keyboard);
        if let Some(ended) = ended {
            self.put(&AttachItem::Ended(ended.clone()))?;
            if ended.reason == v1::AttachEndReason::Detached {
                self.put_id(&ended.task.id);
            }
        }
        self.finish().await
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(mut self) -> io::Result<()> {
        self.make_room().await?;
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
