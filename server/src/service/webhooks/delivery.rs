//! The delivery of events to one receiver: one at a time, each repeated until the receiver has accepted it.

use std::{sync::Arc, time::Duration};

use heeler_proto::v1::{self, watch_events_response::Item};
use http::HeaderValue;
use prost::{Message as _, bytes::Bytes};
use serde_json::json;
use tokio::time::sleep;
use tokio_stream::StreamExt;

use super::{
    WebhookMeters,
    cursor::Cursor,
    receiver::{Notice, Receiver},
};
use crate::{
    crash,
    service::{Service, http::EventWriter, rpc},
    task::Revision,
};

/// The pause after a failure, which doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// One receiver, and the events that it gets.
#[derive(Debug)]
pub(super) struct Delivery {
    service: Service,
    receiver: Receiver,
    types: Vec<i32>,
    cursor: Cursor,
    writer: Arc<EventWriter>,
    meters: WebhookMeters,
}

/// The end of a stream of events.
enum Stop {
    /// The server shuts down.
    Closing,
    /// The events cannot be read now, or the next ones were pruned.
    Unreadable,
}

impl Delivery {
    pub(super) fn new(
        service: Service,
        receiver: Receiver,
        types: Vec<i32>,
        cursor: Cursor,
        writer: Arc<EventWriter>,
        meters: WebhookMeters,
    ) -> Self {
        Self {
            service,
            receiver,
            types,
            cursor,
            writer,
            meters,
        }
    }

    /// Delivers until the server shuts down.
    pub(super) async fn run(mut self) {
        let mut pauses = Pauses::default();
        loop {
            self.skip_pruned();
            let before = self.cursor.position;
            match self.follow().await {
                Stop::Closing => return,
                Stop::Unreadable if self.service.closing.has_begun() => return,
                Stop::Unreadable => {}
            }
            if self.cursor.position != before {
                pauses = Pauses::default();
            }
            if self.pause(&mut pauses).await.is_err() {
                return;
            }
        }
    }

    /// Goes on at the oldest event, if the next one was pruned.
    fn skip_pruned(&mut self) {
        let (position, oldest) = (self.cursor.position, self.service.journal.oldest());
        if position.revision.0 + 1 < oldest.0 {
            let after = position.revision.0;
            let receiver = self.receiver.name();
            tracing::warn!(
                receiver,
                after,
                oldest = oldest.0,
                "events were pruned before a webhook has delivered them"
            );
            self.cursor.skip_to(oldest);
        }
    }

    /// Delivers the events of one stream.
    async fn follow(&mut self) -> Stop {
        let after = self.cursor.position.revision;
        let events = rpc::events_after(&self.service, after, self.types.clone());
        let mut events = match events.await {
            Ok(events) => events,
            Err(refusal) => return self.unreadable(&refusal.into()),
        };
        while let Some(next) = events.next().await {
            let message = match next {
                Ok(message) => message.into_bytes(),
                Err(status) => return self.unreadable(&status),
            };
            if let Err(stop) = self.take(message).await {
                return stop;
            }
        }
        Stop::Unreadable
    }

    fn unreadable(&self, status: &tonic::Status) -> Stop {
        let (receiver, problem) = (self.receiver.name(), status.message());
        tracing::debug!(receiver, problem, "the events of a webhook have ended");
        Stop::Unreadable
    }

    /// Delivers an event, or moves on to a bookmark.
    async fn take(&mut self, message: Bytes) -> Result<(), Stop> {
        let item = v1::WatchEventsResponse::decode(message.clone());
        let revision = match item.ok().and_then(|response| response.item) {
            Some(Item::Event(event)) => {
                let revision = Revision(event.revision);
                match self.notice(&event, &message) {
                    Some(notice) => {
                        self.deliver(&notice).await?;
                        self.cursor.missed = None;
                    }
                    None => self.cursor.skip(revision),
                }
                revision
            }
            Some(Item::Bookmark(bookmark)) => Revision(bookmark.revision),
            Some(Item::Initial(_)) | None => return Ok(()),
        };
        self.cursor.advance(revision).await;
        Ok(())
    }

    /// The event as it is sent; `None` if it cannot be written, which is logged, and told to the receiver later.
    fn notice(&self, event: &v1::TaskEvent, message: &[u8]) -> Option<Notice> {
        let name = event.r#type().as_str_name();
        let name = name.strip_prefix("TASK_EVENT_TYPE_").unwrap_or(name);
        let epoch = self.cursor.position.epoch;
        let id = format!("{epoch}/{}", event.revision);
        match self.body(message) {
            Ok(body) => Some(Notice {
                id: HeaderValue::try_from(id).ok()?,
                event: HeaderValue::from_static(name),
                body,
            }),
            Err(error) => {
                tracing::error!(id, %error, "an event cannot be written for a webhook; the next one says that it was missed");
                None
            }
        }
    }

    /// The message as WatchEvents sends it, with the epoch, and with what was missed before it.
    fn body(&self, message: &[u8]) -> Result<Bytes, String> {
        let mut body = self.writer.write(message)?;
        let mut more = json!({"epoch": self.cursor.position.epoch.to_string()});
        if let Some(missed) = &self.cursor.missed {
            let before = missed.before.map(|revision| revision.0.to_string());
            more["missed"] = json!({
                "epoch": missed.after.epoch.to_string(),
                "afterRevision": missed.after.revision.0.to_string(),
                "beforeRevision": before,
            });
        }
        // Two objects become one.
        if body.pop() != Some(b'}') {
            return Err("the event is no JSON object".to_owned());
        }
        let more = more.to_string();
        body.extend_from_slice(more.replacen('{', ",", 1).as_bytes());
        Ok(body.into())
    }

    /// Sends an event until the receiver has accepted it.
    async fn deliver(&self, notice: &Notice) -> Result<(), Stop> {
        let mut pauses = Pauses::default();
        loop {
            let error = match self.receiver.send(notice).await {
                Ok(()) => {
                    self.meters.delivered.inc();
                    crash::point("webhook.delivered");
                    return Ok(());
                }
                Err(error) => error,
            };
            self.meters.failed.inc();
            let (receiver, pause) = (self.receiver.name(), pauses.next);
            tracing::warn!(receiver, %error, ?pause, "a webhook was not accepted; it is repeated");
            self.pause(&mut pauses).await?;
        }
    }

    /// Waits before the next attempt.
    async fn pause(&self, pauses: &mut Pauses) -> Result<(), Stop> {
        tokio::select! {
            () = sleep(pauses.take()) => Ok(()),
            () = self.service.closing.begun() => Err(Stop::Closing),
        }
    }
}

/// The pauses between attempts.
#[derive(Debug)]
struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { next: FIRST_PAUSE }
    }
}

impl Pauses {
    /// The next pause. Up to half of it is left out by chance, so that receivers are not asked in step.
    fn take(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST_PAUSE);
        let chance = getrandom::u32().unwrap_or(0);
        pause - pause.mul_f64(f64::from(chance) / f64::from(u32::MAX) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H7
    #[test]
    fn pauses_double_up_to_the_longest_and_are_shortened_by_half_at_most() {
        let mut pauses = Pauses::default();
        let mut full = FIRST_PAUSE;
        for _ in 0..20 {
            let pause = pauses.take();
            assert!(pause <= full && pause >= full / 2, "{pause:?} of {full:?}");
            full = (full * 2).min(LONGEST_PAUSE);
        }
        assert_eq!(full, LONGEST_PAUSE);
    }
}
