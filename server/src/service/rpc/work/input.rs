//! The messages of a worker that has joined.

use heeler_proto::v1::{self, work_request::Item as In};
use tonic::Status;

use super::Incoming;
use crate::{
    service::wire::{refusal::Refusal, work},
    supervisor::Sign,
    task::{ProgressUpdate, WorkerResult},
};

/// A message of a worker.
#[derive(Debug)]
pub(super) enum Input {
    Progress {
        update: ProgressUpdate,
        sequence: u64,
    },
    Heartbeat(Sign),
    Result {
        result: WorkerResult,
        sequence: u64,
    },
    /// All messages of the mailbox up to this number are received.
    Receipt(u64),
    /// The worker has closed its side.
    Closed,
}

impl Input {
    /// Waits for the next message. Cancel safe.
    pub(super) async fn next(incoming: &mut Incoming) -> Result<Self, Refusal> {
        Self::read(incoming.message().await)
    }

    /// The next message, if it has arrived.
    pub(super) async fn arrived(incoming: &mut Incoming) -> Option<Result<Self, Refusal>> {
        tokio::select! {
            biased;
            message = incoming.message() => Some(Self::read(message)),
            () = std::future::ready(()) => None,
        }
    }

    fn read(message: Result<Option<v1::WorkRequest>, Status>) -> Result<Self, Refusal> {
        let message = message.map_err(|status| Refusal::unreadable(&status))?;
        let Some(v1::WorkRequest { sequence, item }) = message else {
            return Ok(Self::Closed);
        };
        match item {
            Some(In::Progress(update)) => {
                let update = work::update(update).map_err(|refusal| refusal.within("progress"))?;
                Ok(Self::Progress { update, sequence })
            }
            Some(In::Heartbeat(heartbeat)) => Ok(Self::Heartbeat(match heartbeat.lease_only {
                true => Sign::Presence,
                false => Sign::Activity,
            })),
            Some(In::Result(result)) => {
                let result = work::result(result).map_err(|refusal| refusal.within("result"))?;
                Ok(Self::Result { result, sequence })
            }
            Some(In::Receipt(receipt)) => Ok(Self::Receipt(receipt.number)),
            Some(In::Register(_) | In::Join(_)) | None => Err(Refusal::field(
                "item",
                "must be set, and register and join are for the first message",
            )),
        }
    }
}
