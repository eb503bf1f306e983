//! The server's own words in the contract's.

use std::time::Duration;

use heeler_proto::v1;

use super::rules;
use crate::{
    supervisor::{Process, signal_name},
    task::{
        Activity, Actor, Chunk, Command, Containment, DetachCause, Detached, EndReason, EndState,
        Event, EventKind, Fact, Kind, Outcome, Proof, ProofMethod, SentSignal, Signal, Spec, State,
        Stop, StopCause, StopMode, Stream, Survivor, Tail, Task, Timestamp,
    },
};

pub(super) fn task(task: &Task) -> v1::BackgroundTask {
    let spec: &Spec = &task.spec;
    let mut shown = v1::BackgroundTask {
        id: task.id.to_string(),
        uid: task.uid.to_string(),
        kind: kind(spec.kind).into(),
        name: spec.name.clone(),
        session_id: spec.session_id.clone(),
        parent_id: spec
            .parent
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        labels: spec.labels.clone(),
        command: Some(command(&spec.command)),
        working_directory: spec.working_directory.display().to_string(),
        env_names: spec.env_names.clone(),
        timeout: task.timeout().map(duration),
        stop_policy: Some(v1::StopPolicy {
            grace: Some(duration(spec.stop_policy.grace)),
            signal: name(spec.stop_policy.signal),
        }),
        state: state(task.state()).into(),
        leader: task.started.as_ref().map(|started| v1::Leader {
            pid: started.pid as i32,
        }),
        create_time: Some(timestamp(task.created)),
        start_time: task.started.as_ref().map(|started| timestamp(started.at)),
        end_time: task.ended.as_ref().map(|ended| timestamp(ended.at)),
        outcome: task.leader_end.as_ref().map(|end| outcome(&end.outcome)),
        end_reason: task
            .ended
            .as_ref()
            .map_or(v1::EndReason::Unspecified, |e| reason(e.reason))
            .into(),
        stop: task.stop.as_ref().map(stop),
        output_bytes: task.output_bytes,
        containment: task
            .started
            .as_ref()
            .map_or(v1::Containment::Unspecified, |started| {
                containment(started.containment)
            })
            .into(),
        capture_error: task.capture_error.clone().unwrap_or_default(),
        revision: task.revision.0,
        detached: task.detached.as_ref().map(detached),
        abandoned_processes: task.abandoned.iter().map(abandoned).collect(),
        ..v1::BackgroundTask::default()
    };
    rules::show(task, &mut shown);
    shown
}

pub(super) fn fact(fact: &Fact) -> v1::TaskEvent {
    match fact {
        Fact::Task(event) => task_event(event),
        Fact::SessionIdle(idle) => v1::TaskEvent {
            revision: idle.revision.0,
            event_time: Some(timestamp(idle.at)),
            r#type: v1::TaskEventType::SessionIdle.into(),
            task: None,
            output_tail: None,
            session_activity: Some(activity(&idle.session_id, Activity::default())),
        },
    }
}

fn task_event(event: &Event) -> v1::TaskEvent {
    let session = &event.task.spec.session_id;
    v1::TaskEvent {
        revision: event.revision.0,
        event_time: Some(timestamp(event.at)),
        r#type: event_type(event.kind).into(),
        task: Some(task(&event.task)),
        output_tail: event.ended_silent().then(v1::OutputTail::default),
        session_activity: event.activity.map(|counts| activity(session, counts)),
    }
}

fn activity(session_id: &str, counts: Activity) -> v1::SessionActivity {
    let Activity { agents, shells } = counts;
    v1::SessionActivity {
        session_id: session_id.to_owned(),
        agents,
        shells,
        hosted: 0,
    }
}

pub(super) fn tail(tail: &Tail) -> v1::OutputTail {
    v1::OutputTail {
        chunks: tail.chunks.iter().cloned().map(raw_chunk).collect(),
        end_offset: tail.end,
    }
}

pub(super) fn raw_chunk(chunk: Chunk) -> v1::OutputChunk {
    v1::OutputChunk {
        offset: chunk.offset,
        stream: stream(chunk.stream).into(),
        read_time: Some(timestamp(chunk.at)),
        content: Some(v1::output_chunk::Content::Data(chunk.data.into())),
    }
}

pub(super) fn stream(stream: Stream) -> v1::OutputStream {
    match stream {
        Stream::Stdout => v1::OutputStream::Stdout,
        Stream::Stderr => v1::OutputStream::Stderr,
    }
}

pub(super) fn process(process: &Process) -> v1::ProcessInfo {
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

pub(super) fn proof(proof: &Proof) -> v1::Proof {
    v1::Proof {
        method: match proof.method {
            ProofMethod::CgroupEmpty => v1::ProofMethod::CgroupEmpty,
            ProofMethod::NoChildren => v1::ProofMethod::NoChildren,
            ProofMethod::Sweep => v1::ProofMethod::Sweep,
            ProofMethod::NeverStarted => v1::ProofMethod::NeverStarted,
            ProofMethod::Reboot => v1::ProofMethod::Reboot,
        }
        .into(),
        verify_time: Some(timestamp(proof.at)),
        survivors: proof.survivors.iter().map(survivor).collect(),
    }
}

pub(super) fn containment(containment: Containment) -> v1::Containment {
    match containment {
        Containment::Cgroup => v1::Containment::Cgroup,
        Containment::Subreaper => v1::Containment::Subreaper,
    }
}

pub(super) fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: (at.0 / 1_000_000) as i64,
        nanos: (at.0 % 1_000_000 * 1000) as i32,
    }
}

pub(super) fn duration(span: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        nanos: span.subsec_nanos() as i32,
    }
}

fn kind(kind: Kind) -> v1::TaskKind {
    match kind {
        Kind::Shell => v1::TaskKind::Shell,
        Kind::Agent => v1::TaskKind::Agent,
    }
}

fn command(command: &Command) -> v1::background_task::Command {
    match command {
        Command::Argv(args) => {
            v1::background_task::Command::Argv(v1::ArgvCommand { args: args.clone() })
        }
        Command::Shell { script, program } => {
            v1::background_task::Command::Shell(v1::ShellCommand {
                script: script.clone(),
                program: program
                    .as_ref()
                    .map(|p| p.display().to_string())
                    .unwrap_or_default(),
            })
        }
    }
}

fn state(state: State) -> v1::TaskState {
    match state {
        State::Queued => v1::TaskState::Queued,
        State::Starting => v1::TaskState::Starting,
        State::Running => v1::TaskState::Running,
        State::Stopping => v1::TaskState::Stopping,
        State::Ended(EndState::Completed) => v1::TaskState::Completed,
        State::Ended(EndState::Failed) => v1::TaskState::Failed,
        State::Ended(EndState::Cancelled) => v1::TaskState::Cancelled,
        State::Ended(EndState::TimedOut) => v1::TaskState::TimedOut,
        State::Ended(EndState::Lost) => v1::TaskState::Lost,
    }
}

fn reason(reason: EndReason) -> v1::EndReason {
    match reason {
        EndReason::Exited => v1::EndReason::Exited,
        EndReason::Signalled => v1::EndReason::Signalled,
        EndReason::SpawnFailed => v1::EndReason::SpawnFailed,
        EndReason::Cancelled => v1::EndReason::Cancelled,
        EndReason::Deadline => v1::EndReason::Deadline,
        EndReason::IdleDeadline => v1::EndReason::IdleDeadline,
        EndReason::ClientDisconnected => v1::EndReason::ClientDisconnected,
        EndReason::Replaced => v1::EndReason::Replaced,
        EndReason::ServerShutdown => v1::EndReason::ServerShutdown,
        EndReason::SupervisionLost => v1::EndReason::SupervisionLost,
    }
}

fn outcome(outcome: &Outcome) -> v1::Outcome {
    use v1::outcome::Result;
    let result = match outcome {
        Outcome::Exited(code) => Result::ExitCode(*code),
        Outcome::Signalled {
            signal,
            core_dumped,
        } => Result::Signal(v1::SignalOutcome {
            number: signal.0,
            name: name(*signal),
            core_dumped: *core_dumped,
        }),
        Outcome::SpawnFailed(failure) => Result::SpawnError(v1::SpawnError {
            operation: failure.operation.clone(),
            message: failure.message.clone(),
            errno: failure.errno,
        }),
        Outcome::Unknown(detail) => Result::Unknown(v1::UnknownOutcome {
            detail: detail.clone(),
        }),
    };
    v1::Outcome {
        result: Some(result),
    }
}

fn stop(stop: &Stop) -> v1::StopRecord {
    v1::StopRecord {
        cause: match stop.cause {
            StopCause::Cancel => v1::EndReason::Cancelled,
            StopCause::Deadline => v1::EndReason::Deadline,
            StopCause::Shutdown => v1::EndReason::ServerShutdown,
            StopCause::IdleDeadline => v1::EndReason::IdleDeadline,
            StopCause::ClientDisconnected => v1::EndReason::ClientDisconnected,
            StopCause::Replaced => v1::EndReason::Replaced,
        }
        .into(),
        actor: Some(actor(&stop.actor)),
        reason: stop.reason.clone().unwrap_or_default(),
        request_time: Some(timestamp(stop.requested)),
        grace: Some(duration(match stop.mode {
            StopMode::Graceful(policy) => policy.grace,
            StopMode::Force => Duration::ZERO,
        })),
        signals: stop.signals.iter().map(sent).collect(),
        proof: stop.proof.as_ref().map(proof),
    }
}

fn detached(detached: &Detached) -> v1::Detachment {
    v1::Detachment {
        cause: match detached.cause {
            DetachCause::Requested => v1::DetachCause::Requested,
            DetachCause::ForegroundTimeout => v1::DetachCause::ForegroundTimeout,
            DetachCause::ClientDisconnected => v1::DetachCause::ClientDisconnected,
        }
        .into(),
        actor: Some(actor(&detached.actor)),
        reason: detached.reason.clone().unwrap_or_default(),
        detach_time: Some(timestamp(detached.at)),
    }
}

fn abandoned(left: &Survivor) -> v1::AbandonedProcess {
    v1::AbandonedProcess {
        pid: left.pid,
        command: left.command.clone(),
    }
}

fn actor(actor: &Actor) -> v1::Actor {
    v1::Actor {
        name: actor.name.clone().unwrap_or_default(),
        uid: actor.uid,
        pid: actor.pid,
    }
}

fn sent(sent: &SentSignal) -> v1::SentSignal {
    v1::SentSignal {
        number: sent.signal.0,
        name: name(sent.signal),
        send_time: Some(timestamp(sent.at)),
        processes: sent.processes.unwrap_or(0),
    }
}

fn survivor(survivor: &Survivor) -> v1::ProcessInfo {
    v1::ProcessInfo {
        pid: survivor.pid,
        parent_pid: survivor.parent_pid,
        command: survivor.command.clone(),
        state: survivor.state.clone(),
        ..v1::ProcessInfo::default()
    }
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
        EventKind::KillOverdue => v1::TaskEventType::KillOverdue,
        EventKind::Ended => v1::TaskEventType::Ended,
        EventKind::Removed => v1::TaskEventType::Removed,
    }
}

fn name(signal: Signal) -> String {
    signal_name(signal.0)
}
