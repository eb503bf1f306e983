//! The tasks and processes that a cancel reaches.

use heeler_tests::{
    Daemon, Process, Setting, SpawnRequestExt as _,
    request::{cancel_matching, session},
    v1::*,
};

/// C10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancel_of_one_session_leaves_other_tasks_alone() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = |id: &str| SpawnRequest::default().with_session(id);
    let kept = daemon
        .run_as(&api, request("b"), "fork [ pid child forever ] forever")
        .await;
    let bare = daemon.run(&api, "forever").await;
    let mut doomed = daemon
        .run_as(
            &api,
            request("a"),
            "fork [ setsid pid child forever ] forever",
        )
        .await;
    let untouched = [
        kept.process("leader").await,
        kept.process("child").await,
        bare.process("leader").await,
    ];
    doomed.process("child").await;
    let answer = api.stop_session("a").await;
    assert_eq!(answer.results.len(), 1);
    doomed.assert_gone();
    for fixture in [&kept, &bare] {
        let task = api.task(&fixture.id).await;
        assert_eq!((task.state(), &task.stop), (TaskState::Running, &None));
    }
    assert!(untouched.iter().all(Process::is_alive));
}

/// C10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn two_daemons_have_separate_cgroups() {
    let (Some(one), Some(two)) = (Setting::Cgroup.start().await, Setting::Cgroup.start().await)
    else {
        return;
    };
    let mut parents = Vec::new();
    for daemon in [&one, &two] {
        let fixture = daemon.run(&daemon.api().await, "forever").await;
        let pid = fixture.process("leader").await.pid;
        let all = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        let own = all
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .unwrap();
        let own = std::path::Path::new(own);
        assert!(own.ends_with(&fixture.id), "{}", own.display());
        parents.push(own.parent().unwrap().to_owned());
    }
    assert_ne!(parents[0], parents[1], "both daemons use one cgroup");
}

/// C10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_with_a_reused_pid_is_not_signalled() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    // The orphan keeps the task live in a session of its own, so that the leader's pid is free.
    let mut fixture = daemon
        .run(&api, "double-fork [ setsid pid orphan forever ] exit 0")
        .await;
    let (leader, _) = (
        fixture.process("leader").await,
        fixture.process("orphan").await,
    );
    heeler_tests::eventually("the leader to be reaped", || leader.is_gone()).await;
    let Some(mut unrelated) = with_pid(&leader, daemon.fixture_program()) else {
        return heeler_tests::skipped("this user cannot choose a pid");
    };
    let process = Process::now(leader.pid).unwrap();
    let stopped = api.stop(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
    assert!(process.is_alive(), "an unrelated process was killed");
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
}

/// Starts a process with the pid of one that is gone, in a group of its own, if the kernel lets this
/// user choose pids. Another process may take the pid first, or the start times may be equal: then it
/// tries again.
fn with_pid(gone: &Process, program: &std::path::Path) -> Option<std::process::Child> {
    use std::os::unix::process::CommandExt;
    for _ in 0..200 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (gone.pid - 1).to_string()).ok()?;
        let mut command = std::process::Command::new(program);
        let mut child = command
            .arg("forever")
            .process_group(0)
            .current_dir("/")
            .spawn()
            .ok()?;
        if child.id() as i32 == gone.pid && gone.is_gone() {
            return Some(child);
        }
        child.kill().ok()?;
        child.wait().ok()?;
    }
    None
}

/// C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_without_live_tasks_gives_an_empty_answer() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let answer = api.stop_session("no such session").await;
    assert_eq!(answer.results, []);
    assert_eq!(answer.revision, api.revision().await);
}

/// C10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_filter_stops_the_matching_tasks_in_the_order_of_list() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = |id: &str| SpawnRequest::default().with_session(id);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(daemon.run_as(&api, request("a"), "forever").await.id);
    }
    let other = daemon.run_as(&api, request("b"), "forever").await;
    let request = CancelRequest {
        wait: true,
        ..cancel_matching(session("a"))
    };
    let answer = api.cancel(request).await.unwrap();
    ids.reverse();
    let stopped: Vec<&str> = answer
        .results
        .iter()
        .map(|one| &*one.task.as_ref().unwrap().id)
        .collect();
    assert_eq!(stopped, ids, "newest first");
    assert_eq!(api.task(&other.id).await.state(), TaskState::Running);
}
