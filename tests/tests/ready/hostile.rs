//! Commands of ready policies that misbehave: they are contained and killed like a task.

use std::{fs, path::Path};

use heeler_tests::{
    Daemon, Process, Setting, SpawnRequestExt as _, eventually, eventually_some, in_each_setting,
    millis, v1::*,
};

use super::{command, free_port, probe_files, ready_of, wait_ready, with_probe};

in_each_setting! {
    a_command_that_forks_and_hangs_is_killed_at_its_limit_and_another_one_follows,
    processes_that_outlive_a_command_are_killed_and_its_exit_code_counts,
    a_command_ends_with_the_task_that_it_looks_at,
}

/// The processes that a script of the fixture has named so far.
fn named(pids: &str) -> Vec<Process> {
    let text = fs::read_to_string(pids).unwrap_or_default();
    let process = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        Some(Process {
            pid: fields.next()?.parse().ok()?,
            start_ticks: fields.next()?.parse().ok()?,
        })
    };
    text.lines().filter_map(process).collect()
}

/// Runs the fixture as the command of a ready policy.
fn fixture(daemon: &Daemon, script: &str) -> SpawnRequest {
    let program = daemon.fixture_program().to_str().unwrap();
    with_probe(command(
        [program].into_iter().chain(script.split_whitespace()),
    ))
}

/// Y1
async fn a_command_that_forks_and_hangs_is_killed_at_its_limit_and_another_one_follows(
    daemon: Daemon,
    _: Setting,
) {
    let api = daemon.api().await;
    let pids = daemon.file("pids");
    let hang = format!(
        "pids {pids} ignore TERM pid first \
         double-fork [ setsid clean-exec [ pid escaped ignore TERM forever ] ] forever"
    );
    let request = fixture(&daemon, &hang).with_ready_interval(millis(20));
    let task = daemon.run_as(&api, request, "forever").await;
    // The limit is a second.
    let first: Vec<Process> = eventually_some("both processes of a look", || {
        Some(named(&pids)).filter(|found| found.len() == 2)
    })
    .await;
    eventually("their end", || first.iter().all(|one| !one.is_alive())).await;
    eventually("the next look", || named(&pids).len() > 2).await;
    assert_eq!(ready_of(&api, &task.id).await, Readiness::Pending);
    let stopped = api.kill(&task.id).await;
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
    let left: Vec<Process> = named(&pids).into_iter().filter(Process::is_alive).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(probe_files(&daemon).is_empty());
}

/// Y1
async fn processes_that_outlive_a_command_are_killed_and_its_exit_code_counts(
    daemon: Daemon,
    _: Setting,
) {
    let api = daemon.api().await;
    let pids = daemon.file("pids");
    let script = format!("pids {pids} fork [ setsid pid left forever ] exit 0");
    let task = daemon
        .run_as(&api, fixture(&daemon, &script), "forever")
        .await;
    let answer = wait_ready(&api, &task.id, None).await;
    assert_eq!(answer.met[0].readiness(), Readiness::Ready);
    let left: Vec<Process> = named(&pids).into_iter().filter(Process::is_alive).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(probe_files(&daemon).is_empty());
}

/// Y1, C1
async fn a_command_ends_with_the_task_that_it_looks_at(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let pids = daemon.file("pids");
    let request = fixture(
        &daemon,
        &format!("pids {pids} ignore TERM pid look forever"),
    )
    .with_ready_interval(millis(60_000));
    let task = daemon.run_as(&api, request, "forever").await;
    let look = eventually_some("a look", || named(&pids).into_iter().next()).await;
    assert!(look.is_alive());
    api.stop(&task.id).await;
    assert!(!look.is_alive(), "it outlives the task");
    assert!(probe_files(&daemon).is_empty());
}

/// Y1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_that_stops_its_shim_is_killed_all_the_same() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let pids = daemon.file("pids");
    let script = format!("pids {pids} pid first hold-shim stop");
    let task = daemon
        .run_as(&api, fixture(&daemon, &script), "forever")
        .await;
    let first = eventually_some("a look", || named(&pids).into_iter().next()).await;
    eventually("its end", || !first.is_alive()).await;
    api.kill(&task.id).await;
}

/// Y1, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_next_server_ends_a_command_that_was_running() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let pids = daemon.file("pids");
    let request = fixture(
        &daemon,
        &format!("pids {pids} ignore TERM pid look forever"),
    )
    .with_ready_interval(millis(60_000));
    let task = daemon.run_as(&api, request, "forever").await;
    let look = eventually_some("a look", || named(&pids).into_iter().next()).await;
    daemon.kill9();
    assert!(look.is_alive() && !probe_files(&daemon).is_empty());
    daemon.restart().await;
    eventually("its end", || !look.is_alive()).await;
    daemon.api().await.kill(&task.id).await;
    eventually("the end of its file", || probe_files(&daemon).is_empty()).await;
}

/// Y1, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_command_is_lost_however_often_the_server_dies() {
    let mut daemon = Daemon::builder().containment("subreaper").start().await;
    let pids = daemon.file("pids");
    let script = format!("pids {pids} ignore TERM pid look forever");
    let request = fixture(&daemon, &script).with_ready_interval(millis(60_000));
    let task = daemon.run_as(&daemon.api().await, request, "forever").await;
    for crashes in 0..6 {
        eventually("the look of this server", || named(&pids).len() > crashes).await;
        let looks = named(&pids);
        eventually("the end of all earlier looks", || {
            looks[..crashes].iter().all(|look| !look.is_alive())
        })
        .await;
        assert!(looks[crashes].is_alive(), "it does not outlive a crash");
        daemon.kill9();
        daemon.restart().await;
    }
    daemon.api().await.kill(&task.id).await;
    eventually("the end of all looks", || {
        probe_files(&daemon).is_empty() && !named(&pids).iter().any(Process::is_alive)
    })
    .await;
}

/// Y1, R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_of_the_server_ends_a_command_that_runs() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let pids = daemon.file("pids");
    let script = format!("pids {pids} ignore TERM pid look forever");
    let request = fixture(&daemon, &script).with_ready_interval(millis(60_000));
    daemon.run_as(&api, request, "forever").await;
    let look = eventually_some("a look", || named(&pids).into_iter().next()).await;
    daemon.terminate();
    assert!(!look.is_alive(), "it outlives the server");
    assert!(probe_files(&daemon).is_empty());
    daemon.restart().await;
}

/// Y1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_that_floods_is_killed_and_one_that_is_missing_is_tried_again() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let pids = daemon.file("pids");
    let request = fixture(&daemon, &format!("pids {pids} pid look flood"))
        .with_ready_interval(millis(30_000));
    let flooded = daemon.run_as(&api, request, "forever").await;
    let look = eventually_some("a look", || named(&pids).into_iter().next()).await;
    eventually("its end, long before its limit", || !look.is_alive()).await;
    let late = daemon.file("late");
    let missing = with_probe(command([&*late]));
    let missing = daemon.run_as(&api, missing, "forever").await;
    assert!(
        !wait_ready(&api, &missing.id, Some(millis(200)))
            .await
            .satisfied
    );
    std::os::unix::fs::symlink("/bin/true", Path::new(&late)).unwrap();
    let answer = wait_ready(&api, &missing.id, None).await;
    assert_eq!(answer.met[0].readiness(), Readiness::Ready);
    assert_eq!(ready_of(&api, &flooded.id).await, Readiness::Pending);
}

/// Y1, Y3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_of_the_command_belongs_to_the_task_that_it_looks_at() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let port = free_port();
    let script = format!("double-fork [ setsid listen {port} forever ] forever");
    let request = fixture(&daemon, &script).with_ready_interval(millis(60_000));
    let task = daemon.run_as(&api, request, "forever").await;
    let filter = TaskFilter {
        port: port.into(),
        ..Default::default()
    };
    let found = async || {
        let request = ListRequest {
            filter: Some(filter.clone()),
            ..Default::default()
        };
        api.list(request).await.unwrap().tasks
    };
    let deadline = std::time::Instant::now() + heeler_tests::DEADLINE;
    while found().await.is_empty() {
        assert!(std::time::Instant::now() < deadline, "not found");
    }
    assert_eq!(found().await[0].id, task.id);
}
