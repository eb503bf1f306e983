//! Whom a cancel reaches, and whom it does not.

use heeler_tests::{
    Daemon, Process, Setting, SpawnRequestExt as _,
    request::session,
    v1::{cancel_request::Target, *},
};

/// C10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_tasks_are_not_touched() {
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
    let target = Some(Target::SessionId("a".into()));
    let answer = api
        .cancel(CancelRequest {
            target,
            wait: true,
            ..Default::default()
        })
        .await
        .unwrap();
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
async fn two_daemons_keep_their_tasks_in_cgroups_of_their_own() {
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
    assert_ne!(
        parents[0], parents[1],
        "what one daemon prunes is not the other's"
    );
}

/// C10: a process that has got the number of a leader that is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_with_a_reused_number_is_not_hit() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    // The orphan keeps the task alive in a session of its own, so that the leader's number is free.
    let mut fixture = daemon
        .run(&api, "double-fork [ setsid pid orphan forever ] exit 0")
        .await;
    let (leader, _) = (
        fixture.process("leader").await,
        fixture.process("orphan").await,
    );
    heeler_tests::eventually("the leader is reaped", || leader.is_gone()).await;
    let Some(mut stranger) = with_pid(&leader, daemon.fixture_program()) else {
        return heeler_tests::skipped("this user cannot choose the number of a process");
    };
    let stranger_process = Process::now(leader.pid).unwrap();
    let stopped = api.stop(&fixture.id, CancelMode::Graceful).await;
    fixture.assert_gone();
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
    assert!(stranger_process.is_alive(), "a stranger was hit");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

/// A process with the number of one that is gone and a group of its own, where the kernel lets one
/// choose. Another may be quicker to take the number, or this one so quick that its start time is
/// that of the first; then the next attempt may do better.
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
async fn a_session_without_live_tasks_is_an_empty_answer() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let target = Some(Target::SessionId("nobody".into()));
    let answer = api
        .cancel(CancelRequest {
            target,
            wait: true,
            ..Default::default()
        })
        .await
        .unwrap();
    assert_eq!(answer.results, []);
    assert_eq!(answer.revision, api.revision().await);
}

/// C10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_filter_stops_those_that_match_and_answers_in_the_order_of_list() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = |id: &str| SpawnRequest::default().with_session(id);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(daemon.run_as(&api, request("a"), "forever").await.id);
    }
    let other = daemon.run_as(&api, request("b"), "forever").await;
    let target = Some(Target::Filter(session("a")));
    let answer = api
        .cancel(CancelRequest {
            target,
            wait: true,
            ..Default::default()
        })
        .await
        .unwrap();
    ids.reverse();
    let told: Vec<&str> = answer
        .results
        .iter()
        .map(|one| &*one.task.as_ref().unwrap().id)
        .collect();
    assert_eq!(told, ids, "newest first");
    assert_eq!(api.task(&other.id).await.state(), TaskState::Running);
}
