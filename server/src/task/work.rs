//! The vocabulary of workers: the progress that they report, the results that they deliver, and the
//! messages that they receive.

mod message;
mod progress;
mod result;

pub(crate) use message::{
    MAILBOX_BYTES, MAILBOX_MESSAGES, MESSAGE_RECEIPTS, MessageDraft, TaskMessage,
};
pub(crate) use progress::{
    Block, BlockKind, LATEST_BLOCKS, NewBlock, Progress, ProgressUpdate, Report, ReportedBy,
};
pub(crate) use result::{WorkerResult, WorkerStatus};
