//! A task in the contract's messages: its specification, its life, its stop and its end.

use std::time::Duration;

use heeler_proto::v1;

use super::{
    convert::{self, duration, timestamp},
    pattern, spec, work,
};
use crate::task::{
    Actor, AttemptPhase, DetachCause, Detached, EndReason, EndState, Kind, Outcome, OutputLimit,
    OutputLimitCause, Placement, Proof, ProofMethod, ProofResult, Readiness, SentSignal,
    SignalTarget, SpawnFailure, SpawnStage, Started, State, Stop, StopCause, StopMode, Survivor,
    Task,
};

/// Shows a task.
pub(crate) fn show(task: &Task) -> v1::BackgroundTask {
    let started = task.started.as_ref();
    let ended = task.ended.as_ref();
    let is_between_attempts = task.next_attempt().is_some();
    let leader = started.filter(|_| !is_between_attempts);
    let leader = leader.and_then(Started::leader);
    let containment = leader.map(|leader| convert::containment(leader.containment));
    v1::BackgroundTask {
        id: task.id.to_string(),
        uid: task.uid.to_string(),
        spec: Some(spec::show(&task.spec)),
        state: state(task.state()).into(),
        placement: placement(task.placement()).into(),
        stale: task.stale.is_some(),
        leader: leader.map(|leader| v1::Leader {
            pid: leader.pid as i32,
        }),
        containment: containment.unwrap_or(v1::Containment::Unspecified).into(),
        create_time: Some(timestamp(task.created)),
        start_time: started.map(|started| timestamp(started.at.wall)),
        end_time: ended.map(|ended| timestamp(ended.at)),
        outcome: task.leader_end.as_ref().map(|end| outcome(&end.outcome)),
        end_reason: ended
            .map_or(v1::EndReason::Unspecified, |ended| end_reason(ended.reason))
            .into(),
        stop: task.stop.as_ref().map(|stop| show_stop(task, stop)),
        detachment: task.detached.as_ref().map(detachment),
        abandoned: task.abandoned.iter().map(abandoned).collect(),
        output_bytes: task.output_bytes,
        capture_error: task.capture_error.clone().unwrap_or_default(),
        revision: task.revision.0,
        output_limit: task.output_limit.as_ref().map(output_limit),
        matches: pattern::show_matches(task),
        readiness: task
            .readiness()
            .map_or(v1::Readiness::Unspecified, readiness)
            .into(),
        needs_input: task.needs_input.is_some(),
        progress: task.progress.as_deref().map(work::show_progress),
        worker: task.lease().map(|lease| v1::WorkerTerms {
            lease: Some(duration(lease)),
        }),
        result: task.result.as_deref().map(work::show_result),
        attempts: task.spec.restart.map(|_| attempts(task)),
    }
}

fn attempts(task: &Task) -> v1::TaskAttempts {
    let attempts = task.attempts.as_deref();
    let failed = attempts.map(|attempts| &attempts.failed);
    v1::TaskAttempts {
        latest: task.attempt(),
        failures: attempts.map_or(0, |attempts| attempts.failures),
        output_offset: task.output_begin(),
        start_time: match attempts.map(|attempts| attempts.phase) {
            None => task
                .started
                .as_ref()
                .map(|started| timestamp(started.at.wall)),
            Some(AttemptPhase::Runs(since)) => Some(timestamp(since.wall)),
            Some(AttemptPhase::Waits(_)) => None,
        },
        due_time: task.next_attempt().map(|due| timestamp(due.wall)),
        failed_outcome: failed.map(|failed| outcome(&failed.outcome)),
        failed_time: failed.map(|failed| timestamp(failed.at.wall)),
    }
}

fn output_limit(limit: &OutputLimit) -> v1::OutputLimit {
    v1::OutputLimit {
        cause: match limit.cause {
            OutputLimitCause::Policy => v1::OutputLimitCause::Policy,
            OutputLimitCause::ServerBudget => v1::OutputLimitCause::ServerBudget,
        }
        .into(),
        limit_time: Some(timestamp(limit.at)),
        offset: limit.offset,
    }
}

fn readiness(readiness: Readiness) -> v1::Readiness {
    match readiness {
        Readiness::Pending => v1::Readiness::Pending,
        Readiness::Ready => v1::Readiness::Ready,
        Readiness::NotReady => v1::Readiness::NotReady,
    }
}

/// A state's name without its prefix, such as `RUNNING`.
pub(crate) fn state_name(task: &Task) -> &'static str {
    name_of_state(task.state())
}

/// The same for a state without its task.
pub(crate) fn name_of_state(of: State) -> &'static str {
    let name = state(of).as_str_name();
    name.strip_prefix("TASK_STATE_").unwrap_or(name)
}

/// A kind's name without its prefix, such as `SHELL`.
pub(crate) fn kind_name(of: Kind) -> &'static str {
    let name = spec::show_kind(of).as_str_name();
    name.strip_prefix("TASK_KIND_").unwrap_or(name)
}

/// The name of a reason without its prefix, such as `TIMEOUT`.
pub(crate) fn end_reason_name(of: EndReason) -> &'static str {
    let name = end_reason(of).as_str_name();
    name.strip_prefix("END_REASON_").unwrap_or(name)
}

/// A stage's name without its prefix, such as `EXEC`.
pub(crate) fn stage_name(stage: SpawnStage) -> &'static str {
    let name = spawn_stage(stage).as_str_name();
    name.strip_prefix("SPAWN_STAGE_").unwrap_or(name)
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

fn placement(placement: Placement) -> v1::Placement {
    match placement {
        Placement::Background => v1::Placement::Background,
        Placement::Foreground => v1::Placement::Foreground,
    }
}

fn end_reason(reason: EndReason) -> v1::EndReason {
    match reason {
        EndReason::Exited => v1::EndReason::Exited,
        EndReason::Signalled => v1::EndReason::Signalled,
        EndReason::SpawnFailed => v1::EndReason::SpawnFailed,
        EndReason::Cancelled => v1::EndReason::Cancelled,
        EndReason::Timeout => v1::EndReason::Timeout,
        EndReason::IdleTimeout => v1::EndReason::IdleTimeout,
        EndReason::NotReady => v1::EndReason::NotReady,
        EndReason::ClientDisconnected => v1::EndReason::ClientDisconnected,
        EndReason::Replaced => v1::EndReason::Replaced,
        EndReason::ServerShutdown => v1::EndReason::ServerShutdown,
        EndReason::OutputLimit => v1::EndReason::OutputLimit,
        EndReason::SupervisionLost => v1::EndReason::SupervisionLost,
        EndReason::WorkerLost => v1::EndReason::WorkerLost,
        EndReason::WorkerFailed => v1::EndReason::WorkerFailed,
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
            name: convert::signal(*signal),
            core_dumped: *core_dumped,
        }),
        Outcome::SpawnFailed(failure) => Result::SpawnError(spawn_error(failure)),
        Outcome::Unknown(detail) => Result::Unknown(v1::UnknownOutcome {
            detail: detail.clone(),
        }),
        Outcome::Worker(status) => Result::Worker(work::show_status(*status).into()),
    };
    v1::Outcome {
        result: Some(result),
    }
}

fn spawn_error(failure: &SpawnFailure) -> v1::SpawnError {
    v1::SpawnError {
        stage: spawn_stage(failure.stage).into(),
        path: failure.path.clone(),
        message: failure.message.clone(),
        errno: failure.errno,
    }
}

fn spawn_stage(stage: SpawnStage) -> v1::SpawnStage {
    match stage {
        SpawnStage::Shim => v1::SpawnStage::Shim,
        SpawnStage::TaskFile => v1::SpawnStage::TaskFile,
        SpawnStage::Pipes => v1::SpawnStage::Pipes,
        SpawnStage::Process => v1::SpawnStage::Process,
        SpawnStage::WorkingDirectory => v1::SpawnStage::WorkingDirectory,
        SpawnStage::Descriptors => v1::SpawnStage::Descriptors,
        SpawnStage::Exec => v1::SpawnStage::Exec,
    }
}

/// The end reason that a stop gives to its task.
pub(super) fn cause(cause: StopCause) -> v1::EndReason {
    match cause {
        StopCause::Cancel => v1::EndReason::Cancelled,
        StopCause::Timeout => v1::EndReason::Timeout,
        StopCause::Shutdown => v1::EndReason::ServerShutdown,
        StopCause::IdleTimeout => v1::EndReason::IdleTimeout,
        StopCause::NotReady => v1::EndReason::NotReady,
        StopCause::ClientDisconnected => v1::EndReason::ClientDisconnected,
        StopCause::Replaced => v1::EndReason::Replaced,
        StopCause::OutputLimit => v1::EndReason::OutputLimit,
    }
}

fn show_stop(task: &Task, stop: &Stop) -> v1::StopRecord {
    v1::StopRecord {
        cause: cause(stop.cause).into(),
        actor: Some(actor(&stop.actor)),
        reason: stop.reason.clone().unwrap_or_default(),
        request_time: Some(timestamp(stop.requested.wall)),
        grace: Some(duration(match stop.mode {
            StopMode::Graceful(policy) => policy.grace,
            StopMode::Force => Duration::ZERO,
        })),
        signals: stop.signals.iter().map(sent_signal).collect(),
        proof: stop.proof.as_ref().map(proof),
        forced: task.is_hosted() && stop.killed,
        soft: stop.soft.map(|soft| v1::SoftPhase {
            grace: Some(duration(soft.grace)),
            end_time: soft.over.map(|over| timestamp(over.wall)),
        }),
    }
}

fn sent_signal(sent: &SentSignal) -> v1::SentSignal {
    v1::SentSignal {
        number: sent.signal.0,
        name: convert::signal(sent.signal),
        send_time: Some(timestamp(sent.at)),
        processes: match sent.target {
            SignalTarget::Processes(count) => Some(count),
            SignalTarget::Tree => None,
        },
    }
}

fn proof(proof: &Proof) -> v1::Proof {
    use v1::proof::Result;
    let result = match &proof.result {
        ProofResult::Proven(method) => Result::Proven(proof_method(*method).into()),
        ProofResult::Survivors(survivors) => Result::Survivors(v1::Survivors {
            processes: survivors.iter().map(survivor).collect(),
        }),
        ProofResult::Unproven(reason) => Result::Unproven(v1::Unproven {
            reason: reason.clone(),
        }),
    };
    v1::Proof {
        check_time: Some(timestamp(proof.at)),
        result: Some(result),
    }
}

fn proof_method(method: ProofMethod) -> v1::ProofMethod {
    match method {
        ProofMethod::CgroupEmpty => v1::ProofMethod::CgroupEmpty,
        ProofMethod::NoChildren => v1::ProofMethod::NoChildren,
        ProofMethod::Sweep => v1::ProofMethod::Sweep,
        ProofMethod::NeverStarted => v1::ProofMethod::NeverStarted,
        ProofMethod::Reboot => v1::ProofMethod::Reboot,
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

fn detachment(detached: &Detached) -> v1::Detachment {
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
        timeout: detached.timeout.map(duration),
    }
}

fn abandoned(process: &Survivor) -> v1::AbandonedProcess {
    v1::AbandonedProcess {
        pid: process.pid,
        command: process.command.clone(),
    }
}

pub(super) fn actor(actor: &Actor) -> v1::Actor {
    v1::Actor {
        name: actor.name.clone().unwrap_or_default(),
        uid: actor.uid,
        pid: actor.pid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Timestamp;

    /// C17
    #[test]
    fn a_proof_is_either_a_method_or_the_survivors() {
        let at = Timestamp(1_000_000);
        let shown = proof(&Proof::proven(ProofMethod::Sweep, at));
        let method = v1::ProofMethod::Sweep.into();
        assert_eq!(shown.result, Some(v1::proof::Result::Proven(method)));
        let process = Survivor {
            pid: 7,
            parent_pid: 1,
            command: "stuck".to_owned(),
            state: "D".to_owned(),
        };
        let shown = proof(&Proof::survivors(vec![process], at));
        assert_eq!(shown.check_time, Some(timestamp(at)));
        let Some(v1::proof::Result::Survivors(left)) = shown.result else {
            panic!("no survivors in {shown:?}");
        };
        let [left] = &left.processes[..] else {
            panic!("one process is left");
        };
        assert_eq!((left.pid, &*left.command, &*left.state), (7, "stuck", "D"));
    }

    /// C4
    #[test]
    fn a_kill_of_the_whole_tree_has_no_count() {
        let sent = |target| SentSignal {
            signal: crate::task::Signal(9),
            at: Timestamp(0),
            target,
        };
        assert_eq!(sent_signal(&sent(SignalTarget::Tree)).processes, None);
        let counted = sent_signal(&sent(SignalTarget::Processes(0)));
        assert_eq!(counted.processes, Some(0));
    }
}
