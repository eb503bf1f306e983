//! Runaway chains: processes that fork and exit without pause and ignore TERM.
//!
//! A binary of its own, whose tests run one after the other: the chains use up the CPU, and at times
//! every pid of the machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    time::{Duration, Instant},
};

use heeler_tests::{
    Daemon, Setting, SpawnRequestExt as _, containment, eventually, millis,
    outcome::{exit_code, proof_in, proof_of},
    process::{Process, kill_all},
    request::{cancel, grace},
    secs,
    task_file::shim_of,
    v1::{CancelRequest, ListRequest, ProofMethod, SpawnRequest, TaskEventType, TaskState},
    waiting::eventually_blocking,
    watch::task_of,
};
use nix::sys::signal::Signal;

/// Makes three tests of each function, one per setting, that never run at the same time.
macro_rules! in_each_setting_alone {
    ($($behaviour:ident),* $(,)?) => { $(
        mod $behaviour {
            use super::{Setting, alone};

            fn on(setting: Setting, name: &str) {
                alone(setting, concat!(module_path!(), "::"), name, super::$behaviour);
            }

            #[test]
            fn on_cgroups() {
                on(Setting::Cgroup, "on_cgroups");
            }

            #[test]
            fn on_the_subreaper() {
                on(Setting::Subreaper, "on_the_subreaper");
            }

            #[test]
            fn on_an_unprivileged_user() {
                on(Setting::Unprivileged, "on_an_unprivileged_user");
            }
        }
    )* };
}

in_each_setting_alone! {
    runaway_chains_die_while_the_server_stays_responsive,
    runaway_chains_with_a_session_each_die,
    runaway_chains_of_a_terminal_die,
    runaway_chains_die_after_their_shim,
    runaway_chains_leave_few_zombies,
    the_exit_code_of_a_leader_that_exits_among_runaway_chains_is_known,
}

/// Runs a test while no other runs. It builds its runtime only then: the chains may use every pid, and
/// a thread could not be started.
fn alone(setting: Setting, module: &str, name: &str, behaviour: impl AsyncFnOnce(Daemon, Setting)) {
    // A rerun as another user belongs to the test that has the lock.
    let _lock = (!containment::is_rerun()).then(lock);
    if setting == Setting::Unprivileged && containment::reruns_as_nobody(&format!("{module}{name}"))
    {
        return;
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        if let Some(daemon) = setting.start().await {
            behaviour(daemon, setting).await;
        }
    });
}

/// A lock among processes: an abstract socket name, which goes with the process that has it.
fn lock() -> UnixListener {
    let name = SocketAddr::from_abstract_name("heeler-tests/chains").unwrap();
    loop {
        match UnixListener::bind_addr(&name) {
            Ok(listener) => return listener,
            Err(_) => std::thread::sleep(heeler_tests::waiting::STEP),
        }
    }
}

/// The time limit of a call while 64 processes compete for the CPU.
const RESPONSIVE: Duration = Duration::from_secs(10);

/// C5
async fn runaway_chains_die_while_the_server_stays_responsive(daemon: Daemon, setting: Setting) {
    let api = daemon.api().await;
    let mut quiet = daemon.run(&api, "forever").await;
    let mut fixture = daemon
        .run(&api, "ignore TERM chains 64 plain pid ready forever")
        .await;
    fixture.process("ready").await;
    let stopped = tokio::time::timeout(RESPONSIVE, api.kill(&quiet.id)).await;
    proof_in(&stopped.expect("a cancel of another task"));
    quiet.assert_gone();
    let cancelled = {
        let (api, id) = (api.clone(), fixture.id.clone());
        tokio::spawn(async move { api.stop_within(&id, millis(300)).await })
    };
    let other = daemon.api().await;
    let mut calls = 0;
    while !cancelled.is_finished() || calls < 5 {
        let answer = tokio::time::timeout(RESPONSIVE, other.list(ListRequest::default())).await;
        answer.expect("an answer under load").unwrap();
        calls += 1;
    }
    let stopped = cancelled.await.unwrap();
    fixture.assert_gone();
    assert_eq!(proof_in(&stopped), setting.proof());
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
}

/// C5
async fn runaway_chains_with_a_session_each_die(daemon: Daemon, setting: Setting) {
    let api = daemon.api().await;
    let mut fixture = daemon
        .run(&api, "ignore TERM chains 64 setsid pid ready forever")
        .await;
    fixture.process("ready").await;
    let stopped = api.kill(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(proof_in(&stopped), setting.proof());
}

/// C5, I5
async fn runaway_chains_of_a_terminal_die(daemon: Daemon, setting: Setting) {
    let api = daemon.api().await;
    let request = SpawnRequest::default().with_terminal(80, 24);
    let script = "ignore TERM ignore HUP chains 64 plain pid ready forever";
    let mut fixture = daemon.run_as(&api, request, script).await;
    fixture.process("ready").await;
    let stopped = api.stop_within(&fixture.id, millis(300)).await;
    fixture.assert_gone();
    assert_eq!(proof_in(&stopped), setting.proof());
}

/// C5, C14, R2: a chain's link is gone as soon as it is seen.
async fn runaway_chains_die_after_their_shim(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    for script in [
        "ignore TERM chains 1 plain pid ready forever",
        "ignore TERM chains 8 setsid pid ready forever",
    ] {
        let mut fixture = daemon.run(&api, script).await;
        let leader = fixture.process("leader").await;
        fixture.process("ready").await;
        let request = CancelRequest {
            how: grace(secs(600)),
            ..cancel(&fixture.id)
        };
        api.cancel_one(request).await;
        kill_all(&[shim_of(&leader)]).await;
        let task = api.ended(&fixture.id).await;
        assert!(fixture.leash_is_free(), "a link lives on: {task:?}");
        assert_eq!(proof_of(&task), ProofMethod::Sweep);
    }
}

/// The number of zombies that a shim may leave for a moment, of tens of thousands in the time of this test: an eighth
/// of all pids. Without a privilege a shim may wait for its turn while it looks whether the storm goes on.
const FEW: usize = 4096;
/// Longer than a shim leaves the chains to the kernel before it looks whether they go on.
const WATCHED: Duration = Duration::from_secs(5);

/// C5: the machine does not run out of pids.
async fn runaway_chains_leave_few_zombies(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let mut fixture = daemon
        .run(&api, "ignore TERM chains 64 plain pid ready forever")
        .await;
    let shim = shim_of(&fixture.process("leader").await);
    fixture.process("ready").await;
    leave_to_kernel(&shim).await;
    // Those from the time for which the test itself had stopped the shim.
    eventually("the first zombies reaped", || children(&shim) < FEW).await;
    let (begun, mut most) = (Instant::now(), 0);
    while begun.elapsed() < WATCHED {
        most = most.max(children(&shim));
        std::thread::sleep(Duration::from_millis(5));
    }
    api.kill(&fixture.id).await;
    fixture.assert_gone();
    assert!(most < FEW, "{most} zombies");
}

/// C5, C7: the kernel may have reaped the leader.
async fn the_exit_code_of_a_leader_that_exits_among_runaway_chains_is_known(
    daemon: Daemon,
    _: Setting,
) {
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "ignore TERM chains 64 plain pid ready gate {} exit 7",
        daemon.file("gate")
    );
    let mut fixture = daemon.run(&api, &script).await;
    let leader = fixture.process("leader").await;
    fixture.process("ready").await;
    leave_to_kernel(&shim_of(&leader)).await;
    gate.open();
    let mut watch = api.watch_after(0).await;
    let exited = TaskEventType::LeaderExited;
    let seen = watch.until_of(&fixture.id, exited).await;
    let task = task_of(seen.last().unwrap());
    assert_eq!((task.state(), exit_code(task)), (TaskState::Running, 7));
    let stopped = api.kill(&fixture.id).await;
    fixture.assert_gone();
    let task = stopped.task.unwrap();
    assert_eq!((task.state(), exit_code(&task)), (TaskState::Cancelled, 7));
}

/// The number of zombies that one look of a shim finds to be a storm, with room for those not counted.
const STORM: usize = 512;

/// Causes a shim among runaway chains to leave them to the kernel, if it keeps exit statuses. A shim that
/// is fast enough never has to; one that was stopped for a moment finds more zombies than it can reap.
async fn leave_to_kernel(shim: &Process) {
    if !kernel_keeps_exit_statuses() {
        return;
    }
    eventually("the kernel to reap", || {
        shim.signal(Signal::SIGSTOP);
        let is_storm = eventually_blocking(Duration::from_secs(1), || children(shim) >= STORM);
        shim.signal(Signal::SIGCONT);
        is_storm && eventually_blocking(Duration::from_secs(1), || ignores_child_signals(shim.pid))
    })
    .await;
}

/// The number of a process's children, of which all but the 64 links are zombies.
fn children(of: &Process) -> usize {
    let pid = of.pid;
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    list.split_ascii_whitespace().count()
}

/// Kernels before 6.15 forget the status of a process that they reap; there the shim goes on to reap.
fn kernel_keeps_exit_statuses() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(15))
}

/// Returns whether the kernel reaps the children of a process.
fn ignores_child_signals(pid: i32) -> bool {
    const SIGCHLD: u64 = 1 << (17 - 1);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap() & SIGCHLD != 0
}
