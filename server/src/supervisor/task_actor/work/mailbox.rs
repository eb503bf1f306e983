//! The mailbox of the task. The texts are in the journal; here are the numbers, sizes and ids.

use std::{collections::VecDeque, sync::Arc};

use super::TaskActor;
use crate::{
    crash,
    journal::{MessageEntry, TextDigest},
    supervisor::calls::work::WorkError,
    task::{
        MAILBOX_BYTES, MAILBOX_MESSAGES, MESSAGE_RECEIPTS, MessageDraft, TaskId, TaskMessage,
        Timestamp,
    },
};

/// The messages that wait, and those that were received and are remembered by their ids; in order.
#[derive(Debug, Default)]
pub(in crate::supervisor::task_actor) struct Mailbox(VecDeque<MessageEntry>);

impl Mailbox {
    fn latest(&self) -> u64 {
        self.0.back().map_or(0, |entry| entry.number)
    }

    /// The number of the message with this id. The same id with another text is refused.
    fn sent_before(
        &self,
        task: &TaskId,
        message_id: &str,
        digest: &TextDigest,
    ) -> Result<Option<u64>, WorkError> {
        let mut entries = self.0.iter();
        match entries.find(|entry| entry.message_id.as_deref() == Some(message_id)) {
            Some(entry) if entry.digest == *digest => Ok(Some(entry.number)),
            Some(_) => Err(WorkError::MessageIdReused {
                id: task.clone(),
                message_id: message_id.to_owned(),
            }),
            None => Ok(None),
        }
    }

    fn check_room(&self, task: &TaskId, bytes: usize) -> Result<(), WorkError> {
        let waiting: Vec<usize> = self.0.iter().filter_map(|entry| entry.bytes).collect();
        let waiting_bytes: usize = waiting.iter().sum();
        if waiting.len() < MAILBOX_MESSAGES && waiting_bytes + bytes <= MAILBOX_BYTES {
            return Ok(());
        }
        Err(WorkError::MailboxFull {
            id: task.clone(),
            waiting: waiting.len(),
            max: MAILBOX_MESSAGES,
            waiting_bytes,
            max_bytes: MAILBOX_BYTES,
        })
    }

    /// Returns false if none of the messages up to this number waits.
    fn has_waiting(&self, up_to: u64) -> bool {
        let mut entries = self.0.iter();
        entries.any(|entry| entry.number <= up_to && entry.bytes.is_some())
    }

    fn receive(&mut self, up_to: u64) {
        let received = self.0.iter_mut().filter(|entry| entry.number <= up_to);
        received.for_each(|entry| entry.bytes = None);
        let forgotten = up_to.saturating_sub(MESSAGE_RECEIPTS);
        self.0
            .retain(|entry| entry.number > forgotten || entry.bytes.is_some());
    }
}

impl TaskActor {
    /// Records a message and announces it to the worker. One with a known id is not recorded again.
    pub(super) async fn put_message(&mut self, message: MessageDraft) -> Result<u64, WorkError> {
        self.check_session(None)?;
        let task = self.life.task.id.clone();
        let digest = self.shared.parts.journal.digest(&message.text);
        let mailbox = self.mailbox().await?;
        if let Some(message_id) = &message.message_id
            && let Some(number) = mailbox.sent_before(&task, message_id, &digest)?
        {
            return Ok(number);
        }
        mailbox.check_room(&task, message.text.len())?;
        let entry = MessageEntry {
            number: mailbox.latest() + 1,
            message_id: message.message_id.clone(),
            digest: digest.clone(),
            bytes: Some(message.text.len()),
        };
        let number = entry.number;
        let message = TaskMessage {
            number,
            message,
            at: Timestamp::now(),
        };
        crash::point("work.before-message");
        let journal = &self.shared.parts.journal;
        let recorded = journal.put_message(self.life.task.seq, message, digest);
        recorded.await.map_err(Arc::new)?;
        crash::point("work.message-recorded");
        self.mailbox().await?.0.push_back(entry);
        self.channels.worker.announce_message(number);
        Ok(number)
    }

    /// Records that the worker has received all messages up to a number.
    pub(super) async fn messages_received(&mut self, number: u64) -> Result<(), WorkError> {
        let mailbox = self.mailbox().await?;
        let number = number.min(mailbox.latest());
        if !mailbox.has_waiting(number) {
            return Ok(());
        }
        crash::point("work.before-receipt");
        let journal = &self.shared.parts.journal;
        let recorded = journal.receive_messages(self.life.task.seq, number);
        recorded.await.map_err(Arc::new)?;
        crash::point("work.receipt-recorded");
        self.mailbox().await?.receive(number);
        Ok(())
    }

    /// The mailbox, read from the journal when it is first needed.
    async fn mailbox(&mut self) -> Result<&mut Mailbox, WorkError> {
        if self.mailbox.is_none() {
            let journal = &self.shared.parts.journal;
            let entries = journal
                .mailbox(self.life.task.seq)
                .await
                .map_err(Arc::new)?;
            self.mailbox = Some(Box::new(Mailbox(entries.into())));
        }
        Ok(self.mailbox.get_or_insert_default())
    }
}
