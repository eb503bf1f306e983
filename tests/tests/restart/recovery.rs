//! Recovery: every state in which a server can find the tasks of the one before it, and the death of
//! a shim while the server runs.

use std::{fs, path::PathBuf};

use heeler_tests::{
    Api, Daemon, Fixture, Process, Setting, eventually, eventually_some, in_each_setting,
    outcome::{assert_lost, exit_code, proof_of},
    process::kill_all,
    task_file::{TREE_END, of_another_boot, shim_of},
    v1::*,
    watch::ONE_RUN,
};
use nix::sys::signal::Signal::SIGKILL;

in_each_setting! {
    a_tree_without_a_shim_is_killed_and_its_task_is_lost,
    the_death_of_a_shim_is_noticed_at_once_and_its_tree_is_killed,
    an_exit_that_a_dead_shim_recorded_is_kept,
    a_cancel_whose_shim_dies_ends_cancelled,
    a_tree_that_the_journal_does_not_know_is_killed_and_its_output_is_kept,
}

/// A tree of four: the leader, a child with its own session, one with a cleared environment, and one
/// with both.
const TREE: &str = "print here fork [ setsid pid away forever ] \
                    fork [ clean-exec [ pid bare forever ] ] \
                    fork [ setsid clean-exec [ pid hidden forever ] ] forever";
const NAMES: [&str; 4] = ["leader", "away", "bare", "hidden"];

async fn kill_shim(fixture: &Fixture) {
    let shim = shim_of(&fixture.process("leader").await);
    shim.signal(SIGKILL);
    eventually("the death of the shim", || !shim.is_alive()).await;
}

/// Asserts one CREATED, one STARTED and one ENDED event.
async fn assert_one_run(api: &Api, id: &str) {
    assert_eq!(api.event_types(id).await, ONE_RUN);
}

fn assert_dead(processes: &[Process]) {
    let left: Vec<&Process> = processes.iter().filter(|one| one.is_alive()).collect();
    assert!(left.is_empty(), "alive: {left:?}");
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_recorded_end_is_read_although_its_shim_is_gone() {
    let mut daemon = Daemon::start().await;
    let gate = daemon.gate("gate");
    let script = format!("print one gate {} print two exit 9", daemon.file("gate"));
    let fixture = daemon.run(&daemon.api().await, &script).await;
    let shim = shim_of(&fixture.process("leader").await);
    daemon.kill9();
    gate.open();
    eventually("the shim's end", || !shim.is_alive()).await;
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_eq!(exit_code(&task), 9);
    assert_eq!(api.lines(&fixture.id).await, ["one", "two"]);
    assert_one_run(&api, &fixture.id).await;
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_server_reconnects_to_a_live_shim_and_the_task_goes_on() {
    let mut daemon = Daemon::start().await;
    let fixture = daemon.run(&daemon.api().await, "forever").await;
    let before = daemon.api().await.task(&fixture.id).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.task(&fixture.id).await, before);
    let stopped = api.stop(&fixture.id).await;
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
}

/// R2
async fn a_tree_without_a_shim_is_killed_and_its_task_is_lost(mut daemon: Daemon, _: Setting) {
    let fixture = daemon.run(&daemon.api().await, TREE).await;
    let tree = fixture.processes(&NAMES).await;
    daemon.api().await.output_reaches(&fixture.id, 1).await;
    daemon.kill9();
    kill_shim(&fixture).await;
    assert!(
        tree.iter().all(Process::is_alive),
        "more than the shim was killed"
    );
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_dead(&tree);
    assert_lost(&task, "4 of its processes, which lived on, were killed");
    assert_eq!(api.lines(&fixture.id).await, ["here"]);
    assert_one_run(&api, &fixture.id).await;
    daemon.kill9();
    daemon.restart().await;
    assert_eq!(daemon.api().await.task(&fixture.id).await, task);
}

/// R2
async fn the_death_of_a_shim_is_noticed_at_once_and_its_tree_is_killed(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let fixture = daemon.run(&api, TREE).await;
    let other = daemon.run(&api, "forever").await;
    let tree = fixture.processes(&NAMES).await;
    daemon.api().await.output_reaches(&fixture.id, 1).await;
    kill_shim(&fixture).await;
    let task = api.ended(&fixture.id).await;
    assert_dead(&tree);
    assert_lost(&task, "its shim was gone");
    assert_one_run(&api, &fixture.id).await;
    assert_eq!(api.task(&other.id).await.state(), TaskState::Running);
    assert!(other.process("leader").await.is_alive());
    kill_shim(&other).await;
    let task = api.ended(&other.id).await;
    assert_lost(&task, "1 of its processes, which lived on, was killed");
}

/// R2
async fn an_exit_that_a_dead_shim_recorded_is_kept(mut daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "fork [ pid child forever ] gate {} exit 7",
        daemon.file("gate")
    );
    let fixture = daemon.run(&api, &script).await;
    let child = fixture.process("child").await;
    let shim = shim_of(&fixture.process("leader").await);
    gate.open();
    let mut watch = api.watch_after(0).await;
    watch
        .until(|event| event.r#type() == TaskEventType::LeaderExited)
        .await;
    daemon.kill9();
    kill_all(&[shim]).await;
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_dead(&[child]);
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(exit_code(&task), 7);
}

/// R2
async fn a_cancel_whose_shim_dies_ends_cancelled(mut daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "ignore TERM pid deaf forever").await;
    let deaf = fixture.process("deaf").await;
    let request = CancelRequest {
        how: heeler_tests::request::grace(heeler_tests::secs(600)),
        ..heeler_tests::request::cancel(&fixture.id)
    };
    api.cancel_one(request).await;
    daemon.kill9();
    kill_shim(&fixture).await;
    daemon.restart().await;
    let task = daemon.api().await.task(&fixture.id).await;
    assert_dead(&[deaf]);
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!(proof_of(&task), ProofMethod::Sweep);
}

/// R2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_without_processes_and_end_record_is_lost() {
    let mut daemon = Daemon::start().await;
    let fixture = daemon.run(&daemon.api().await, "print here forever").await;
    daemon.api().await.output_reaches(&fixture.id, 1).await;
    let leader = fixture.process("leader").await;
    daemon.kill9();
    kill_shim(&fixture).await;
    kill_all(&[leader]).await;
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_lost(&task, "left no record of the end");
    assert_eq!(api.lines(&fixture.id).await, ["here"]);
    assert_one_run(&api, &fixture.id).await;
}

/// R5: processes with the recorded pids, start times and environment tags still run.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_a_reboot_live_tasks_are_lost_once_and_no_process_is_signalled() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "print here forever").await;
    api.output_reaches(&fixture.id, 1).await;
    let stopping = daemon.run(&api, "ignore TERM pid deaf forever").await;
    stopping.process("deaf").await;
    let request = CancelRequest {
        how: heeler_tests::request::grace(heeler_tests::secs(600)),
        ..heeler_tests::request::cancel(&stopping.id)
    };
    api.cancel_one(request).await;
    let leaders = [
        fixture.process("leader").await,
        stopping.process("leader").await,
    ];
    daemon.kill9();
    for task in [&fixture, &stopping] {
        kill_shim(task).await;
        daemon.edit(&task.id, |file| of_another_boot(file));
    }
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_lost(&task, "the machine was restarted");
    assert_eq!(api.lines(&fixture.id).await, ["here"]);
    assert_one_run(&api, &fixture.id).await;
    let cancelled = api.task(&stopping.id).await;
    assert_eq!(cancelled.state(), TaskState::Cancelled);
    assert_eq!(proof_of(&cancelled), ProofMethod::Reboot);
    assert!(
        leaders.iter().all(Process::is_alive),
        "a process was signalled"
    );
    kill_all(&leaders).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.task(&fixture.id).await, task);
    if let Some(root) = daemon.cgroup_root() {
        let left = || root.join(&fixture.id).exists() || root.join(&stopping.id).exists();
        eventually("unused cgroups to be removed", || !left()).await;
    }
}

/// A start that is under way: the leader is frozen in its cgroup, and the server is killed.
struct HalfStarted {
    daemon: Daemon,
    id: String,
    shim: Process,
    root: PathBuf,
}

impl HalfStarted {
    async fn new() -> Option<Self> {
        let mut daemon = Setting::Cgroup.start().await?;
        let api = daemon.api().await;
        let root = daemon.cgroup_root().expect("tasks have cgroups");
        fs::write(root.join("cgroup.freeze"), "1").unwrap();
        let request = daemon.script("print started exit 4");
        let mut watch = api.watch_after(0).await;
        let spawn = tokio::spawn(async move { api.spawn(request).await });
        let id = watch.event().await.task.unwrap().id;
        let members = root.join(&id).join("cgroup.procs");
        let leader = eventually_some("a frozen leader", || {
            let pid = fs::read_to_string(&members).ok()?.trim().parse().ok()?;
            Process::now(pid)
        })
        .await;
        let shim = shim_of(&leader);
        // From here on only the leader is frozen: a server tests its cgroup with a process of its own.
        fs::write(root.join(&id).join("cgroup.freeze"), "1").unwrap();
        fs::write(root.join("cgroup.freeze"), "0").unwrap();
        daemon.kill9();
        assert!(spawn.await.unwrap().is_err());
        Some(Self {
            daemon,
            id,
            shim,
            root,
        })
    }

    fn thaw(&self) {
        fs::write(self.root.join(&self.id).join("cgroup.freeze"), "0").unwrap();
    }
}

/// R3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_that_is_under_way_completes() {
    let Some(mut half) = HalfStarted::new().await else {
        return;
    };
    half.daemon.restart().await;
    let api = half.daemon.api().await;
    assert_eq!(api.task(&half.id).await.state(), TaskState::Starting);
    half.thaw();
    let task = api.ended(&half.id).await;
    assert_eq!(exit_code(&task), 4);
    assert_eq!(api.lines(&half.id).await, ["started"]);
    assert_one_run(&api, &half.id).await;
}

/// R3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_recorded_start_that_did_not_happen_never_happens() {
    let Some(mut half) = HalfStarted::new().await else {
        return;
    };
    kill_all(std::slice::from_ref(&half.shim)).await;
    let leaf = half.root.join(&half.id);
    fs::write(leaf.join("cgroup.kill"), "1").unwrap();
    eventually("an empty cgroup", || fs::remove_dir(&leaf).is_ok()).await;
    let file = half.daemon.task_file(&half.id);
    fs::remove_file(&file).unwrap();
    half.daemon.restart().await;
    let api = half.daemon.api().await;
    let task = api.task(&half.id).await;
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(task.end_reason(), EndReason::SpawnFailed);
    let kinds = api.event_types(&half.id).await;
    assert_eq!(kinds, [TaskEventType::Created, TaskEventType::Ended]);
    assert!(file.exists(), "a late shim must find its file taken");
}

/// R3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_whose_shim_dies_is_lost_and_not_repeated() {
    let Some(mut half) = HalfStarted::new().await else {
        return;
    };
    kill_all(std::slice::from_ref(&half.shim)).await;
    half.daemon.restart().await;
    let api = half.daemon.api().await;
    // Until its exec, the leader has the shim's descriptors, the lock included.
    half.thaw();
    let task = api.ended(&half.id).await;
    assert_lost(&task, "its shim was gone");
    assert_eq!(api.lines(&half.id).await, [""; 0]);
    assert!(!half.root.join(&half.id).exists(), "the cgroup is left");
}

/// L6, R3: the server died between the record of a Remove and the deletion of the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_next_server_deletes_the_file_of_a_removed_task() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let removed = api.start(daemon.script("print one")).await;
    let kept = api.start(daemon.script("print two")).await;
    api.ended(&removed.id).await;
    api.ended(&kept.id).await;
    let file = daemon.task_file(&removed.id);
    let bytes = fs::read(&file).unwrap();
    api.remove([&removed.id]).await.unwrap();
    assert!(!file.exists());
    daemon.kill9();
    fs::write(&file, bytes).unwrap();
    daemon.restart().await;
    eventually("the file is deleted", || !file.exists()).await;
    let api = daemon.api().await;
    assert!(api.inspect(&removed.id).await.is_err(), "the task is back");
    assert_eq!(api.lines(&kept.id).await, ["two"]);
    assert!(!daemon.path("state/strays").exists());
}

/// R4: the journal has lost its latest tasks, which still run.
async fn a_tree_that_the_journal_does_not_know_is_killed_and_its_output_is_kept(
    mut daemon: Daemon,
    _: Setting,
) {
    daemon.terminate();
    daemon.save_journal();
    daemon.restart().await;
    let api = daemon.api().await;
    let with_shim = daemon.run(&api, TREE).await;
    let without_shim = daemon.run(&api, TREE).await;
    let mut trees = with_shim.processes(&NAMES).await;
    trees.extend(without_shim.processes(&NAMES).await);
    for fixture in [&with_shim, &without_shim] {
        api.output_reaches(&fixture.id, 1).await;
    }
    let root = daemon.cgroup_root();
    daemon.kill9();
    kill_shim(&without_shim).await;
    daemon.restore_journal();
    daemon.restart().await;
    let api = daemon.api().await;
    eventually("unknown trees to be killed", || {
        trees.iter().all(|one| !one.is_alive())
    })
    .await;
    for fixture in [&with_shim, &without_shim] {
        let line = daemon.logged("file of an unknown task was set aside").await;
        assert!(line.contains("strays"), "{line}");
        let kept = daemon.path("state/strays").join(&fixture.id);
        eventually("the file to be set aside", || kept.exists()).await;
        let bytes = fs::read(kept).unwrap();
        assert!(bytes.windows(5).any(|window| window == b"here\n"));
        assert!(bytes.len() > TREE_END);
    }
    assert!(api.all().await.is_empty());
    if let Some(root) = root {
        eventually("the old cgroup to be removed", || {
            fs::remove_dir(&root).is_ok() || !root.exists()
        })
        .await;
    }
}
