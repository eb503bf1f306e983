//! The pool of shims: idle ones are ready for tasks, reused after them, and end with the server.

use std::{collections::HashSet, time::Duration};

use heeler_server::internal::{Moment, Start, TreeEnd};
use heeler_tests::{
    Daemon, LoneShims, Process, Setting, SpawnRequestExt as _, argv, eventually, eventually_some,
    in_each_setting,
    outcome::{exit_code, proof_in},
    process::shims_of,
    shell,
    v1::TaskState,
};
use nix::sys::signal::Signal;

in_each_setting! {
    consecutive_tasks_reuse_a_few_shims,
    a_shim_that_had_to_kill_is_not_reused,
    a_task_that_stops_its_shim_can_still_be_killed,
    a_task_whose_file_is_deleted_while_it_runs_is_lost,
}

fn shims(daemon: &Daemon) -> Vec<Process> {
    shims_of(&daemon.state_dir().join("tasks"))
}

/// The shim of a task.
fn shim_of(daemon: &Daemon, id: &str) -> Option<Process> {
    let mut shims = shims(daemon).into_iter();
    shims.find(|shim| shim.command().contains(id))
}

/// S1
async fn consecutive_tasks_reuse_a_few_shims(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let mut seen = HashSet::new();
    for n in 0..30 {
        let id = api.start(shell(format!("echo {n}; exit {n}"))).await.id;
        assert_eq!(exit_code(&api.ended(&id).await), n);
        assert_eq!(api.lines(&id).await, [n.to_string()]);
        seen.extend(shims(&daemon).iter().map(|shim| shim.pid));
    }
    assert!(seen.len() < 10, "{} shims for 30 tasks", seen.len());
}

/// C16
async fn a_shim_that_had_to_kill_is_not_reused(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "ignore TERM pid ready forever").await;
    let shim = shim_of(&daemon, &fixture.id).unwrap();
    api.kill(&fixture.id).await;
    eventually("the end of the shim", || shim.is_gone()).await;
}

/// C4
async fn a_task_that_stops_its_shim_can_still_be_killed(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    // Stops the shim over and over: before it reports the start, and during the kill.
    let script = "while kill -STOP $PPID; do sleep 0.05; done";
    let id = api.start(shell(script)).await.id;
    let result = api.kill(&id).await;
    proof_in(&result);
    daemon.no_processes().await;
}

/// R4
async fn a_task_whose_file_is_deleted_while_it_runs_is_lost(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("pid ready gate {} exit 3", daemon.file("gate"));
    let fixture = daemon.run(&api, &script).await;
    fixture.process("ready").await;
    std::fs::remove_file(daemon.task_file(&fixture.id)).unwrap();
    gate.open();
    let task = api.ended(&fixture.id).await;
    assert_eq!(task.state(), TaskState::Lost);
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopped_shim_does_not_delay_a_server() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "pid ready forever").await;
    let shim = shim_of(&daemon, &fixture.id).unwrap();
    shim.signal(Signal::SIGSTOP);
    // More connections than the backlog of the shim.
    for _ in 0..8 {
        daemon.kill9();
        daemon.restart().await;
    }
    let api = daemon.api().await;
    let result = api.kill(&fixture.id).await;
    proof_in(&result);
    daemon.no_processes().await;
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn idle_shims_end_with_the_server_and_busy_ones_do_not() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "pid ready forever").await;
    let busy = shim_of(&daemon, &fixture.id).unwrap();
    eventually("idle shims", || shims(&daemon).len() > 1).await;
    daemon.kill9();
    eventually("only the busy shim", || shims(&daemon) == [busy.clone()]).await;
    daemon.restart().await;
    let api = daemon.api().await;
    api.stop(&fixture.id).await;
    // Another server, perhaps of another build, started this shim: it is not reused.
    eventually("the end of the busy shim", || busy.is_gone()).await;
}

/// S1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn idle_shims_that_died_are_skipped() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for round in 0..3 {
        let waiting = eventually_some("idle shims", || {
            let shims = shims(&daemon);
            (shims.len() > 1).then_some(shims)
        });
        for shim in waiting.await {
            shim.signal(Signal::SIGKILL);
            eventually("the end of the shim", || shim.is_gone()).await;
        }
        let id = api.start(shell(format!("exit {round}"))).await.id;
        assert_eq!(exit_code(&api.ended(&id).await), round);
    }
}

/// S4, S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_long_script_and_a_large_environment_arrive_complete() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let value = "v".repeat(100_000);
    let script = format!("# {}\necho ${{#LONG}} ${{#SHORT}}", "x".repeat(100_000));
    let request = shell(script)
        .with_env([("LONG", value.as_str()), ("SHORT", "1")].map(|(name, value)| (name, value)));
    for _ in 0..3 {
        let id = api.start(request.clone()).await.id;
        api.ended(&id).await;
        assert_eq!(api.lines(&id).await, ["100000 1"]);
    }
    // Beyond the limit of the kernel: refused by name, and the shim stays usable.
    let words = std::iter::once("true".to_owned()).chain((0..25).map(|_| value.clone()));
    let refused = api.spawn(argv(words)).await.unwrap_err();
    let message = refused.message();
    assert!(message.contains("Argument list too long"), "{message}");
    let id = api.start(shell("exit 3")).await.id;
    assert_eq!(exit_code(&api.ended(&id).await), 3);
}

/// L3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_cpu_time_of_a_task_excludes_earlier_tasks_of_its_shim() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for _ in 0..3 {
        let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let id = api.start(shell(burn)).await.id;
        api.ended(&id).await;
        assert!(cpu(&api.inspect(&id).await.unwrap()) > Duration::from_millis(50));
    }
    for _ in 0..4 {
        let fixture = daemon.run(&api, "pid ready forever").await;
        let used = cpu(&api.inspect(&fixture.id).await.unwrap());
        assert!(used < Duration::from_millis(50), "{used:?}");
    }
}

/// T6
#[tokio::test]
async fn every_recorded_time_is_taken_from_both_clocks() {
    let shims = LoneShims::new();
    let begun = Moment::now();
    let mut task = shims.start("echo first; sleep 0.05; echo second").await;
    let TreeEnd { time, .. } = task.ended().await;
    let ended = Moment::now();
    let records = task.records();
    let Some(Start::Running { time: started, .. }) = records.start.whole() else {
        panic!("{records:?}");
    };
    let exited = records.leader_exit.whole().unwrap().time;
    let output = task.last_output().at.unwrap();
    let moments = [started.into(), output, exited.into(), time.into()];
    assert!(moments.is_sorted_by_key(|moment: &Moment| moment.mono));
    for moment in moments {
        assert!(
            (begun.mono..=ended.mono).contains(&moment.mono),
            "{moment:?}"
        );
        assert!(
            (begun.wall..=ended.wall).contains(&moment.wall),
            "{moment:?}"
        );
    }
    let silence = output.mono.since(Moment::from(started).mono);
    assert!(silence >= Duration::from_millis(50), "{silence:?}");
}

fn cpu(inspected: &heeler_tests::v1::InspectResponse) -> Duration {
    let time = inspected.resources.as_ref().unwrap().cpu_time.unwrap();
    time.try_into().unwrap()
}
