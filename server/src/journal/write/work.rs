//! The progress of tasks and their mailboxes.
//!
//! The owner of a task decides what is written: it numbers blocks and messages. Here they become rows.

use std::ops::Range;

use rusqlite::{Connection, params};

use super::{operation::Batch, reserve::UseOfReserve};
use crate::{
    journal::{
        JournalError, WorkRecord,
        record::{self, FORMAT, int},
        request::TextDigest,
        sql,
    },
    task::{Block, LATEST_BLOCKS, MESSAGE_RECEIPTS, Seq, TaskMessage},
};

/// Blocks that grow the WAL as much as one event.
const BLOCKS_PER_EVENT: u64 = 2;

/// A change of the work of one task.
#[derive(Debug)]
pub(in crate::journal) enum WorkChange {
    /// Its progress and the blocks that were added.
    Report {
        record: WorkRecord,
        blocks: Vec<Block>,
    },
    PutMessage {
        message: TaskMessage,
        digest: TextDigest,
    },
    /// The worker has received all messages up to this number.
    ReceiveMessages { up_to: u64 },
}

impl WorkChange {
    /// A receipt may use the reserve of a full disk: there are at most as many as messages.
    pub(super) fn use_of_reserve(&self) -> UseOfReserve {
        match self {
            Self::Report { .. } | Self::PutMessage { .. } => UseOfReserve::Denied,
            Self::ReceiveMessages { .. } => UseOfReserve::Allowed,
        }
    }

    pub(super) fn apply(&self, batch: &mut Batch<'_>, seq: Seq) -> Result<(), JournalError> {
        let connection = batch.connection;
        match self {
            Self::Report { record, blocks } => {
                set_work(connection, seq, record)
                    .and_then(|()| set_blocks(connection, seq, blocks))
                    .map_err(JournalError::storage("writing progress"))?;
                batch.upkeep += 1 + blocks.len() as u64 / BLOCKS_PER_EVENT;
            }
            Self::PutMessage { message, digest } => {
                put_message(connection, seq, message, digest)
                    .map_err(JournalError::storage("writing a message"))?;
                batch.upkeep += 1;
            }
            Self::ReceiveMessages { up_to } => {
                receive_messages(connection, seq, *up_to)
                    .map_err(JournalError::storage("writing a receipt"))?;
                batch.upkeep += 1;
            }
        }
        Ok(())
    }
}

/// The places of a task's blocks.
pub(in crate::journal) fn places(Seq(seq): Seq) -> Range<i64> {
    let ring = LATEST_BLOCKS as u64;
    int(seq * ring)..int((seq + 1) * ring)
}

fn set_work(connection: &Connection, seq: Seq, record: &WorkRecord) -> rusqlite::Result<()> {
    let progress = record.progress.as_deref().map(json).transpose()?;
    let worker = record.worker.map(|worker| worker.to_string());
    connection.prepare_cached(sql::SET_WORK)?.execute(params![
        int(seq.0),
        FORMAT,
        progress,
        worker,
        int(record.sequence),
    ])?;
    Ok(())
}

fn set_blocks(connection: &Connection, seq: Seq, blocks: &[Block]) -> rusqlite::Result<()> {
    let first = places(seq).start;
    for Block { number, block, at } in blocks {
        let place = first + int(number % LATEST_BLOCKS as u64);
        connection.prepare_cached(sql::SET_BLOCK)?.execute(params![
            place,
            int(*number),
            int(at.0),
            record::block_name(block.kind),
            block.name,
            block.text,
            int(block.text_bytes),
        ])?;
    }
    Ok(())
}

fn put_message(
    connection: &Connection,
    seq: Seq,
    message: &TaskMessage,
    digest: &TextDigest,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(sql::INSERT_MESSAGE)?
        .execute(params![
            int(seq.0),
            int(message.number),
            int(message.at.0),
            json(&message.message.sender)?,
            message.message.message_id,
            digest.as_bytes(),
            message.message.text,
        ])?;
    Ok(())
}

/// The latest receipt stays, so that its number is not given again.
fn receive_messages(connection: &Connection, seq: Seq, up_to: u64) -> rusqlite::Result<()> {
    let (task, number) = (int(seq.0), int(up_to));
    connection
        .prepare_cached(sql::RECEIVE_MESSAGES)?
        .execute([task, number])?;
    let forgotten = int(up_to.saturating_sub(MESSAGE_RECEIPTS));
    connection
        .prepare_cached(sql::DELETE_RECEIPTS)?
        .execute([task, forgotten])?;
    Ok(())
}

fn json<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    let text = serde_json::to_string(value);
    text.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Deletes the rows of a removed task.
pub(super) fn delete(connection: &Connection, seq: Seq) -> rusqlite::Result<()> {
    let places = places(seq);
    connection
        .prepare_cached(sql::DELETE_BLOCKS)?
        .execute([places.start, places.end])?;
    for statement in [sql::DELETE_WORK, sql::DELETE_MESSAGES] {
        connection
            .prepare_cached(statement)?
            .execute([int(seq.0)])?;
    }
    Ok(())
}
