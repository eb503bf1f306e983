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
    let Some((unrelated, mut parent)) = with_pid(&leader, daemon.fixture_program()).await else {
        return heeler_tests::skipped("this user cannot choose a pid");
    };
    let stopped = api.stop(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
    assert!(unrelated.is_alive(), "an unrelated process was killed");
    kill(unrelated.pid);
    parent.wait().unwrap();
}

/// Starts a process with the pid of one that is gone, in a session of its own, and returns it with its
/// parent, which ends after it; nothing if the kernel does not let this user choose pids.
async fn with_pid(
    gone: &Process,
    program: &std::path::Path,
) -> Option<(Process, std::process::Child)> {
    use std::{io::Read, process::Stdio};
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let pid = gone.pid.to_string();
    let script = [
        "fork-as", &pid, "[", "setsid", "print", "born", "forever", "]",
    ];
    let mut born = None;
    // Another process may have the pid for a while.
    heeler_tests::eventually("the pid to be free", || {
        let mut command = std::process::Command::new(program);
        command.args(script).args(["close-all", "reap"]);
        command.current_dir("/").stdout(Stdio::piped());
        let mut parent = command.spawn().unwrap();
        let mut line = [0; 5];
        let is_born = parent.stdout.take().unwrap().read_exact(&mut line).is_ok();
        match Process::now(gone.pid).filter(|_| is_born && gone.is_gone()) {
            Some(process) => born = Some((process, parent)),
            None => {
                if is_born {
                    kill(gone.pid);
                }
                parent.wait().unwrap();
            }
        }
        born.is_some()
    })
    .await;
    born
}

fn kill(pid: i32) {
    let pid = nix::unistd::Pid::from_raw(pid);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
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
