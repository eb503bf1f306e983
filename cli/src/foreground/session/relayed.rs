//! A session whose streams the shim reads and writes itself, from the beginning of the relay to what follows its end.

use std::io;

use heeler_client::{Attach, AttachEnded, AttachOptions, InputOptions, v1::AttachEndReason};
use tokio::io::AsyncWriteExt;

use super::ForegroundSession;
use crate::foreground::{
    input::{Input, watch_caller},
    late_output::{LateOutput, ReadUntil},
    relay::Relay,
};

/// An offset beyond any output.
const NO_OUTPUT: u64 = 1 << 62;

/// A relay, and what goes on where it ends.
#[derive(Debug)]
pub(super) struct Relayed {
    relay: Relay,
    writer_id: String,
    options: fn(u64) -> AttachOptions,
    /// The end of the Attach stream, which is handled once the relay has ended as well.
    ended: Option<AttachEnded>,
}

impl Relayed {
    /// Asks the shim to end the relay with the Attach stream.
    pub(super) async fn leave(&mut self, ended: AttachEnded) {
        self.ended = Some(ended);
        self.relay.leave().await;
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ended.is_some()
    }
}

impl ForegroundSession {
    /// Passes stdin on to the task: lets its shim read and write this command's streams, if it can, or passes them on
    /// itself. Returns the Attach stream for the rest. `options`: those of an Attach from an offset on.
    pub(crate) async fn pass_stdin(
        &mut self,
        uid: &str,
        options: fn(u64) -> AttachOptions,
    ) -> io::Result<Attach> {
        // With a random id, by which the shim knows this client.
        let mut claim = self.task.input_with(InputOptions::default().take_over());
        let writer_id = claim.writer_id().to_owned();
        let relay = match claim.flush().await {
            Ok(()) => {
                let (output, at) = (&mut self.output, &mut self.progress.offset);
                Relay::begin(&self.task, uid, &writer_id, output, at).await
            }
            Err(_) => None,
        };
        let Some(relay) = relay else {
            let input = Input::stdin()?.writer_id(&writer_id);
            self.input = Some(input.pass_to(&self.task));
            return Ok(self.task.attach_with(options(self.progress.offset)));
        };
        self.input = Some(watch_caller(&writer_id)?);
        self.relay = Some(Relayed {
            relay,
            writer_id,
            options,
            ended: None,
        });
        Ok(self.task.attach_with(options(NO_OUTPUT)))
    }

    /// Goes on where a relay has ended, at the offset of the first byte that is left: passes the streams on itself, by
    /// the Attach that it returns, or reads output that was left at the end like late output.
    pub(super) fn after_relay(&mut self, end: Option<u64>) -> io::Result<Option<Attach>> {
        let Some(relayed) = self.relay.take() else {
            return Ok(None);
        };
        let offset = end.unwrap_or(NO_OUTPUT);
        self.progress.offset = offset;
        let Some(ended) = relayed.ended else {
            let input = Input::stdin()?.writer_id(&relayed.writer_id);
            self.input = Some(input.pass_to(&self.task));
            return Ok(Some(self.task.attach_with((relayed.options)(offset))));
        };
        if ended.reason == AttachEndReason::Finished && offset < ended.task.output_bytes {
            let late = LateOutput::open(&self.task, offset, ReadUntil::TaskEnd);
            self.late_output = Some(late);
        }
        self.handle_ended(ended);
        Ok(None)
    }
}

/// The end of a relay, and the offset of the first byte that is left; never returns without one.
pub(super) async fn ended(relayed: &mut Option<Relayed>) -> Option<u64> {
    match relayed {
        Some(relayed) => relayed.relay.ended().await,
        None => std::future::pending().await,
    }
}
