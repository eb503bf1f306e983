//! The position of an attach: what was received, and what to request next. Pure: messages in, items out.

use std::{collections::VecDeque, time::Duration};

use heeler_proto::v1::{
    AttachRequest, AttachResponse, BackgroundTask, Placement, attach_request::Start,
    attach_response::Item,
};

use super::{AttachEnded, AttachItem};
use crate::{
    backoff,
    client::Stub,
    error::Error,
    stream::{
        output::Chunk,
        resume::{self, Asked},
    },
    time,
};

/// Attempts to reconnect within the reattach window.
const TRIES_IN_A_WINDOW: u32 = 4;

/// The position of an attach in a task's output.
#[derive(Debug)]
pub(super) struct Cursor {
    /// The next request.
    request: AttachRequest,
    stage: Stage,
    longest_pause: Duration,
    ready: VecDeque<AttachItem>,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// `attached` was not received yet.
    New,
    Attached,
    Ended,
}

impl Cursor {
    pub(super) fn new(request: AttachRequest) -> Self {
        Self {
            request,
            stage: Stage::New,
            longest_pause: backoff::LONGEST,
            ready: VecDeque::new(),
        }
    }

    fn attached(&mut self, task: BackgroundTask) {
        if self.stage == Stage::New {
            self.stage = Stage::Attached;
            // A client of a foreground task must not follow it in the background after a break.
            self.request.foreground_only |= task.placement() == Placement::Foreground;
            let foreground = task.spec.as_ref().and_then(|spec| spec.foreground.as_ref());
            if let Some(window) = foreground.and_then(|foreground| foreground.reattach_window) {
                self.longest_pause = time::from_proto(window) / TRIES_IN_A_WINDOW;
            }
            self.ready.push_back(AttachItem::Attached(task));
        }
    }
}

impl resume::Cursor for Cursor {
    type Message = AttachResponse;
    type Item = AttachItem;

    fn ask(&self, mut stub: Stub) -> Asked<AttachResponse> {
        let request = self.request.clone();
        Box::pin(async move { stub.attach(request).await })
    }

    fn take(&mut self, message: AttachResponse) -> Result<(), Error> {
        let missing = || Error::Incomplete { field: "task" };
        match message.item {
            Some(Item::Attached(attached)) => self.attached(attached.task.ok_or_else(missing)?),
            Some(Item::Output(output)) => {
                self.request.start = Some(Start::Offset(output.next_offset));
                let chunks = output.chunks.into_iter().map(Chunk::from);
                self.ready.extend(chunks.map(AttachItem::Output));
            }
            Some(Item::Ended(ended)) => {
                let reason = ended.reason();
                let task = ended.task.ok_or_else(missing)?;
                self.stage = Stage::Ended;
                self.ready
                    .push_back(AttachItem::Ended(AttachEnded { task, reason }));
            }
            // An item of a newer daemon.
            None => {}
        }
        Ok(())
    }

    fn give(&mut self) -> Option<AttachItem> {
        self.ready.pop_front()
    }

    /// Every item is complete by itself.
    fn broke(&mut self) {}

    fn longest_pause(&self) -> Duration {
        self.longest_pause
    }

    fn is_over(&self) -> bool {
        self.stage == Stage::Ended
    }
}

#[cfg(test)]
mod tests {
    use heeler_proto::v1::{
        self, AttachEndReason, Attached, AttachedOutput, OutputChunk, output_chunk::Content,
    };

    use super::{resume::Cursor as _, *};

    fn message(item: Item) -> AttachResponse {
        AttachResponse { item: Some(item) }
    }

    fn attached(placement: Placement) -> AttachResponse {
        let foreground = v1::ForegroundPolicy {
            reattach_window: Some(time::to_proto(Duration::from_secs(2))),
            ..v1::ForegroundPolicy::default()
        };
        let spec = v1::TaskSpec {
            foreground: Some(foreground),
            ..v1::TaskSpec::default()
        };
        let task = BackgroundTask {
            placement: placement.into(),
            spec: Some(spec),
            ..BackgroundTask::default()
        };
        message(Item::Attached(Attached { task: Some(task) }))
    }

    fn output(offset: u64, data: &'static [u8]) -> AttachResponse {
        let chunk = OutputChunk {
            offset,
            content: Some(Content::Data(data.into())),
            ..OutputChunk::default()
        };
        message(Item::Output(AttachedOutput {
            next_offset: offset + data.len() as u64,
            chunks: vec![chunk],
        }))
    }

    fn items(cursor: &mut Cursor) -> Vec<AttachItem> {
        std::iter::from_fn(|| cursor.give()).collect()
    }

    /// F6
    #[test]
    fn after_a_break_it_resumes_at_the_next_byte_in_the_foreground_only() {
        let mut cursor = Cursor::new(AttachRequest::default());
        assert!(!cursor.request.foreground_only);
        cursor.take(attached(Placement::Foreground)).unwrap();
        cursor.take(output(0, b"abc")).unwrap();
        cursor.broke();
        assert_eq!(cursor.request.start, Some(Start::Offset(3)));
        assert!(cursor.request.foreground_only);
        assert_eq!(cursor.longest_pause(), Duration::from_millis(500));
        cursor.take(attached(Placement::Background)).unwrap();
        cursor.take(output(3, b"d")).unwrap();
        let given = items(&mut cursor);
        assert!(
            matches!(
                given[..],
                [
                    AttachItem::Attached(_),
                    AttachItem::Output(_),
                    AttachItem::Output(_)
                ]
            ),
            "{given:?}"
        );
    }

    #[test]
    fn a_background_task_is_followed_after_a_break() {
        let mut cursor = Cursor::new(AttachRequest::default());
        cursor.take(attached(Placement::Background)).unwrap();
        assert!(!cursor.request.foreground_only);
    }

    #[test]
    fn ended_is_the_last_item() {
        let mut cursor = Cursor::new(AttachRequest::default());
        let ended = v1::AttachEnded {
            task: Some(BackgroundTask::default()),
            reason: AttachEndReason::Detached.into(),
        };
        cursor.take(message(Item::Ended(ended))).unwrap();
        assert!(cursor.is_over());
        assert!(matches!(
            items(&mut cursor)[..],
            [AttachItem::Ended(AttachEnded {
                reason: AttachEndReason::Detached,
                ..
            })]
        ));
        let bare = message(Item::Ended(v1::AttachEnded::default()));
        assert!(cursor.take(bare).is_err());
    }
}
