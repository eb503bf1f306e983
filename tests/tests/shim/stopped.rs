//! A shim that a task or a user stops or traces: the server does its work, or replaces it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use heeler_tests::{
    Api, DEADLINE, Daemon, Process, Setting,
    crash::points_are_built_in,
    eventually, eventually_some, in_each_setting,
    outcome::{exit_code, proof_in, proof_of},
    process::shims_of,
    request::{cancel, force},
    shell, skipped,
    v1::*,
    within,
};
use nix::sys::signal::Signal;

in_each_setting! {
    a_tree_that_keeps_its_shim_stopped_dies,
    a_tree_that_traces_its_shim_dies,
    tasks_start_though_the_idle_shims_are_stopped,
    a_start_on_a_stopped_shim_can_be_cancelled,
    a_stopped_shim_of_a_dead_server_starts_nothing,
}

/// The time limit of a kill that the shim takes no part in, on a busy machine: far below the deadline of
/// a kill.
const SOON: Duration = Duration::from_secs(8);

fn shims(daemon: &Daemon) -> Vec<Process> {
    shims_of(&daemon.state_dir().join("tasks"))
}

/// The shim of a task.
fn shim_of(daemon: &Daemon, id: &str) -> Process {
    let mut shims = shims(daemon).into_iter();
    shims.find(|shim| shim.command().contains(id)).unwrap()
}

/// Stops the idle shims, once there are two.
async fn stop_idle_shims(daemon: &Daemon) -> Vec<Process> {
    let idle = eventually_some("idle shims", || {
        let shims = shims(daemon);
        (shims.len() > 1).then_some(shims)
    })
    .await;
    for shim in &idle {
        shim.signal(Signal::SIGSTOP);
        eventually("a stopped shim", || shim.is_stopped()).await;
    }
    idle
}

/// A thread that stops shims again and again, whenever the server continues them.
struct Stopping {
    goes_on: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Stopping {
    fn begin(shims: Vec<Process>) -> Self {
        let goes_on = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&goes_on);
        let thread = std::thread::spawn(move || {
            while flag.load(Ordering::Relaxed) {
                shims.iter().for_each(|shim| shim.signal(Signal::SIGSTOP));
            }
            shims.iter().for_each(|shim| shim.signal(Signal::SIGCONT));
        });
        Self { goes_on, thread }
    }

    /// Continues the shims.
    fn end(self) {
        self.goes_on.store(false, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// Kills a task by force; returns the answer and the time that it took.
async fn kill_and_time(api: &Api, id: &str) -> (CancelResult, Duration) {
    let began = Instant::now();
    let request = CancelRequest {
        how: force(),
        wait: true,
        ..cancel(id)
    };
    let result = within("an answer to Cancel", api.cancel_one(request)).await;
    (result, began.elapsed())
}

/// C5, C17
async fn a_tree_that_keeps_its_shim_stopped_dies(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let (go, going) = (daemon.file("go"), daemon.path("going"));
    // Two processes stop the shim without pause. They ignore TERM, and are in different sessions.
    let script = format!(
        "trap '' TERM; shim=$PPID; attack() {{ while :; do kill -STOP $shim; done; }}
         until [ -e {go} ]; do sleep 0.02; done
         (attack) & touch {}; attack",
        going.display(),
    );
    let id = api.start(shell(script)).await.id;
    let shim = shim_of(&daemon, &id);
    std::fs::write(&go, "").unwrap();
    eventually("a stopped shim", || going.exists() && shim.is_stopped()).await;

    let (result, took) = kill_and_time(&api, &id).await;
    assert!(took < SOON, "too late: {took:?}");
    proof_in(&result);
    daemon.no_processes().await;
}

/// C5, C17
async fn a_tree_that_traces_its_shim_dies(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let (traced, fixture) = (daemon.path("traced"), daemon.fixture_program().display());
    let script = format!(
        "{fixture} ignore TERM seize $PPID touch {} forever & wait",
        traced.display()
    );
    let id = api.start(shell(script)).await.id;
    eventually("a traced shim", || traced.exists()).await;
    let shim = shim_of(&daemon, &id);
    shim.signal(Signal::SIGSTOP);
    eventually("a halted shim", || {
        shim.stat()
            .is_some_and(|stat| matches!(stat.state, 't' | 'T'))
    })
    .await;

    let (result, took) = kill_and_time(&api, &id).await;
    assert!(took < SOON, "too late: {took:?}");
    proof_in(&result);
    daemon.no_processes().await;
}

/// S1, S14
async fn tasks_start_though_the_idle_shims_are_stopped(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let stopped = stop_idle_shims(&daemon).await;
    // At once, so that each gets one of them.
    let script = |code: i32| shell(format!("echo x >> {}; exit {code}", daemon.file("ran")));
    let answers = async { tokio::join!(api.start(script(3)), api.start(script(4))) };
    let (first, second) = within("the answers to Spawn", answers).await;
    assert_eq!(exit_code(&api.ended(&first.id).await), 3);
    assert_eq!(exit_code(&api.ended(&second.id).await), 4);
    assert_eq!(daemon.line_count("ran"), 2);
    assert!(
        !stopped.iter().any(Process::is_stopped),
        "a stopped shim is left"
    );
}

/// C16, S14
async fn a_start_on_a_stopped_shim_can_be_cancelled(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let shims = stop_idle_shims(&daemon).await;
    let stopping = Stopping::begin(shims);
    let spawned = {
        let (api, ran) = (daemon.api().await, daemon.file("ran"));
        let request = shell(format!("echo x >> {ran}; sleep 60"));
        tokio::spawn(async move { api.spawn(request).await })
    };
    let id = loop {
        if let Some(task) = api.all().await.first() {
            break task.id.clone();
        }
        tokio::task::yield_now().await;
    };
    let (result, took) = kill_and_time(&api, &id).await;
    stopping.end();
    assert!(took < SOON, "too late: {took:?}");
    proof_in(&result);
    assert_eq!(result.task.unwrap().state(), TaskState::Cancelled);
    within("an answer to Spawn", spawned).await.unwrap().ok();
    daemon.no_processes().await;
}

/// S14: a shim that continues at the moment at which it is replaced does not start the task twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shim_that_continues_while_it_is_replaced_starts_nothing_twice() {
    let daemon = Daemon::builder().containment("subreaper").start().await;
    let api = daemon.api().await;
    for round in 0..6u32 {
        let stopped = stop_idle_shims(&daemon).await;
        let stopping = Stopping::begin(stopped);
        let ran = format!("ran-{round}");
        let script = format!("echo x >> {}; exit 3", daemon.file(&ran));
        let spawned = tokio::spawn(api.start(shell(script)));
        // Around the moment of the replacement, 2 s after the start.
        let until = Instant::now() + Duration::from_millis(1940 + 20 * u64::from(round));
        eventually("the moment", || Instant::now() > until).await;
        stopping.end();
        let id = within("an answer to Spawn", spawned).await.unwrap().id;
        assert_eq!(exit_code(&api.ended(&id).await), 3);
        assert_eq!(daemon.line_count(&ran), 1, "number of runs");
        let history = api.event_types(&id).await;
        assert_eq!(history, heeler_tests::watch::ONE_RUN);
    }
    daemon.no_processes().await;
}

/// C17: a tracer from outside keeps the shim halted for ever; the server ends the shim after the
/// survivors are named.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shim_that_stays_halted_is_ended_after_the_deadline() {
    let daemon = Daemon::builder().containment("subreaper").start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "ignore TERM pid ready forever").await;
    let shim = shim_of(&daemon, &fixture.id);
    let ready = daemon.path("traced");
    let mut tracer = std::process::Command::new(daemon.fixture_program())
        .args(["seize", &shim.pid.to_string(), "touch"])
        .arg(&ready)
        .arg("forever")
        .spawn()
        .unwrap();
    eventually("a traced shim", || ready.exists()).await;
    shim.signal(Signal::SIGSTOP);

    let (result, _) = kill_and_time(&api, &fixture.id).await;
    let named = heeler_tests::outcome::survivors(&result.task.unwrap());
    assert!(!named.is_empty(), "no survivor is named");
    let task = api.ended(&fixture.id).await;
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    assert_eq!(task.state(), TaskState::Cancelled);
    proof_of(&task);
}

/// R3: the next server says that the task never ran, and forgets it.
async fn a_stopped_shim_of_a_dead_server_starts_nothing(mut daemon: Daemon, _: Setting) {
    if !points_are_built_in() {
        return skipped("this build has no crash points");
    }
    daemon.terminate();
    daemon.die_at("spawn.shim-launched");
    daemon.restart().await;
    let stopped = stop_idle_shims(&daemon).await;
    let request = shell(format!("touch {}", daemon.file("ran")));
    let api = daemon.api().await;
    let unanswered = within("the end of the call", api.spawn(request)).await;
    assert!(unanswered.is_err(), "{unanswered:?}");
    daemon.exited(DEADLINE).expect("a dead server");
    daemon.live_on();
    daemon.restart().await;

    let api = daemon.api().await;
    let [task] = &api.all().await[..] else {
        panic!("not one task")
    };
    assert_eq!(task.end_reason(), EndReason::SpawnFailed, "{task:?}");
    api.remove([&task.id]).await.unwrap();
    stopped.iter().for_each(|shim| shim.signal(Signal::SIGCONT));
    eventually("no shim of the dead server", || {
        stopped.iter().all(|shim| !shim.is_alive())
    })
    .await;
    daemon.no_processes().await;
    assert!(!daemon.path("ran").exists(), "it ran after all");
}
