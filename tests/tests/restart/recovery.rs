//! Every case that a server can find its predecessor's tasks in, and a shim's death under its eyes.

use std::{fs, path::PathBuf};

use heeler_tests::{
    Api, Daemon, Fixture, Process, Setting, eventually, eventually_some, in_each_setting,
    task_file::{TREE_END, of_another_boot, shim_of},
    v1::{outcome::Result as Ended, *},
    watch::types,
};
use nix::sys::signal::Signal::SIGKILL;

in_each_setting! {
    a_tree_without_its_shim_is_stopped_and_its_task_lost,
    a_shim_that_is_killed_is_noticed_at_once_and_its_tree_stopped,
    an_exit_that_a_dead_shim_has_seen_stays_true,
    a_cancel_whose_shim_dies_is_still_a_cancel,
    a_tree_that_the_journal_does_not_know_is_stopped_and_its_output_kept,
}

/// A tree of three: the leader, a child that has a session of its own, and one that has cleared its
/// environment.
const TREE: &str =
    "print here fork [ setsid pid away forever ] fork [ clean-exec [ pid bare forever ] ] forever";

async fn kill_shim(fixture: &Fixture) {
    let shim = shim_of(&fixture.process("leader").await);
    shim.signal(SIGKILL);
    eventually("the shim's death", || !shim.is_alive()).await;
}

/// Until what it prints is in its task file.
async fn has_printed(api: &Api, fixture: &Fixture) {
    let request = ReadOutputRequest {
        wait: Some(heeler_tests::secs(30)),
        ..heeler_tests::api::read(&fixture.id, 0)
    };
    assert!(!api.read(request).await.unwrap().chunks.is_empty());
}

async fn kill_all(processes: &[Process]) {
    for process in processes {
        process.signal(SIGKILL);
        eventually("a death", || !process.is_alive()).await;
    }
}

fn unknown(task: &BackgroundTask) -> &str {
    match &task.outcome.as_ref().unwrap().result {
        Some(Ended::Unknown(unknown)) => &unknown.detail,
        other => panic!("known: {other:?}"),
    }
}

fn assert_lost(task: &BackgroundTask, why: &str) {
    assert_eq!(task.state(), TaskState::Lost, "{task:?}");
    assert_eq!(task.end_reason(), EndReason::SupervisionLost);
    assert!(unknown(task).contains(why), "{task:?}");
}

/// Created, started and ended, each once.
async fn assert_told_once(api: &Api, id: &str) {
    let kinds = types(&api.history_of(id).await);
    let once = [
        TaskEventType::Created,
        TaskEventType::Started,
        TaskEventType::Ended,
    ];
    assert_eq!(kinds, once);
}

fn assert_dead(processes: &[Process]) {
    let left: Vec<&Process> = processes.iter().filter(|one| one.is_alive()).collect();
    assert!(left.is_empty(), "alive: {left:?}");
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_end_on_record_is_taken_in_though_its_shim_is_gone() {
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
    assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(9)));
    assert_eq!(api.lines(&fixture.id).await, ["one", "two"]);
    assert_told_once(&api, &fixture.id).await;
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_living_shim_is_called_and_the_task_goes_on() {
    let mut daemon = Daemon::start().await;
    let fixture = daemon.run(&daemon.api().await, "forever").await;
    let before = daemon.api().await.task(&fixture.id).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.task(&fixture.id).await, before);
    let stopped = api.stop(&fixture.id, CancelMode::Graceful).await;
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
}

/// R2
async fn a_tree_without_its_shim_is_stopped_and_its_task_lost(mut daemon: Daemon, _rung: Setting) {
    let fixture = daemon.run(&daemon.api().await, TREE).await;
    let tree = fixture.processes(&["leader", "away", "bare"]).await;
    has_printed(&daemon.api().await, &fixture).await;
    daemon.kill9();
    kill_shim(&fixture).await;
    assert!(
        tree.iter().all(Process::is_alive),
        "only the shim was killed"
    );
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_dead(&tree);
    assert_lost(&task, "3 of its processes, which lived on, were killed");
    assert_eq!(api.lines(&fixture.id).await, ["here"]);
    assert_told_once(&api, &fixture.id).await;
    daemon.kill9();
    daemon.restart().await;
    assert_eq!(daemon.api().await.task(&fixture.id).await, task, "once");
}

/// R2
async fn a_shim_that_is_killed_is_noticed_at_once_and_its_tree_stopped(
    daemon: Daemon,
    _rung: Setting,
) {
    let api = daemon.api().await;
    let fixture = daemon.run(&api, TREE).await;
    let other = daemon.run(&api, "forever").await;
    let tree = fixture.processes(&["leader", "away", "bare"]).await;
    has_printed(&daemon.api().await, &fixture).await;
    kill_shim(&fixture).await;
    let task = api.ended(&fixture.id).await;
    assert_dead(&tree);
    assert_lost(&task, "its shim was gone");
    assert_told_once(&api, &fixture.id).await;
    assert_eq!(api.task(&other.id).await.state(), TaskState::Running);
    assert!(other.process("leader").await.is_alive());
}

/// R2
async fn an_exit_that_a_dead_shim_has_seen_stays_true(mut daemon: Daemon, _rung: Setting) {
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
    assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(7)));
}

/// R2
async fn a_cancel_whose_shim_dies_is_still_a_cancel(mut daemon: Daemon, _rung: Setting) {
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "ignore TERM pid deaf forever").await;
    let deaf = fixture.process("deaf").await;
    let request = CancelRequest {
        grace: Some(heeler_tests::secs(600)),
        ..heeler_tests::api::cancel(&fixture.id)
    };
    api.cancel_one(request).await;
    daemon.kill9();
    kill_shim(&fixture).await;
    daemon.restart().await;
    let task = daemon.api().await.task(&fixture.id).await;
    assert_dead(&[deaf]);
    assert_eq!(task.state(), TaskState::Cancelled);
    let proof = task.stop.unwrap().proof.unwrap();
    assert_eq!(proof.method(), ProofMethod::Sweep);
    assert!(proof.survivors.is_empty());
}

/// R2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_of_which_nothing_is_left_is_lost() {
    let mut daemon = Daemon::start().await;
    let fixture = daemon.run(&daemon.api().await, "print here forever").await;
    has_printed(&daemon.api().await, &fixture).await;
    let leader = fixture.process("leader").await;
    daemon.kill9();
    kill_shim(&fixture).await;
    kill_all(&[leader]).await;
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_lost(&task, "left no record of the end");
    assert_eq!(api.lines(&fixture.id).await, ["here"]);
    assert_told_once(&api, &fixture.id).await;
}

/// R5: here the processes of the other boot seem to be there still, number, start time and mark.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_a_reboot_live_tasks_are_lost_once_and_no_process_is_touched() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "print here forever").await;
    has_printed(&api, &fixture).await;
    let stopping = daemon.run(&api, "ignore TERM pid deaf forever").await;
    stopping.process("deaf").await;
    let request = CancelRequest {
        grace: Some(heeler_tests::secs(600)),
        ..heeler_tests::api::cancel(&stopping.id)
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
    assert_told_once(&api, &fixture.id).await;
    let cancelled = api.task(&stopping.id).await;
    assert_eq!(cancelled.state(), TaskState::Cancelled);
    let proof = cancelled.stop.unwrap().proof.unwrap();
    assert_eq!(proof.method(), ProofMethod::Reboot);
    assert!(
        leaders.iter().all(Process::is_alive),
        "somebody was signalled"
    );
    kill_all(&leaders).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.task(&fixture.id).await, task, "once");
    if let Some(root) = daemon.cgroup_root() {
        let left = || root.join(&fixture.id).exists() || root.join(&stopping.id).exists();
        eventually("cgroups that nobody uses are removed", || !left()).await;
    }
}

/// R3: the leader is born frozen, so that the server can be killed while the start is under way.
struct HalfBorn {
    daemon: Daemon,
    id: String,
    shim: Process,
    root: PathBuf,
}

impl HalfBorn {
    async fn new() -> Option<Self> {
        let mut daemon = Setting::Cgroup.start().await?;
        let api = daemon.api().await;
        let root = daemon.cgroup_root().expect("tasks have cgroups");
        fs::write(root.join("cgroup.freeze"), "1").unwrap();
        let request = daemon.script("print born exit 4");
        let mut watch = api.watch_after(0).await;
        let spawn = tokio::spawn(async move { api.spawn(request).await });
        let id = watch.event().await.task.unwrap().id;
        let members = root.join(&id).join("cgroup.procs");
        let leader = eventually_some("a leader that is frozen", || {
            let pid = fs::read_to_string(&members).ok()?.trim().parse().ok()?;
            Process::now(pid)
        })
        .await;
        let shim = shim_of(&leader);
        // From here on it alone is frozen: a server tries its cgroup with a process of its own.
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
async fn a_start_that_is_under_way_is_completed() {
    let Some(mut half) = HalfBorn::new().await else {
        return;
    };
    half.daemon.restart().await;
    let api = half.daemon.api().await;
    assert_eq!(api.task(&half.id).await.state(), TaskState::Starting);
    half.thaw();
    let task = api.ended(&half.id).await;
    assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(4)));
    assert_eq!(api.lines(&half.id).await, ["born"]);
    assert_told_once(&api, &half.id).await;
}

/// R3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_intent_without_an_effect_is_undone_for_good() {
    let Some(mut half) = HalfBorn::new().await else {
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
    let kinds = types(&api.history_of(&half.id).await);
    assert_eq!(kinds, [TaskEventType::Created, TaskEventType::Ended]);
    assert!(file.exists(), "a shim that is late finds its place taken");
}

/// R3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_whose_shim_dies_in_it_is_neither_lost_sight_of_nor_done_twice() {
    let Some(mut half) = HalfBorn::new().await else {
        return;
    };
    kill_all(std::slice::from_ref(&half.shim)).await;
    half.daemon.restart().await;
    let api = half.daemon.api().await;
    // It has the shim's descriptors, lock and all, until it has executed its program.
    half.thaw();
    let task = api.ended(&half.id).await;
    assert_lost(&task, "its shim was gone");
    assert_eq!(api.lines(&half.id).await, [""; 0]);
    assert!(!half.root.join(&half.id).exists(), "nobody is left in it");
}

/// L6: a Remove that was cut short between the record and the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_remove_did_not_come_to_delete_is_deleted_at_the_next_start() {
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
    assert!(api.inspect(&removed.id).await.is_err(), "it stays removed");
    assert_eq!(api.lines(&kept.id).await, ["two"]);
    assert!(!daemon.path("state/strays").exists());
}

/// R4: the journal has lost its latest tasks, which live on.
async fn a_tree_that_the_journal_does_not_know_is_stopped_and_its_output_kept(
    mut daemon: Daemon,
    _rung: Setting,
) {
    daemon.terminate();
    let (journal, earlier) = (daemon.path("state/journal.db"), daemon.path("earlier.db"));
    fs::copy(&journal, &earlier).unwrap();
    daemon.restart().await;
    let api = daemon.api().await;
    let watched = daemon.run(&api, TREE).await;
    let unwatched = daemon.run(&api, TREE).await;
    let names = ["leader", "away", "bare"];
    let mut trees = watched.processes(&names).await;
    // Without its shim, and without anything that would say that its leader is a task's, whoever has
    // cleared its environment is beyond reach where there is no cgroup.
    let marked = ["leader", "away"];
    trees.extend(unwatched.processes(&marked).await);
    for fixture in [&watched, &unwatched] {
        has_printed(&api, fixture).await;
    }
    let root = daemon.cgroup_root();
    daemon.kill9();
    kill_shim(&unwatched).await;
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        fs::rename(daemon.path("state").join(name), daemon.path(name)).unwrap();
    }
    fs::copy(&earlier, &journal).unwrap();
    daemon.restart().await;
    let api = daemon.api().await;
    eventually("trees of no task are stopped", || {
        trees.iter().all(|one| !one.is_alive())
    })
    .await;
    for fixture in [&watched, &unwatched] {
        let line = daemon.logged("a file of no known task was set aside").await;
        assert!(line.contains("strays"), "{line}");
        let kept = daemon.path("state/strays").join(&fixture.id);
        eventually("its file is set aside", || kept.exists()).await;
        let bytes = fs::read(kept).unwrap();
        assert!(bytes.windows(5).any(|window| window == b"here\n"));
        assert!(bytes.len() > TREE_END);
    }
    assert!(api.all().await.is_empty());
    kill_all(&unwatched.processes(&["bare"]).await).await;
    if let Some(root) = root {
        eventually("the old cgroup is empty", || {
            fs::remove_dir(&root).is_ok() || !root.exists()
        })
        .await;
    }
}
