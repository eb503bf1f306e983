//! Shims: started before their tasks, reused after them, gone with the server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::HashSet, time::Duration};

use heeler_server::process::{
    Moment, Monotonic,
    task_file::{Start, TreeEnd},
};
use heeler_tests::{
    Daemon, LoneShims, Process, Setting, argv, eventually, eventually_some, in_each_setting,
    process::shims_of,
    shell,
    v1::{CancelMode, SpawnRequest, TaskState, outcome::Result as Ended},
};
use nix::sys::signal::Signal;

in_each_setting! {
    tasks_in_a_row_share_a_few_shims,
    a_shim_that_had_to_kill_ends_with_its_task,
    a_task_that_stops_its_shim_is_gone_all_the_same,
    a_task_whose_file_goes_while_it_runs_still_ends,
}

fn shims(daemon: &Daemon) -> Vec<Process> {
    shims_of(&daemon.state_dir().join("tasks"))
}

/// The shim that has this task.
fn shim_of(daemon: &Daemon, id: &str) -> Option<Process> {
    let mut shims = shims(daemon).into_iter();
    shims.find(|shim| shim.command().contains(id))
}

/// S1
async fn tasks_in_a_row_share_a_few_shims(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let mut seen = HashSet::new();
    for n in 0..30 {
        let id = api.start(shell(format!("echo {n}; exit {n}"))).await.id;
        let outcome = api.ended(&id).await.outcome.unwrap();
        assert_eq!(outcome.result, Some(Ended::ExitCode(n)));
        assert_eq!(api.lines(&id).await, [n.to_string()]);
        seen.extend(shims(&daemon).iter().map(|shim| shim.pid));
    }
    assert!(seen.len() < 10, "{} shims for 30 tasks", seen.len());
}

/// C5
async fn a_shim_that_had_to_kill_ends_with_its_task(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "ignore TERM pid ready forever").await;
    let shim = shim_of(&daemon, &fixture.id).unwrap();
    api.stop(&fixture.id, CancelMode::Force).await;
    eventually("the shim's end", || shim.is_gone()).await;
}

/// C4
async fn a_task_that_stops_its_shim_is_gone_all_the_same(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    // Also before the shim can say that it runs, and while it is to be killed.
    let script = "while kill -STOP $PPID; do sleep 0.05; done";
    let id = api.start(shell(script)).await.id;
    let result = api.stop(&id, CancelMode::Force).await;
    assert!(result.proof.unwrap().survivors.is_empty());
    daemon.no_processes().await;
}

/// R4
async fn a_task_whose_file_goes_while_it_runs_still_ends(daemon: Daemon, _: Setting) {
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
async fn a_shim_that_is_stopped_holds_up_no_server() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "pid ready forever").await;
    let shim = shim_of(&daemon, &fixture.id).unwrap();
    shim.signal(Signal::SIGSTOP);
    // More servers than a shim lets wait at its door.
    for _ in 0..8 {
        daemon.kill9();
        daemon.restart().await;
    }
    let api = daemon.api().await;
    let result = api.stop(&fixture.id, CancelMode::Force).await;
    assert!(result.proof.unwrap().survivors.is_empty());
    daemon.no_processes().await;
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn shims_that_wait_end_with_the_server_and_those_with_a_task_do_not() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "pid ready forever").await;
    let busy = shim_of(&daemon, &fixture.id).unwrap();
    eventually("shims at hand", || shims(&daemon).len() > 1).await;
    daemon.kill9();
    eventually("only the busy one", || shims(&daemon) == [busy.clone()]).await;
    daemon.restart().await;
    let api = daemon.api().await;
    api.stop(&fixture.id, CancelMode::Graceful).await;
    // It was started by another server, maybe of another build: this one does not use it again.
    eventually("its end", || busy.is_gone()).await;
}

/// S1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn shims_that_died_while_they_waited_are_passed_over() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for round in 0..3 {
        let waiting = eventually_some("shims at hand", || {
            let shims = shims(&daemon);
            (shims.len() > 1).then_some(shims)
        });
        for shim in waiting.await {
            shim.signal(Signal::SIGKILL);
            eventually("its end", || shim.is_gone()).await;
        }
        let id = api.start(shell(format!("exit {round}"))).await.id;
        let outcome = api.ended(&id).await.outcome.unwrap();
        assert_eq!(outcome.result, Some(Ended::ExitCode(round)));
    }
}

/// S2, S5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_long_script_and_a_large_environment_arrive_whole() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let value = "v".repeat(100_000);
    let script = format!("# {}\necho ${{#LONG}} ${{#SHORT}}", "x".repeat(100_000));
    let request = SpawnRequest {
        env: [("LONG", value.as_str()), ("SHORT", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..shell(script)
    };
    for _ in 0..3 {
        let id = api.start(request.clone()).await.id;
        api.ended(&id).await;
        assert_eq!(api.lines(&id).await, ["100000 1"]);
    }
    // More than the kernel takes: refused by name, and the shim is none the worse.
    let words = std::iter::once("true".to_owned()).chain((0..25).map(|_| value.clone()));
    let refused = api.spawn(argv(words)).await;
    let refused = refused.unwrap_err().message().to_owned();
    assert!(refused.contains("Argument list too long"), "{refused}");
    let id = api.start(shell("exit 3")).await.id;
    let outcome = api.ended(&id).await.outcome.unwrap();
    assert_eq!(outcome.result, Some(Ended::ExitCode(3)));
}

/// L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_is_not_charged_for_what_its_shim_did_before() {
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
    let written: Monotonic = output.mono;
    let silence = written.since(Moment::from(started).mono);
    assert!(silence >= Duration::from_millis(50), "{silence:?}");
}

fn cpu(inspected: &heeler_tests::v1::InspectResponse) -> Duration {
    let time = inspected.resources.as_ref().unwrap().cpu_time.unwrap();
    time.try_into().unwrap()
}
