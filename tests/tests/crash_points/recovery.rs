//! Recovery: the next server dies while it takes the tasks of the first one back.

use heeler_tests::{
    Daemon, Follower, argv, eventually, millis,
    outcome::exit_code,
    request::{cancel, grace},
    v1::*,
    watch::{count, types},
};

use crate::{at_each_point, restart_after};

at_each_point! { a_recovery_interrupted:
    before_it => "recovery.begun", ();
    before_its_first_fact_is_committed => "journal.before-commit:1", ();
    after_its_first_fact_is_committed => "journal.committed:1", ();
    after_the_first_task => "recovery.one-reconciled:1", ();
    after_the_second_task => "recovery.one-reconciled:2", ();
    after_the_third_task => "recovery.one-reconciled:3", ();
    before_serving => "recovery.done", ();
}

/// R1, R3, C13, E2
async fn a_recovery_interrupted(point: &str, (): ()) {
    let mut daemon = Daemon::start().await;
    let follower = Follower::of(daemon.address());
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let live = daemon.run(&api, "print live forever").await;
    let script = format!("print out gate {} exit 9", daemon.file("gate"));
    let ending = daemon.run(&api, &script).await;
    let mut stopping = daemon
        .run(
            &api,
            "ignore TERM fork [ setsid pid hidden forever ] pid ready forever",
        )
        .await;
    stopping.processes(&["ready", "hidden"]).await;
    let before = api.task(&live.id).await;
    let request = CancelRequest {
        how: grace(millis(100)),
        ..cancel(&stopping.id)
    };
    api.cancel_one(request).await;
    daemon.kill9();
    gate.open();
    let leader = ending.process("leader").await;
    eventually("an end without a server", || !leader.is_alive()).await;
    daemon.die_at(point);
    daemon.launch();
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    assert_eq!(api.task(&live.id).await, before, "the task has changed");
    assert_eq!(api.lines(&live.id).await, ["live"]);
    let task = api.ended(&ending.id).await;
    assert_eq!(exit_code(&task), 9);
    assert_eq!(api.lines(&ending.id).await, ["out"]);
    let task = api.ended(&stopping.id).await;
    stopping.assert_gone();
    assert_eq!(task.state(), TaskState::Cancelled);
    for id in [&ending.id, &stopping.id] {
        let history = api.history_of(id).await;
        assert_eq!(count(&history, TaskEventType::Ended), 1);
        assert_eq!(types(&history).last(), Some(&TaskEventType::Ended));
    }
    assert_eq!(api.all().await.len(), 3);
    follower.assert_whole(&api).await;
}

at_each_point! { a_setting_aside_interrupted:
    after_the_first_lost_task_is_set_aside => "recovery.lost-set-aside:1", 1;
    after_every_lost_task_is_set_aside => "recovery.done", LOST;
}

const LOST: usize = 3;

/// R3, R4: a power cut has taken tasks from the journal and left their files. The files are set aside
/// before a new task could make them look like those of removed tasks.
async fn a_setting_aside_interrupted(point: &str, by_then: usize) {
    let mut daemon = Daemon::start().await;
    daemon.terminate();
    daemon.save_journal();
    daemon.restart().await;
    let api = daemon.api().await;
    let mut lost = Vec::new();
    for _ in 0..LOST {
        let id = api.start(argv(["echo", "kept"])).await.id;
        lost.push(api.ended(&id).await.id);
    }
    daemon.terminate();
    daemon.restore_journal();
    daemon.die_at(point);
    daemon.launch();
    daemon.died();
    let strays = daemon.path("state/strays");
    let kept = || lost.iter().filter(|id| strays.join(id).exists()).count();
    assert_eq!(kept(), by_then, "files set aside at the death");

    daemon.live_on();
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.start(argv(["true"])).await;
    assert!(!lost.contains(&task.id), "a reused id");
    api.ended(&task.id).await;
    daemon.kill9();
    daemon.restart().await;
    assert_eq!(kept(), LOST, "a file was deleted");
}
