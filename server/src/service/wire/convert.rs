//! Events, output, processes and plain values in the contract's messages.

use std::time::Duration;

use heeler_proto::v1;

use super::task;
use crate::{
    supervisor::{ListeningPort, Process, signal_name},
    task::{
        Activity, Chunk, Containment, Event, EventKind, Fact, FactKind, Gap, GapCause, IdKey, Item,
        Kind, Seq, Signal, Stream, Tail, Timestamp,
    },
};

pub(crate) fn fact(fact: &Fact, key: IdKey) -> v1::TaskEvent {
    match fact {
        Fact::Task(event) => task_event(event, key),
        Fact::SessionIdle(idle) => v1::TaskEvent {
            revision: idle.revision.0,
            event_time: Some(timestamp(idle.at)),
            r#type: v1::TaskEventType::SessionIdle.into(),
            task: None,
            output_tail: None,
            session_activity: Some(activity(&idle.session_id, &Activity::default(), key)),
            r#match: None,
            summary: String::new(),
        },
    }
}

fn task_event(event: &Event, key: IdKey) -> v1::TaskEvent {
    let session = &event.task.spec.session_id;
    v1::TaskEvent {
        revision: event.revision.0,
        event_time: Some(timestamp(event.at)),
        r#type: event_type(event.kind).into(),
        task: Some(task::show(&event.task)),
        output_tail: event.ended_silent().then(v1::OutputTail::default),
        session_activity: (event.activity.as_ref()).map(|live| activity(session, live, key)),
        r#match: None,
        summary: String::new(),
    }
}

/// The live tasks of a session. The key makes ids of their numbers.
pub(crate) fn activity(session_id: &str, live: &Activity, key: IdKey) -> v1::SessionActivity {
    let Activity {
        agents,
        shells,
        hosted,
        stale,
        agent_seqs,
        shell_seqs,
        hosted_seqs,
    } = live;
    let ids = |kind: Kind, seqs: &[Seq]| {
        let ids = seqs.iter().map(|seq| key.task_id(kind, *seq).to_string());
        ids.collect()
    };
    v1::SessionActivity {
        session_id: session_id.to_owned(),
        agents: *agents,
        shells: *shells,
        hosted: *hosted,
        agent_ids: ids(Kind::Agent, agent_seqs),
        shell_ids: ids(Kind::Shell, shell_seqs),
        hosted_ids: ids(Kind::Hosted, hosted_seqs),
        stale: *stale,
    }
}

/// The name of an event's type without its prefix, such as `ENDED`.
pub(crate) fn type_name(of: FactKind) -> &'static str {
    short_type_name(match of {
        FactKind::Task(kind) => event_type(kind),
        FactKind::SessionIdle => v1::TaskEventType::SessionIdle,
    })
}

/// The names of all types.
pub(crate) fn type_names() -> impl Iterator<Item = &'static str> {
    // The numbers have no gap.
    let types = (1..).map_while(|number| v1::TaskEventType::try_from(number).ok());
    types.map(short_type_name)
}

fn short_type_name(of: v1::TaskEventType) -> &'static str {
    let name = of.as_str_name();
    name.strip_prefix("TASK_EVENT_TYPE_").unwrap_or(name)
}

fn event_type(kind: EventKind) -> v1::TaskEventType {
    match kind {
        EventKind::Created => v1::TaskEventType::Created,
        EventKind::Admitted => v1::TaskEventType::Admitted,
        EventKind::Started => v1::TaskEventType::Started,
        EventKind::Stopping => v1::TaskEventType::Stopping,
        EventKind::LeaderExited => v1::TaskEventType::LeaderExited,
        EventKind::Detached => v1::TaskEventType::Detached,
        EventKind::Stale => v1::TaskEventType::Stale,
        EventKind::Active => v1::TaskEventType::Active,
        EventKind::Restarting => v1::TaskEventType::Restarting,
        EventKind::Restarted => v1::TaskEventType::Restarted,
        EventKind::Ready => v1::TaskEventType::Ready,
        EventKind::NotReady => v1::TaskEventType::NotReady,
        EventKind::NeedsInput => v1::TaskEventType::NeedsInput,
        EventKind::Progress => v1::TaskEventType::Progress,
        EventKind::KillOverdue => v1::TaskEventType::KillOverdue,
        EventKind::OutputLimit => v1::TaskEventType::OutputLimit,
        EventKind::Matched => v1::TaskEventType::Matched,
        EventKind::Updated => v1::TaskEventType::Updated,
        EventKind::Ended => v1::TaskEventType::Ended,
        EventKind::Removed => v1::TaskEventType::Removed,
    }
}

pub(crate) fn tail(tail: &Tail) -> v1::OutputTail {
    v1::OutputTail {
        chunks: tail.items.iter().cloned().map(raw).collect(),
        end_offset: tail.end,
    }
}

pub(crate) fn raw(item: Item) -> v1::OutputChunk {
    match item {
        Item::Chunk(chunk) => raw_chunk(chunk),
        Item::Gap(gap) => self::gap(gap),
    }
}

pub(crate) fn gap(gap: Gap) -> v1::OutputChunk {
    v1::OutputChunk {
        offset: gap.offset,
        stream: v1::OutputStream::Unspecified.into(),
        read_time: None,
        content: Some(v1::output_chunk::Content::Gap(v1::OutputGap {
            length: gap.length,
            cause: match gap.cause {
                GapCause::Rotated => v1::OutputGapCause::Rotated,
                GapCause::Truncated => v1::OutputGapCause::Truncated,
                GapCause::Lost => v1::OutputGapCause::Lost,
                GapCause::Omitted => v1::OutputGapCause::Omitted,
            }
            .into(),
            lines: gap.lines,
        })),
        begins_group: None,
    }
}

fn raw_chunk(chunk: Chunk) -> v1::OutputChunk {
    v1::OutputChunk {
        offset: chunk.offset,
        stream: stream(chunk.stream).into(),
        read_time: Some(timestamp(chunk.at)),
        content: Some(v1::output_chunk::Content::Data(chunk.data.into())),
        begins_group: None,
    }
}

pub(crate) fn text_chunk(chunk: &Chunk, offset: u64, text: String) -> v1::OutputChunk {
    v1::OutputChunk {
        offset,
        stream: stream(chunk.stream).into(),
        read_time: Some(timestamp(chunk.at)),
        content: Some(v1::output_chunk::Content::Text(text)),
        begins_group: None,
    }
}

pub(crate) fn stream(stream: Stream) -> v1::OutputStream {
    match stream {
        Stream::Stdout => v1::OutputStream::Stdout,
        Stream::Stderr => v1::OutputStream::Stderr,
    }
}

pub(crate) fn process(process: &Process) -> v1::ProcessInfo {
    v1::ProcessInfo {
        pid: process.pid,
        parent_pid: process.parent_pid,
        command: process.command.clone(),
        state: process.state.to_string(),
        start_time: Some(timestamp(process.started)),
        cpu_time: Some(duration(process.cpu)),
        memory_bytes: process.memory,
    }
}

pub(crate) fn port(port: &ListeningPort) -> v1::ListeningPort {
    v1::ListeningPort {
        protocol: v1::PortProtocol::Tcp.into(),
        address: port.address.to_string(),
        port: port.port.into(),
        pid: port.pid,
        command: port.command.clone(),
    }
}

pub(crate) fn containment(containment: Containment) -> v1::Containment {
    match containment {
        Containment::Cgroup => v1::Containment::Cgroup,
        Containment::Subreaper => v1::Containment::Subreaper,
    }
}

pub(crate) fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: (at.0 / 1_000_000) as i64,
        nanos: (at.0 % 1_000_000 * 1000) as i32,
    }
}

pub(crate) fn duration(span: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        nanos: span.subsec_nanos() as i32,
    }
}

/// A signal's name.
pub(crate) fn signal(signal: Signal) -> String {
    signal_name(signal.0)
}
