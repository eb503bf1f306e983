//! Full disks under many tasks: every task can be stopped, recorded or not.

use std::time::Duration;

use heeler_tests::{
    Api, Daemon, FileSystem, ImageDisk, Process, Refusal, SpawnRequestExt as _, eventually,
    exclusive,
    outcome::{exit_code, proof_in},
    queued,
    request::{self, cancel},
    secs, shell,
    v1::*,
    watch::types,
};
use nix::sys::signal::Signal::SIGKILL;
use tonic::Code;

use super::disk::{after, state};

const LIVE: usize = 100;
const FINISHED: usize = 150;

/// A disk on which nothing at all can be written once it is full, and its daemon.
async fn without_reserve() -> Option<(ImageDisk, Daemon)> {
    let disk = ImageDisk::mount(FileSystem::Ext2, 64)?;
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    Some((disk, daemon))
}

/// Starts a task that runs until it is stopped, and returns its id and its leader.
async fn sleeper(api: &Api, request: SpawnRequest) -> (String, Process) {
    let task = api
        .start(request.with_command_of(shell("exec sleep 1000")))
        .await;
    let leader = Process::now(task.leader.unwrap().pid).expect("a running leader");
    (task.id, leader)
}

fn kill(id: &str) -> CancelRequest {
    CancelRequest {
        how: request::force(),
        wait: true,
        reason: "enough".to_owned(),
        actor: "tester".to_owned(),
        ..cancel(id)
    }
}

fn assert_unrecorded(result: &CancelResult, reason: ErrorReason) {
    let unrecorded = result.unrecorded.as_ref();
    let unrecorded = unrecorded.unwrap_or_else(|| panic!("recorded: {result:?}"));
    assert_eq!(unrecorded.reason(), reason, "{result:?}");
    assert!(!unrecorded.message.is_empty(), "{result:?}");
}

/// Asserts that a task was cancelled once, by the test, and that its events are in order.
async fn assert_cancelled(api: &Api, id: &str) {
    let task = api.ended(id).await;
    assert_eq!(task.state(), TaskState::Cancelled, "{task:?}");
    let stop = task.stop.unwrap();
    assert_eq!(stop.reason, "enough");
    assert_eq!(stop.actor.unwrap().name, "tester");
    let expected = [
        TaskEventType::Created,
        TaskEventType::Started,
        TaskEventType::Stopping,
        TaskEventType::Ended,
    ];
    assert_eq!(types(&api.history_of(id).await), expected);
}

/// Many facts first, then a full disk with many live tasks.
async fn cancel_all_on_a_full_disk(block: u32) {
    let Some(disk) = ImageDisk::mount(FileSystem::Ext4 { block }, 96) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    for _ in 0..FINISHED {
        let id = api.start(shell("true")).await.id;
        api.ended(&id).await;
    }
    let mut sleepers = Vec::new();
    for _ in 0..LIVE {
        sleepers.push(sleeper(&api, SpawnRequest::default()).await);
    }
    disk.fill();
    for _ in 0..50 {
        let refused = api.spawn(shell("true")).await;
        Refusal::expect(refused, Code::ResourceExhausted, "STORAGE_FULL");
    }
    for (id, leader) in &sleepers {
        let result = api.cancel_one(kill(id)).await;
        assert_eq!(result.unrecorded, None, "{id}");
        assert_eq!(result.task.as_ref().unwrap().state(), TaskState::Cancelled);
        proof_in(&result);
        assert!(!leader.is_alive(), "{id} lives");
    }
    assert!(
        daemon.log().contains("the disk is full"),
        "{}",
        daemon.log()
    );
    disk.free();
    daemon.logged("the disk has space again").await;
    let next = api.start(shell("exit 3")).await.id;
    assert_eq!(exit_code(&api.ended(&next).await), 3);
    for (id, _) in sleepers.iter().step_by(20) {
        assert_cancelled(&api, id).await;
    }
}

/// O14, C14
#[tokio::test]
async fn on_a_full_disk_a_hundred_tasks_are_cancelled_and_recorded_after_many_facts() {
    cancel_all_on_a_full_disk(4096).await;
}

/// O14, C14
#[tokio::test]
async fn on_a_full_disk_with_small_blocks_a_hundred_tasks_are_cancelled_and_recorded() {
    cancel_all_on_a_full_disk(1024).await;
}

/// O14, R1: the space is kept across a crash and across a shutdown.
#[tokio::test]
async fn a_restarted_server_still_has_space_for_the_ends_of_its_tasks() {
    let Some(disk) = ImageDisk::mount(FileSystem::Ext4 { block: 4096 }, 64) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    let mut sleepers = Vec::new();
    for _ in 0..20 {
        sleepers.push(sleeper(&api, SpawnRequest::default()).await);
    }
    disk.fill();
    for round in 0..2 {
        match round {
            0 => drop(daemon.kill9()),
            _ => daemon.terminate(),
        }
        disk.fill();
        daemon.restart().await;
        let api = daemon.api().await;
        for (id, leader) in sleepers.drain(..10) {
            let result = api.cancel_one(kill(&id)).await;
            assert_eq!(result.unrecorded, None, "{id}");
            assert!(!leader.is_alive());
        }
    }
    disk.free();
}

/// O14, C14: a kill that was asked for happens though nothing can be written.
#[tokio::test]
async fn where_nothing_can_be_written_a_cancel_kills_and_says_what_is_not_recorded() {
    let Some((disk, daemon)) = without_reserve().await else {
        return;
    };
    daemon.logged("no space is reserved").await;
    let api = daemon.api().await;
    let (id, leader) = sleeper(&api, SpawnRequest::default()).await;
    let (later, _) = sleeper(&api, SpawnRequest::default()).await;
    disk.fill();
    let before = api.history().await;
    let result = api.cancel_one(kill(&id)).await;
    assert!(!leader.is_alive(), "the task lives: {result:?}");
    assert_unrecorded(&result, ErrorReason::StorageFull);
    proof_in(&result);
    let task = result.task.unwrap();
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!(task.stop.unwrap().reason, "enough");
    // Other calls show what is recorded.
    assert_eq!(state(&api, &id).await, TaskState::Running);
    assert_eq!(api.history().await, before, "an event without a record");
    let again = api.cancel_one(kill(&id)).await;
    assert_eq!(again.outcome(), CancelOutcome::AlreadyStopping);
    assert_unrecorded(&again, ErrorReason::StorageFull);
    let not_waited_for = CancelRequest {
        wait: false,
        ..kill(&later)
    };
    let result = api.cancel_one(not_waited_for).await;
    assert_unrecorded(&result, ErrorReason::StorageFull);
    assert_eq!(result.task.unwrap().state(), TaskState::Stopping);
    let told = daemon.heeler(["cancel", "--force", &id]).await.ok();
    assert!(told.stdout.contains("proven gone"), "{told:?}");
    assert!(told.stderr.contains("not recorded"), "{told:?}");

    disk.free();
    for id in [&id, &later] {
        assert_cancelled(&api, id).await;
    }
    api.history().await;
}

/// O14, C14, C8: timeouts, escalations, replacements and cascades do not wait for the disk.
#[tokio::test]
async fn where_nothing_can_be_written_whatever_stops_a_task_stops_it() {
    let Some((disk, daemon)) = without_reserve().await else {
        return;
    };
    let api = daemon.api().await;
    let request = SpawnRequest::default().with_timeout(secs(3));
    let (timed, timed_leader) = sleeper(&api, request).await;
    let (parent, parent_leader) = sleeper(&api, SpawnRequest::default()).await;
    let of_parent = SpawnRequest::default().with_parent(&parent);
    let (child, child_leader) = sleeper(&api, of_parent).await;
    let obstinate = shell("trap '' TERM; while :; do sleep 0.1; done");
    let obstinate = api.start(obstinate).await;
    let obstinate_leader = Process::now(obstinate.leader.unwrap().pid).unwrap();
    let held = exclusive("key", ExclusiveMode::Reject, SpawnRequest::default());
    let (holder, _) = sleeper(&api, held).await;
    disk.fill();
    let graceful = CancelRequest {
        how: request::grace(secs(1)),
        ..kill(&obstinate.id)
    };
    let result = api.cancel_one(graceful).await;
    assert_unrecorded(&result, ErrorReason::StorageFull);
    assert!(!obstinate_leader.is_alive(), "{result:?}");
    let cascade = CancelRequest {
        cascade: true,
        ..kill(&parent)
    };
    let result = api.cancel_one(cascade).await;
    assert_unrecorded(&result, ErrorReason::StorageFull);
    proof_in(&result);
    assert!(!parent_leader.is_alive() && !child_leader.is_alive());
    eventually("the timeout", || !timed_leader.is_alive()).await;
    let replace = exclusive("key", ExclusiveMode::Replace, shell("true"));
    let refused = api.spawn(replace).await;
    Refusal::expect(refused, Code::ResourceExhausted, "STORAGE_FULL");
    assert_eq!(state(&api, &holder).await, TaskState::Running);
    disk.free();
    let ends = [&timed, &obstinate.id, &child, &parent].map(|id| api.ended(id));
    let mut states = Vec::new();
    for end in ends {
        states.push(end.await.state());
    }
    let cancelled = TaskState::Cancelled;
    assert_eq!(
        states,
        [TaskState::TimedOut, cancelled, cancelled, cancelled]
    );
    let order: Vec<String> = api
        .history()
        .await
        .into_iter()
        .filter(|event| event.r#type() == TaskEventType::Ended)
        .map(|event| event.task.unwrap().id)
        .filter(|id| [&child, &parent].contains(&id))
        .collect();
    assert_eq!(order, [child, parent], "the child ends first");
    api.kill(&holder).await;
}

/// C12, C14, O14: the parent itself has nothing to record that the disk refuses.
#[tokio::test]
async fn a_cascade_is_answered_though_the_end_of_a_child_cannot_be_recorded() {
    let Some((disk, daemon)) = without_reserve().await else {
        return;
    };
    let api = daemon.api().await;
    let (parent, parent_leader) = sleeper(&api, SpawnRequest::default()).await;
    let gate = daemon.file("home/gate");
    let obstinate = format!("trap '' TERM; echo; while [ ! -e {gate} ]; do sleep 0.05; done");
    let obstinate = shell(obstinate).with_parent(&parent);
    let child = api.start(obstinate.with_grace(secs(600))).await;
    let child_leader = Process::now(child.leader.unwrap().pid).unwrap();
    api.output_reaches(&child.id, 1).await;
    let cascade = CancelRequest {
        cascade: true,
        how: request::grace(secs(600)),
        ..kill(&parent)
    };
    let cancelled = {
        let api = api.clone();
        tokio::spawn(async move { api.cancel_one(cascade).await })
    };
    let mut watch = api.watch_after(0).await;
    watch.until_of(&child.id, TaskEventType::Stopping).await;
    eventually("the end of the parent's tree", || !parent_leader.is_alive()).await;
    disk.fill();
    std::fs::write(&gate, "").unwrap();
    let result = tokio::time::timeout(Duration::from_secs(30), cancelled).await;
    let result = result.expect("an answer").unwrap();
    assert_unrecorded(&result, ErrorReason::StorageFull);
    proof_in(&result);
    assert!(!child_leader.is_alive());
    assert_eq!(state(&api, &parent).await, TaskState::Stopping);
    disk.free();
    for id in [&child.id, &parent] {
        assert_eq!(api.ended(id).await.state(), TaskState::Cancelled);
    }
}

/// O14, C14: after a panic, too, other calls show what is recorded.
#[tokio::test]
async fn an_actor_that_fails_shows_nothing_that_the_disk_has_refused() {
    let Some(disk) = ImageDisk::mount(FileSystem::Ext2, 64) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.panic_at("cancel.before-intent:2");
    daemon.restart().await;
    let api = daemon.api().await;
    let (id, leader) = sleeper(&api, SpawnRequest::default()).await;
    disk.fill();
    let before = api.history().await;
    api.cancel_one(kill(&id)).await;
    let again = api.cancel_one(kill(&id)).await;
    daemon.logged("taking the task back").await;
    assert_unrecorded(&again, ErrorReason::StorageFull);
    assert!(!leader.is_alive(), "{again:?}");
    assert_eq!(state(&api, &id).await, TaskState::Running);
    let wait = WaitRequest {
        timeout: Some(secs(1)),
        ..request::wait([&id])
    };
    let waited = api.wait(wait).await.unwrap();
    assert!(!waited.satisfied, "an end without a record: {waited:?}");
    assert_eq!(api.history().await, before, "an event without a record");
    disk.free();
    assert_cancelled(&api, &id).await;
}

/// O14: an end that cannot be recorded waits; it is neither lost nor announced.
#[tokio::test]
async fn an_end_that_cannot_be_recorded_waits_for_space() {
    let Some((disk, mut daemon)) = without_reserve().await else {
        return;
    };
    let api = daemon.api().await;
    let gate = daemon.file("home/gate");
    let ending = api.start(after(&gate, "exit 7")).await;
    let leader = Process::now(ending.leader.unwrap().pid).unwrap();
    let (id, _) = sleeper(&api, SpawnRequest::default()).await;
    disk.fill();
    std::fs::write(&gate, "").unwrap();
    daemon.logged("cannot record an event").await;
    assert_eq!(state(&api, &ending.id).await, TaskState::Running);
    let found = api.cancel_one(kill(&ending.id)).await;
    assert_eq!(found.outcome(), CancelOutcome::AlreadyFinished);
    assert_unrecorded(&found, ErrorReason::StorageFull);
    assert_eq!(exit_code(found.task.as_ref().unwrap()), 7);

    // The next server finds the end, too, and serves at once.
    daemon.kill9();
    eventually("an end", || !leader.is_alive()).await;
    daemon.restart().await;
    let api = daemon.api().await;
    let serving = "serving before these tasks are recovered";
    daemon.logged(serving).await;
    for id in [&ending.id, &id] {
        assert_eq!(state(&api, id).await, TaskState::Running, "as recorded");
    }
    disk.free();
    assert_eq!(exit_code(&api.ended(&ending.id).await), 7);
    api.kill(&id).await;
    api.history().await;
}

/// O14, R7: the tasks are stopped; the next server finds their ends.
#[tokio::test]
async fn a_shutdown_stops_tasks_where_nothing_can_be_written() {
    let Some((disk, mut daemon)) = without_reserve().await else {
        return;
    };
    let api = daemon.api().await;
    let (id, leader) = sleeper(&api, SpawnRequest::default()).await;
    disk.fill();
    let stop = ShutdownRequest {
        tasks: ShutdownTasks::Stop.into(),
        ..Default::default()
    };
    let answer = api.raw().shutdown(stop).await.unwrap().into_inner();
    assert_eq!((answer.stopped_tasks, answer.live_tasks), (1, 0));
    assert!(!leader.is_alive());
    daemon.exited(Duration::from_secs(20)).expect("an exit");
    disk.free();
    daemon.restart().await;
    let ended = daemon.api().await.ended(&id).await;
    assert_eq!(
        ended.state(),
        TaskState::Failed,
        "as in its file: {ended:?}"
    );
}

/// C14, O14: also if the shim is gone.
#[tokio::test]
async fn where_nothing_can_be_written_a_tree_without_its_shim_is_killed() {
    let Some((disk, daemon)) = without_reserve().await else {
        return;
    };
    let api = daemon.api().await;
    let (id, leader) = sleeper(&api, SpawnRequest::default()).await;
    let shim = Process::now(leader.stat().unwrap().parent).unwrap();
    disk.fill();
    shim.signal(SIGKILL);
    let result = api.cancel_one(kill(&id)).await;
    assert_unrecorded(&result, ErrorReason::StorageFull);
    assert!(!leader.is_alive(), "{result:?}");
    disk.free();
    api.ended(&id).await;
}

/// O14, X1
#[tokio::test]
async fn a_queued_task_whose_admission_a_full_disk_refuses_starts_when_there_is_space() {
    let Some((disk, daemon)) = without_reserve().await else {
        return;
    };
    let api = daemon.api().await;
    let (holder, _) = sleeper(&api, queued("q", SpawnRequest::default())).await;
    let waiting = api.start(queued("q", shell("exit 3"))).await.id;
    disk.fill();
    let result = api.cancel_one(kill(&holder)).await;
    assert_unrecorded(&result, ErrorReason::StorageFull);
    daemon.logged("cannot record an admission").await;
    assert_eq!(state(&api, &waiting).await, TaskState::Queued);
    disk.free();
    assert_eq!(exit_code(&api.ended(&waiting).await), 3);
    let expected = [
        TaskEventType::Created,
        TaskEventType::Admitted,
        TaskEventType::Started,
        TaskEventType::Ended,
    ];
    let told: Vec<_> = types(&api.history_of(&waiting).await);
    assert_eq!(told, expected);
}
