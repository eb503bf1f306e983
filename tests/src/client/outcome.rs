//! The end of a task, and the proof of it.

use heeler_proto::v1::{
    BackgroundTask, CancelResult, EndReason, Proof, ProofMethod, SignalOutcome, TaskState,
    outcome::Result as Outcome, proof,
};

/// The outcome of a task that must have one.
#[track_caller]
pub fn outcome(task: &BackgroundTask) -> &Outcome {
    let outcome = task.outcome.as_ref().and_then(|one| one.result.as_ref());
    outcome.unwrap_or_else(|| panic!("no outcome: {task:?}"))
}

/// The exit code of a leader that must have exited.
#[track_caller]
pub fn exit_code(task: &BackgroundTask) -> i32 {
    match outcome(task) {
        Outcome::ExitCode(code) => *code,
        other @ (Outcome::Signal(_)
        | Outcome::SpawnError(_)
        | Outcome::Unknown(_)
        | Outcome::Worker(_)) => {
            panic!("no exit code: {other:?}")
        }
    }
}

/// The signal of a leader that must have died by one.
#[track_caller]
pub fn signal(task: &BackgroundTask) -> &SignalOutcome {
    match outcome(task) {
        Outcome::Signal(signal) => signal,
        other @ (Outcome::ExitCode(_)
        | Outcome::SpawnError(_)
        | Outcome::Unknown(_)
        | Outcome::Worker(_)) => {
            panic!("no signal: {other:?}")
        }
    }
}

/// Asserts that a task is lost for this reason.
#[track_caller]
pub fn assert_lost(task: &BackgroundTask, why: &str) {
    assert_lost_by(task, EndReason::SupervisionLost, why);
}

/// Asserts that a hosted task has lost its worker for this reason.
#[track_caller]
pub fn assert_worker_lost(task: &BackgroundTask, why: &str) {
    assert_lost_by(task, EndReason::WorkerLost, why);
}

#[track_caller]
fn assert_lost_by(task: &BackgroundTask, reason: EndReason, why: &str) {
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Lost, reason),
        "{task:?}"
    );
    match outcome(task) {
        Outcome::Unknown(unknown) => assert!(unknown.detail.contains(why), "{unknown:?}"),
        other @ (Outcome::ExitCode(_)
        | Outcome::Signal(_)
        | Outcome::SpawnError(_)
        | Outcome::Worker(_)) => {
            panic!("a known outcome: {other:?}")
        }
    }
}

/// The method by which a tree was proven gone; there must be no survivors.
#[track_caller]
pub fn proven(proof: Option<&Proof>) -> ProofMethod {
    let proof = proof.expect("a proof");
    match &proof.result {
        Some(proof::Result::Proven(method)) => (*method).try_into().expect("a known method"),
        other @ (Some(proof::Result::Survivors(_) | proof::Result::Unproven(_)) | None) => {
            panic!("not proven: {other:?}")
        }
    }
}

/// The method by which the tree of a stopped task was proven gone.
#[track_caller]
pub fn proof_of(task: &BackgroundTask) -> ProofMethod {
    let stop = task.stop.as_ref();
    proven(stop.expect("a stop record").proof.as_ref())
}

/// The method by which the tree of a cancelled task was proven gone.
#[track_caller]
pub fn proof_in(result: &CancelResult) -> ProofMethod {
    proof_of(result.task.as_ref().expect("a task"))
}

/// The pids of the processes that a kill has not ended yet.
pub fn survivors(task: &BackgroundTask) -> Vec<i32> {
    let proof = task.stop.as_ref().and_then(|stop| stop.proof.as_ref());
    match proof.and_then(|proof| proof.result.as_ref()) {
        Some(proof::Result::Survivors(left)) => {
            left.processes.iter().map(|process| process.pid).collect()
        }
        Some(proof::Result::Proven(_) | proof::Result::Unproven(_)) | None => Vec::new(),
    }
}

/// The names of the signals that a stop has sent, without SIGCONT.
#[track_caller]
pub fn signals_sent(task: &BackgroundTask) -> Vec<&str> {
    let stop = task.stop.as_ref().expect("a stop record");
    let names = stop.signals.iter().map(|signal| &*signal.name);
    names.filter(|name| *name != "SIGCONT").collect()
}
