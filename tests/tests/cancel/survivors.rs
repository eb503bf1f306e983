//! Cancel with `wait` on a tree that cannot be killed. A tracer keeps a killed process from being
//! reaped: the process is dead, and its tree is not empty.

use std::{
    process::{Child, Command},
    time::{Duration, Instant},
};

use heeler_tests::{
    Api, Daemon, Fixture, Process, SpawnRequestExt as _, eventually,
    outcome::{proof_of, survivors},
    request::{cancel, force},
    v1::*,
    within,
};
use nix::sys::signal::Signal;

/// The time that a kill has before the survivors are named.
const KILL_DEADLINE: Duration = Duration::from_secs(10);
/// The answer comes this soon after the deadline, on a busy machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A process that traces another one, until it is dropped.
struct Tracer(Child);

impl Tracer {
    async fn attach(daemon: &Daemon, traced: &Process) -> Self {
        Self::start(daemon, "seize", traced).await
    }

    /// Keeps a killed process from dying: it halts with its children.
    async fn hold(daemon: &Daemon, traced: &Process) -> Self {
        Self::start(daemon, "hold", traced).await
    }

    async fn start(daemon: &Daemon, step: &str, traced: &Process) -> Self {
        let ready = daemon.path(&format!("traced-{}", traced.pid));
        let tracer = Command::new(daemon.fixture_program())
            .args([step, &traced.pid.to_string(), "touch"])
            .arg(&ready)
            .arg("forever")
            .spawn()
            .unwrap();
        eventually("a traced process", || ready.exists()).await;
        Self(tracer)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

async fn tree_with_child(daemon: &Daemon, api: &Api) -> (Fixture, Process) {
    let fixture = daemon.run(api, "fork [ pid child forever ] forever").await;
    let child = fixture.process("child").await;
    (fixture, child)
}

fn force_and_wait(id: &str) -> CancelRequest {
    CancelRequest {
        how: force(),
        wait: true,
        ..cancel(id)
    }
}

async fn cancel_and_time(api: &Api, request: CancelRequest) -> (CancelResult, Duration) {
    let began = Instant::now();
    let result = within("an answer to Cancel", api.cancel_one(request)).await;
    (result, began.elapsed())
}

/// C17
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancel_with_wait_names_the_survivors_after_10_s_and_the_kill_goes_on() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (fixture, child) = tree_with_child(&daemon, &api).await;
    let tracer = Tracer::attach(&daemon, &child).await;

    let (result, took) = cancel_and_time(&api, force_and_wait(&fixture.id)).await;
    assert!(took >= KILL_DEADLINE, "too early: {took:?}");
    assert!(took < KILL_DEADLINE + ANSWER_WITHIN, "too late: {took:?}");
    assert_eq!(result.outcome(), CancelOutcome::Requested);
    let task = result.task.unwrap();
    let proof = task.stop.as_ref().unwrap().proof.as_ref().unwrap();
    match &proof.result {
        Some(proof::Result::Survivors(left)) => {
            assert_eq!(left.processes.len(), 1, "{left:?}");
            assert!(!left.processes[0].command.is_empty(), "{left:?}");
        }
        other @ (Some(proof::Result::Proven(_) | proof::Result::Unproven(_)) | None) => {
            panic!("no survivors: {other:?}")
        }
    }
    assert!(proof.check_time.is_some());
    assert_eq!(survivors(&task), [child.pid]);
    assert_eq!(task.state(), TaskState::Stopping);

    let (again, took) = cancel_and_time(&api, force_and_wait(&fixture.id)).await;
    assert!(took < KILL_DEADLINE, "the survivors are known: {took:?}");
    assert_eq!(again.outcome(), CancelOutcome::AlreadyStopping);
    assert_eq!(survivors(&again.task.unwrap()), [child.pid]);

    drop(tracer);
    let task = api.ended(&fixture.id).await;
    assert!(child.is_gone());
    assert_eq!(task.state(), TaskState::Cancelled);
    proof_of(&task);
}

/// C12, C17
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancel_with_cascade_and_wait_names_the_survivors_of_a_child_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let parent = daemon.run(&api, "forever").await;
    let request = SpawnRequest::default().with_parent(&parent.id);
    let script = "fork [ pid child forever ] forever";
    let fixture = daemon.run_as(&api, request, script).await;
    let child = fixture.process("child").await;
    let tracer = Tracer::attach(&daemon, &child).await;

    let request = CancelRequest {
        cascade: true,
        ..force_and_wait(&parent.id)
    };
    let (result, took) = cancel_and_time(&api, request).await;
    assert!(took >= KILL_DEADLINE, "too early: {took:?}");
    assert!(took < KILL_DEADLINE + ANSWER_WITHIN, "too late: {took:?}");
    let task = result.task.unwrap();
    assert_eq!(survivors(&task), [child.pid]);
    assert_eq!(task.state(), TaskState::Stopping);

    drop(tracer);
    let task = api.ended(&parent.id).await;
    assert_eq!(task.state(), TaskState::Cancelled);
    proof_of(&task);
    assert_eq!(api.task(&fixture.id).await.state(), TaskState::Cancelled);
}

/// C17: a shim that a tracer has stopped reports nothing; the deadline is the server's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancel_with_wait_answers_though_the_shim_is_silent() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (fixture, child) = tree_with_child(&daemon, &api).await;
    let leader = fixture.process("leader").await;
    let shim = Process::now(leader.stat().unwrap().parent).unwrap();
    let stopped = Tracer::attach(&daemon, &shim).await;
    shim.signal(Signal::SIGSTOP);

    let (result, took) = cancel_and_time(&api, force_and_wait(&fixture.id)).await;
    assert!(took < KILL_DEADLINE + ANSWER_WITHIN, "too late: {took:?}");
    let task = result.task.unwrap();
    assert!(survivors(&task).contains(&child.pid), "{task:?}");

    drop(stopped);
    shim.signal(Signal::SIGCONT);
    let task = api.ended(&fixture.id).await;
    proof_of(&task);
}

/// C5, C17: the shim inherits a process only when its parent dies. The descendants of one that cannot
/// die are killed all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn descendants_of_a_process_that_cannot_die_are_killed() {
    let daemon = Daemon::builder().containment("subreaper").start().await;
    let api = daemon.api().await;
    let script = "fork [ setsid pid child fork [ setsid pid grandchild forever ] forever ] forever";
    let fixture = daemon.run(&api, script).await;
    let descendants = fixture.processes(&["child", "grandchild"]).await;
    let leader = fixture.process("leader").await;
    let held = Tracer::hold(&daemon, &leader).await;

    let (result, _) = cancel_and_time(&api, force_and_wait(&fixture.id)).await;
    for process in &descendants {
        assert!(!process.is_alive(), "it outlived its kill: {process:?}");
    }
    assert!(survivors(&result.task.unwrap()).contains(&leader.pid));

    drop(held);
    let task = api.ended(&fixture.id).await;
    assert_eq!(task.state(), TaskState::Cancelled);
    proof_of(&task);
}
