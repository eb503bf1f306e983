//! A cache of encoded events and tasks, so that a message for many clients is encoded once.
//!
//! A revision identifies one event, and with it one state of one task, for good: an entry never becomes
//! wrong. The cache is bounded, and a miss only costs the encoding.

use std::sync::{Mutex, PoisonError};

use heeler_proto::{
    Encoded,
    v1::{self, watch_events_response::Item},
};
use prost::{
    Message,
    bytes::Bytes,
    decode_length_delimiter,
    encoding::{decode_key, encode_key, encode_varint},
};

use super::{convert, pattern, task};
use crate::{
    supervisor::Excerpt,
    task::{Fact, IdKey, Revision, Seq, Task},
};

/// As many entries as the largest page, or as one Remove produces.
const SLOTS: usize = 1024;
/// Maximum size of an entry. An ordinary event fits several times over.
const LARGEST: usize = 8 << 10;

/// The longest encoding of a number.
const MAX_VARINT: usize = 10;

/// The cache, one for the whole server.
#[derive(Debug)]
pub(crate) struct Encodings {
    events: Slots<Revision>,
    tasks: Slots<(Seq, Revision)>,
    /// The key of task ids.
    key: IdKey,
}

impl Encodings {
    pub(crate) fn new(key: IdKey) -> Self {
        Self {
            key,
            events: Slots::new(),
            tasks: Slots::new(),
        }
    }

    /// An event as a message of WatchEvents, without excerpts of output: they are never kept here.
    pub(crate) fn event(&self, fact: &Fact) -> Encoded<v1::WatchEventsResponse> {
        let encode = || {
            let item = Some(Item::Event(convert::fact(fact, self.key)));
            v1::WatchEventsResponse { item }.encode_to_vec()
        };
        let revision = fact.revision();
        Encoded::from_bytes(self.events.get(revision.0, revision, encode))
    }

    /// An event without the activity of its session. It is not cached: few callers are inside of a task.
    pub(crate) fn event_without_activity(&self, fact: &Fact) -> Encoded<v1::WatchEventsResponse> {
        let event = v1::TaskEvent {
            session_activity: None,
            ..convert::fact(fact, self.key)
        };
        let item = Some(Item::Event(event));
        Encoded::from_bytes(v1::WatchEventsResponse { item }.encode_to_vec().into())
    }

    /// A task as the first field of an answer: `tasks` of List, `task` of Inspect and `initial` of
    /// WatchEvents have the same field number, and so the same bytes.
    pub(crate) fn task(&self, task: &Task) -> Bytes {
        let encode = || {
            let tasks = vec![task::show(task)];
            v1::ListResponse {
                tasks,
                ..v1::ListResponse::default()
            }
            .encode_to_vec()
        };
        // Sequence numbers of live tasks are denser than their revisions.
        self.tasks
            .get(task.seq.0, (task.seq, task.revision), encode)
    }
}

/// An excerpt of output as a field of its event. A summary has the same field in InspectResponse.
pub(crate) fn excerpt(task: &Task, excerpt: Excerpt) -> Bytes {
    let mut event = v1::TaskEvent::default();
    match excerpt {
        Excerpt::Tail(tail) => event.output_tail = Some(convert::tail(&tail)),
        Excerpt::Match(texts) => event.r#match = shown_match(task, &texts),
        Excerpt::Summary(summary) => event.summary = summary,
    }
    event.encode_to_vec().into()
}

/// The match of a MATCHED event without the text of its lines, as a field of it.
pub(crate) fn match_without_text(task: &Task) -> Bytes {
    excerpt(task, Excerpt::Match(Vec::new()))
}

fn shown_match(task: &Task, texts: &[Option<String>]) -> Option<v1::OutputMatch> {
    let matched = task.last_match.as_ref()?;
    Some(pattern::show_match(matched, texts))
}

/// Adds an encoded excerpt to an event. The event stays one field of the message: some decoders replace a
/// field that occurs twice instead of merging it.
pub(crate) fn with_excerpt(
    message: Encoded<v1::WatchEventsResponse>,
    excerpt: &Bytes,
) -> Encoded<v1::WatchEventsResponse> {
    let mut event = message.into_bytes();
    let (field, wire_type) = decode_key(&mut event).expect("a message of this server");
    decode_length_delimiter(&mut event).expect("its only field, the event, has a length");
    let len = event.len() + excerpt.len();
    let mut bytes = Vec::with_capacity(len + 2 * MAX_VARINT);
    encode_key(field, wire_type, &mut bytes);
    encode_varint(len as u64, &mut bytes);
    bytes.extend_from_slice(&event);
    bytes.extend_from_slice(excerpt);
    Encoded::from_bytes(bytes.into())
}

/// A direct-mapped cache: each key has one slot, and the latest entry replaces the one before it.
#[derive(Debug)]
struct Slots<K>(Vec<Mutex<Option<(K, Bytes)>>>);

impl<K: Copy + PartialEq> Slots<K> {
    fn new() -> Self {
        Self((0..SLOTS).map(|_| Mutex::new(None)).collect())
    }

    fn get(&self, number: u64, key: K, encode: impl FnOnce() -> Vec<u8>) -> Bytes {
        let slot = &self.0[(number % SLOTS as u64) as usize];
        // A slot is replaced as a whole, so it is sound even after a panic under the lock.
        let mut kept = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((kept, bytes)) if *kept == key => bytes.clone(),
            Some(_) | None => {
                let bytes = Bytes::from(encode());
                if bytes.len() <= LARGEST {
                    *kept = Some((key, bytes.clone()));
                }
                bytes
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use super::*;
    use crate::task::{Chunk, Command, Event, EventKind, Spec, Stream, Tail, Timestamp};

    fn numbered(seq: u64, revision: u64) -> Task {
        named(format!("task {seq}"), seq, revision)
    }

    fn named(name: String, seq: u64, revision: u64) -> Task {
        let spec = Spec {
            name,
            session_id: "s1".into(),
            labels: BTreeMap::from([("repo".into(), "heeler".into())]),
            ..Spec::new(Command::Argv(vec!["/bin/true".into()]))
        };
        let id = IdKey(1).task_id(spec.kind, Seq(seq));
        Task {
            revision: Revision(revision),
            ..Task::new(Seq(seq), id, spec, Timestamp(1))
        }
    }

    #[test]
    fn a_task_is_the_same_bytes_in_every_answer() {
        let (encodings, task) = (Encodings::new(IdKey(1)), numbered(1, 2));
        let bytes = encodings.task(&task);
        let expected = task::show(&task);
        let rest = v1::ListResponse {
            revision: 7,
            ..v1::ListResponse::default()
        };
        let page = Encoded::from_parts(&[bytes.clone(), bytes.clone()], &rest).into_bytes();
        let page = v1::ListResponse::decode(page).expect("it is well formed");
        assert_eq!(page.tasks, [expected.clone(), expected.clone()]);
        assert_eq!(page.revision, 7);
        let inspected = v1::InspectResponse::decode(bytes.clone()).expect("it is well formed");
        assert_eq!(inspected.task.as_ref(), Some(&expected));
        let initial = v1::WatchEventsResponse::decode(bytes).expect("it is well formed");
        assert_eq!(initial.item, Some(Item::Initial(expected)));
    }

    #[test]
    fn an_event_is_encoded_once() {
        let encodings = Encodings::new(IdKey(1));
        let event = Fact::Task(Arc::new(Event {
            revision: Revision(9),
            at: Timestamp(1),
            kind: EventKind::Created,
            task: Arc::new(numbered(1, 9)),
            activity: None,
        }));
        let first = encodings.event(&event).into_bytes();
        assert_eq!(
            first.as_ptr(),
            encodings.event(&event).into_bytes().as_ptr()
        );
        let sent = v1::WatchEventsResponse::decode(first).expect("it is well formed");
        assert_eq!(
            sent.item,
            Some(Item::Event(convert::fact(&event, IdKey(1))))
        );
    }

    /// The number of top-level fields of a message.
    fn fields_of(mut message: &[u8]) -> usize {
        let mut fields = 0;
        while !message.is_empty() {
            decode_key(&mut message).expect("a key");
            let len = decode_length_delimiter(&mut message).expect("a length");
            message = &message[len..];
            fields += 1;
        }
        fields
    }

    /// E5
    #[test]
    fn an_event_and_its_tail_decode_as_one_event() {
        let encodings = Encodings::new(IdKey(1));
        let mut task = numbered(1, 9);
        task.output_bytes = 6;
        let event = Fact::Task(Arc::new(Event {
            revision: Revision(9),
            at: Timestamp(1),
            kind: EventKind::Ended,
            task: Arc::new(task),
            activity: None,
        }));
        let chunk = Chunk {
            offset: 2,
            stream: Stream::Stdout,
            at: Timestamp(1),
            data: b"tail".to_vec(),
        };
        let read = Tail {
            items: vec![crate::task::Item::Chunk(chunk)],
            end: 6,
        };
        let tail = excerpt(&numbered(1, 9), Excerpt::Tail(read.clone()));
        let message = with_excerpt(encodings.event(&event), &tail);
        let events = fields_of(&message.encode_to_vec());
        assert_eq!(events, 1, "one field");
        let decoded = v1::WatchEventsResponse::decode(&*message.encode_to_vec());
        let expected = v1::TaskEvent {
            output_tail: Some(convert::tail(&read)),
            ..convert::fact(&event, IdKey(1))
        };
        assert_eq!(
            decoded.expect("well formed").item,
            Some(Item::Event(expected))
        );
        let kept = encodings.event(&event).encode_to_vec();
        assert!(!kept.windows(4).any(|window| window == b"tail"));
    }

    #[test]
    fn a_newer_state_or_another_task_in_the_same_slot_is_encoded_again() {
        let encodings = Encodings::new(IdKey(1));
        for task in [
            numbered(1, 5),
            numbered(1, 6),
            numbered(1 + SLOTS as u64, 6),
            numbered(1, 5),
        ] {
            let listed = v1::ListResponse::decode(encodings.task(&task)).expect("well formed");
            assert_eq!(listed.tasks, [task::show(&task)]);
        }
    }

    #[test]
    fn a_message_above_the_limit_is_sent_and_not_cached() {
        let encodings = Encodings::new(IdKey(1));
        let large = named("x".repeat(LARGEST), 1, 2);
        assert!(encodings.task(&large).len() > LARGEST);
        let kept = encodings.tasks.0[1].lock().expect("no test has panicked");
        assert!(kept.is_none());
    }
}
