//! A machine at its limit of processes: every call that needs no new process is answered.

use std::{fs, os::unix::fs::MetadataExt, process::Command, time::Duration};

use heeler_tests::{
    Daemon, SpawnRequestExt as _,
    containment::reruns_as_nobody,
    outcome::proven,
    request::wait,
    v1::{ListRequest, Readiness, TaskState, WaitCondition, WaitRequest, ready_policy::Probe},
    within,
};
use nix::{
    sys::resource::{Resource, setrlimit},
    unistd::geteuid,
};

/// The processes and threads that the test may start.
const ROOM: u64 = 100;
/// Longer than the threads of tokio's blocking pool wait for work unless they are told to stay: the calls
/// below must not depend on threads that happen to be left.
const THREADS_EXPIRE: Duration = Duration::from_secs(12);

/// The threads of this user.
fn threads() -> u64 {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let own = processes.filter(|entry| {
        let name = entry.file_name();
        let is_pid = name.to_string_lossy().parse::<u32>().is_ok();
        is_pid
            && entry
                .metadata()
                .is_ok_and(|found| found.uid() == geteuid().as_raw())
    });
    let count =
        |path: std::path::PathBuf| fs::read_dir(path.join("task")).map_or(0, Iterator::count);
    own.map(|entry| count(entry.path()) as u64).sum()
}

/// C1, N3, S11, Y1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_process_limit_tasks_are_listed_read_watched_and_cancelled() {
    let name = concat!(
        module_path!(),
        "::at_the_process_limit_tasks_are_listed_read_watched_and_cancelled"
    );
    if reruns_as_nobody(name) {
        return;
    }
    let limit = threads() + ROOM;
    setrlimit(Resource::RLIMIT_NPROC, limit, limit).unwrap();
    let daemon = Daemon::builder().containment("subreaper").start().await;
    let api = daemon.api().await;
    let ended = api.start(daemon.script("print ended")).await;
    api.ended(&ended.id).await;
    let mut other = daemon.run(&api, "pid leader print hello forever").await;
    other.process("leader").await;
    let up = daemon.gate("up");
    let server = format!("gate {} listen 0 forever", daemon.file("up"));
    let server = daemon.script(&server).with_ready(Probe::Port(0));
    let server = api.start(server).await;
    let crowd = api.start(daemon.script("crowd")).await;
    api.output_reaches(&crowd.id, 1).await;
    tokio::time::sleep(THREADS_EXPIRE).await;
    Command::new("true")
        .spawn()
        .expect_err("no process is left");

    for id in [&other.id, &ended.id] {
        let inspected = within("Inspect", api.inspect(id)).await.unwrap();
        assert_eq!(inspected.task.unwrap().id, **id);
    }
    assert_eq!(
        within("ReadOutput", api.output(&ended.id)).await,
        b"ended\n"
    );
    let page = ListRequest {
        include_finished: true,
        page_size: 1000,
        ..Default::default()
    };
    let page = within("List", api.list(page)).await.unwrap();
    assert_eq!(page.tasks.len(), 4);
    up.open();
    let ready = WaitRequest {
        until: WaitCondition::Ready.into(),
        ..wait([&server.id])
    };
    let ready = within("READY", api.wait(ready)).await.unwrap();
    assert_eq!(ready.met[0].readiness(), Readiness::Ready);
    let mut watch = api.watch_after(0).await;
    within("WatchEvents", watch.up_to(page.revision)).await;
    let cancelled = within("Cancel", api.kill(&other.id)).await.task.unwrap();
    assert_eq!(cancelled.state(), TaskState::Cancelled);
    proven(cancelled.stop.unwrap().proof.as_ref());
    other.assert_gone();
    within("the crowd's end", api.kill(&crowd.id)).await;
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
}
