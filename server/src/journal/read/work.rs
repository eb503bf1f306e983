//! The progress of tasks and their mailboxes.

use std::{collections::HashMap, sync::Arc};

use rusqlite::{Connection, OptionalExtension, Row};
use uuid::Uuid;

use super::{Lane, ReadPool};
use crate::{
    journal::{
        Journal, JournalError, RecordError,
        record::{self, uint},
        request::TextDigest,
        sql,
        write::places,
    },
    task::{Block, MessageDraft, NewBlock, Progress, Seq, TaskMessage, Timestamp},
};

/// The record of a task's work: it exists once a worker has joined the task or reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkRecord {
    pub(crate) progress: Option<Arc<Progress>>,
    /// The latest worker that was connected.
    pub(crate) worker: Option<Uuid>,
    /// The latest number of its reports.
    pub(crate) sequence: u64,
}

/// A message of a mailbox, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageEntry {
    pub(crate) number: u64,
    pub(crate) message_id: Option<String>,
    pub(crate) digest: TextDigest,
    /// The length of the text; `None` once it was received.
    pub(crate) bytes: Option<usize>,
}

impl Journal {
    /// The records of all live tasks that have one. An unreadable one is left out.
    pub(crate) async fn live_work(&self) -> Result<HashMap<Seq, WorkRecord>, JournalError> {
        let read = |connection: &Connection| {
            let mut select = connection.prepare_cached(sql::LIVE_WORK)?;
            let mut rows = select.query([])?;
            let mut found = HashMap::new();
            while let Some(row) = rows.next()? {
                found.extend(readable(work(row)?));
            }
            Ok(found)
        };
        let read = move |_: &ReadPool, connection: &_| {
            read(connection).map_err(JournalError::storage("reading progress"))
        };
        self.shared.pool.read_long(Lane::Query, read).await
    }

    /// The record of a task's work.
    pub(crate) async fn work_of(&self, seq: Seq) -> Result<Option<WorkRecord>, JournalError> {
        let read = |connection: &Connection| {
            let mut select = connection.prepare_cached(sql::WORK_OF)?;
            let found = select.query_row([record::int(seq.0)], work).optional()?;
            Ok(found.and_then(readable).map(|(_, record)| record))
        };
        let pool = &self.shared.pool;
        pool.read(|_, connection| {
            read(connection).map_err(JournalError::storage("reading progress"))
        })
    }

    /// The latest blocks of a task, oldest first. An unreadable one is left out.
    pub(crate) async fn blocks(&self, seq: Seq, count: usize) -> Result<Vec<Block>, JournalError> {
        let read = move |connection: &Connection| {
            let places = places(seq);
            let mut select = connection.prepare_cached(sql::BLOCKS_OF)?;
            let mut rows = select.query([places.start, places.end])?;
            let mut blocks = Vec::new();
            while let Some(row) = rows.next()? {
                blocks.extend(readable(block(row)?));
            }
            blocks.sort_by_key(|block: &Block| block.number);
            blocks.drain(..blocks.len().saturating_sub(count));
            Ok(blocks)
        };
        let pool = &self.shared.pool;
        pool.read(|_, connection| read(connection).map_err(JournalError::storage("reading blocks")))
    }

    /// Some messages after a number that were not received, in order. An unreadable one is left out.
    pub(crate) async fn messages_after(
        &self,
        seq: Seq,
        number: u64,
        limit: usize,
    ) -> Result<Vec<TaskMessage>, JournalError> {
        let read = move |connection: &Connection| {
            let mut select = connection.prepare_cached(sql::MESSAGES_AFTER)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut rows = select.query([record::int(seq.0), record::int(number), limit])?;
            let mut messages = Vec::new();
            while let Some(row) = rows.next()? {
                messages.extend(readable(message(row)?));
            }
            Ok(messages)
        };
        let pool = &self.shared.pool;
        pool.read(|_, connection| {
            read(connection).map_err(JournalError::storage("reading messages"))
        })
    }

    /// The messages that a task remembers, in order.
    pub(crate) async fn mailbox(&self, seq: Seq) -> Result<Vec<MessageEntry>, JournalError> {
        let read = move |connection: &Connection| {
            let mut select = connection.prepare_cached(sql::MAILBOX_OF)?;
            let rows = select.query_map([record::int(seq.0)], entry)?;
            rows.collect::<rusqlite::Result<_>>()
        };
        let pool = &self.shared.pool;
        pool.read(|_, connection| {
            read(connection).map_err(JournalError::storage("reading messages"))
        })
    }
}

/// The value of a row, unless its record is damaged.
fn readable<T>(read: Result<T, RecordError>) -> Option<T> {
    read.inspect_err(|error| tracing::error!(%error, "a record of a worker cannot be read"))
        .ok()
}

fn work(row: &Row<'_>) -> rusqlite::Result<Result<(Seq, WorkRecord), RecordError>> {
    let (seq, format) = (Seq(uint(row.get(0)?)), row.get(1)?);
    let progress = row.get_ref(2)?.as_bytes_or_null()?;
    let worker: Option<String> = row.get(3)?;
    let sequence = uint(row.get(4)?);
    let progress = progress.map(|record| record::progress(format, record));
    Ok(progress.transpose().map(|progress| {
        let record = WorkRecord {
            progress: progress.map(Arc::new),
            // An id that no worker can have is that of none.
            worker: worker.and_then(|worker| worker.parse().ok()),
            sequence,
        };
        (seq, record)
    }))
}

fn block(row: &Row<'_>) -> rusqlite::Result<Result<Block, RecordError>> {
    let kind: String = row.get(2)?;
    let (name, text) = (row.get(3)?, row.get(4)?);
    let (number, at, text_bytes) = (row.get(0)?, row.get(1)?, row.get(5)?);
    Ok(record::block_kind(&kind).map(|kind| Block {
        number: uint(number),
        at: Timestamp(uint(at)),
        block: NewBlock {
            kind,
            text,
            text_bytes: uint(text_bytes),
            name,
        },
    }))
}

fn message(row: &Row<'_>) -> rusqlite::Result<Result<TaskMessage, RecordError>> {
    let (number, at) = (uint(row.get(0)?), Timestamp(uint(row.get(1)?)));
    let sender = record::sender(row.get_ref(2)?.as_bytes()?);
    let (message_id, text) = (row.get(3)?, row.get(4)?);
    Ok(sender.map(|sender| TaskMessage {
        number,
        message: MessageDraft {
            text,
            sender,
            message_id,
        },
        at,
    }))
}

fn entry(row: &Row<'_>) -> rusqlite::Result<MessageEntry> {
    let bytes: Option<i64> = row.get(3)?;
    Ok(MessageEntry {
        number: uint(row.get(0)?),
        message_id: row.get(1)?,
        digest: TextDigest::stored(row.get_ref(2)?.as_bytes()?),
        bytes: bytes.map(|bytes| uint(bytes) as usize),
    })
}
