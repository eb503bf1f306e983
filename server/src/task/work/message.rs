//! The messages in the mailbox of a task.

use crate::task::{Actor, Timestamp};

/// The most messages that wait for the worker of one task, and the most bytes of them.
pub(crate) const MAILBOX_MESSAGES: usize = 100;
pub(crate) const MAILBOX_BYTES: usize = 1 << 20;
/// The number of received messages whose ids a task remembers.
pub(crate) const MESSAGE_RECEIPTS: u64 = 256;

/// A message to the worker of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageDraft {
    pub(crate) text: String,
    pub(crate) sender: Actor,
    /// The sender's id for it.
    pub(crate) message_id: Option<String>,
}

/// A message in a mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskMessage {
    /// 1 for the first message of the task.
    pub(crate) number: u64,
    pub(crate) message: MessageDraft,
    pub(crate) at: Timestamp,
}
