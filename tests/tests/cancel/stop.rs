//! The stop of a tree, and the proof that it is gone, on every containment.

use heeler_tests::{
    Daemon, Setting, SpawnRequestExt as _, TaskSpecExt as _, eventually, in_each_setting, micros,
    millis,
    outcome::{exit_code, proof_in, proof_of, signal, signals_sent},
    request::{cancel, grace},
    secs,
    v1::*,
    watch::{count, task_of, types},
};

in_each_setting! {
    a_term_trap_runs_and_exit_code_0_is_still_cancelled,
    ignored_term_is_followed_by_kill_after_the_grace_and_not_before,
    cancel_returns_when_term_is_obeyed_and_not_after_the_grace,
    children_and_grandchildren_die_with_the_leader,
    setsid_double_fork_closed_descriptors_and_a_cleared_environment_do_not_escape,
    a_stopped_tree_receives_its_term,
    cancel_reaches_children_after_the_leader_exits,
    two_cancels_at_once_are_one_stop_with_the_same_result,
    the_answer_says_how_the_tree_was_proven_gone,
    force_skips_the_grace,
    force_ends_a_running_grace,
    a_chosen_signal_is_sent_instead_of_term,
    a_grace_of_zero_kills_right_after_the_signal,
}

/// C1
async fn a_term_trap_runs_and_exit_code_0_is_still_cancelled(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let mut fixture = daemon
        .run(
            &api,
            "trap TERM [ print cleaned-up exit 0 ] print ready pid ready forever",
        )
        .await;
    fixture.process("ready").await;
    let stopped = api.stop(&fixture.id).await;
    fixture.assert_gone();
    let task = stopped.task.unwrap();
    assert_eq!(stopped.outcome, i32::from(CancelOutcome::Requested));
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Cancelled, EndReason::Cancelled)
    );
    assert_eq!(exit_code(&task), 0);
    assert_eq!(signals_sent(&task), ["SIGTERM"]);
    assert_eq!(api.lines(&fixture.id).await, ["ready", "cleaned-up"]);
}

/// C2
async fn ignored_term_is_followed_by_kill_after_the_grace_and_not_before(
    daemon: Daemon,
    _: Setting,
) {
    let api = daemon.api().await;
    let mut fixture = daemon
        .run(
            &api,
            "ignore TERM fork [ pid child forever ] pid ready forever",
        )
        .await;
    fixture.processes(&["ready", "child"]).await;
    let grace = millis(700);
    let stopped = api.stop_within(&fixture.id, grace).await;
    fixture.assert_gone();
    let task = stopped.task.unwrap();
    assert_eq!(signals_sent(&task), ["SIGTERM", "SIGKILL"]);
    let stop = task.stop.as_ref().unwrap();
    let kill = stop
        .signals
        .iter()
        .find(|signal| signal.name == "SIGKILL")
        .unwrap();
    let waited = micros(&kill.send_time) - micros(&stop.request_time);
    assert!(waited >= 700_000, "killed after {waited} us");
    assert_eq!(stop.grace, Some(grace));
    let killed = signal(&task);
    assert_eq!((killed.number, &*killed.name), (9, "SIGKILL"));
    assert_eq!(task.state(), TaskState::Cancelled);
}

/// C2
async fn cancel_returns_when_term_is_obeyed_and_not_after_the_grace(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let mut fixture = daemon
        .run(&api, "trap TERM [ sleep 10 exit 5 ] pid ready forever")
        .await;
    fixture.process("ready").await;
    let grace = secs(600);
    let stopped = api.stop_within(&fixture.id, grace).await;
    fixture.assert_gone();
    let task = stopped.task.unwrap();
    assert_eq!((task.state(), exit_code(&task)), (TaskState::Cancelled, 5));
    assert_eq!(signals_sent(&task), ["SIGTERM"], "no SIGKILL");
    let took = micros(&task.end_time) - micros(&task.stop.as_ref().unwrap().request_time);
    assert!(took < 30_000_000, "{took} us");
}

/// C3
async fn children_and_grandchildren_die_with_the_leader(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let script = "fork [ pid child fork [ pid grandchild forever ] forever ] forever";
    let mut fixture = daemon.run(&api, script).await;
    let tree = fixture.processes(&["leader", "child", "grandchild"]).await;
    assert!(tree.iter().all(|process| process.is_alive()));
    let stopped = api.stop(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
}

/// C4
async fn setsid_double_fork_closed_descriptors_and_a_cleared_environment_do_not_escape(
    daemon: Daemon,
    _: Setting,
) {
    let api = daemon.api().await;
    let script = "fork [ setsid fork [ setsid pid daemon forever ] forever ] \
                  double-fork [ setsid pid orphan ignore TERM forever ] \
                  double-fork [ setsid clean-exec [ pid hidden ignore TERM close-all forever ] ] \
                  fork [ clean-exec [ setsid pid bare double-fork [ setsid pid barest forever ] forever ] ] \
                  forever";
    let mut fixture = daemon.run(&api, script).await;
    let names = ["daemon", "orphan", "hidden", "bare", "barest"];
    let escapees = fixture.processes(&names).await;
    let hidden = &escapees[2];
    let empty = |fd: &str| {
        std::fs::read_dir(format!("/proc/{}/{fd}", hidden.pid))
            .unwrap()
            .count()
            == 0
    };
    eventually("a process without descriptors", || empty("fd")).await;
    assert!(escapees.iter().all(|process| process.is_alive()));

    let grace = millis(200);
    let stopped = api.stop_within(&fixture.id, grace).await;
    fixture.assert_gone();
    proof_in(&stopped);
}

/// C6
async fn a_stopped_tree_receives_its_term(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let marker = daemon.file("trapped");
    let script = format!(
        "fork [ trap TERM [ touch {marker} exit 0 ] pid child stop forever ] pid ready stop forever"
    );
    let mut fixture = daemon.run(&api, &script).await;
    let tree = fixture.processes(&["ready", "child"]).await;
    eventually("a stopped tree", || {
        tree.iter().all(|process| process.is_stopped())
    })
    .await;
    let grace = secs(600);
    let stopped = api.stop_within(&fixture.id, grace).await;
    fixture.assert_gone();
    let task = stopped.task.unwrap();
    assert_eq!(signals_sent(&task), ["SIGTERM"], "no SIGKILL");
    assert!(
        std::path::Path::new(&marker).exists(),
        "the child's trap did not run"
    );
    assert_eq!(signal(&task).name, "SIGTERM");
}

/// C7
async fn cancel_reaches_children_after_the_leader_exits(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let script = "fork [ pid child forever ] double-fork [ setsid pid orphan forever ] exit 4";
    let mut fixture = daemon.run(&api, script).await;
    fixture.processes(&["child", "orphan"]).await;
    let mut watch = api.watch_after(0).await;
    let seen = watch
        .until_of(&fixture.id, TaskEventType::LeaderExited)
        .await;
    let task = task_of(seen.last().unwrap());
    assert_eq!((task.state(), exit_code(task)), (TaskState::Running, 4));

    let stopped = api.stop(&fixture.id).await;
    fixture.assert_gone();
    let task = stopped.task.unwrap();
    assert_eq!((task.state(), exit_code(&task)), (TaskState::Cancelled, 4));
}

/// C8
async fn two_cancels_at_once_are_one_stop_with_the_same_result(daemon: Daemon, _: Setting) {
    let (one, two) = (daemon.api().await, daemon.api().await);
    let mut fixture = daemon.run(&one, "ignore TERM pid ready forever").await;
    fixture.process("ready").await;
    let request = CancelRequest {
        how: grace(secs(2)),
        wait: true,
        ..cancel(&fixture.id)
    };
    let (first, second) = tokio::join!(one.cancel_one(request.clone()), two.cancel_one(request));
    fixture.assert_gone();
    assert_eq!(first.task, second.task, "both get the same end");
    let mut outcomes = [first.outcome(), second.outcome()];
    outcomes.sort_by_key(|outcome| i32::from(*outcome));
    assert_eq!(
        outcomes,
        [CancelOutcome::Requested, CancelOutcome::AlreadyStopping]
    );
    assert_eq!(
        signals_sent(&first.task.unwrap()),
        ["SIGTERM", "SIGKILL"],
        "each signal once"
    );
    let expected = [
        TaskEventType::Created,
        TaskEventType::Started,
        TaskEventType::Stopping,
        TaskEventType::Ended,
    ];
    assert_eq!(types(&one.history_of(&fixture.id).await), expected);
}

/// C14
async fn the_answer_says_how_the_tree_was_proven_gone(daemon: Daemon, setting: Setting) {
    let api = daemon.api().await;
    let mut fixture = daemon
        .run(&api, "fork [ setsid pid child forever ] forever")
        .await;
    fixture.process("child").await;
    assert_eq!(fixture.task.containment(), setting.containment());
    let stopped = api.stop(&fixture.id).await;
    fixture.assert_gone();
    let task = stopped.task.unwrap();
    assert_eq!(proof_of(&task), setting.proof());
    let stop = task.stop.as_ref().unwrap();
    let proof = stop.proof.as_ref().unwrap();
    assert!(micros(&proof.check_time) >= micros(&stop.request_time));
    assert!(micros(&proof.check_time) <= micros(&task.end_time));
    let last = api.history_of(&fixture.id).await.pop().unwrap();
    assert_eq!(
        (last.r#type(), last.task),
        (TaskEventType::Ended, Some(task))
    );
}

/// C16
async fn force_skips_the_grace(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let script = "trap TERM [ print never exit 0 ] fork [ ignore TERM pid child forever ] forever";
    let mut fixture = daemon.run(&api, script).await;
    fixture.process("child").await;
    let stopped = api.kill(&fixture.id).await;
    fixture.assert_gone();
    let task = stopped.task.unwrap();
    assert_eq!(signals_sent(&task), ["SIGKILL"]);
    assert_eq!(task.stop.as_ref().unwrap().grace, Some(secs(0)));
    assert_eq!(task.state(), TaskState::Cancelled);
    assert!(api.lines(&fixture.id).await.is_empty(), "the trap ran");
}

/// C16
async fn force_ends_a_running_grace(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let mut fixture = daemon.run(&api, "ignore TERM pid ready forever").await;
    fixture.process("ready").await;
    let asked = api
        .cancel_one(CancelRequest {
            how: grace(secs(600)),
            ..cancel(&fixture.id)
        })
        .await;
    assert_eq!(asked.outcome(), CancelOutcome::Requested);
    assert_eq!(asked.task.unwrap().state(), TaskState::Stopping);
    let forced = api.kill(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(forced.outcome(), CancelOutcome::AlreadyStopping);
    let history = api.history_of(&fixture.id).await;
    assert_eq!(count(&history, TaskEventType::Stopping), 2, "{history:?}");
}

/// C16
async fn a_chosen_signal_is_sent_instead_of_term(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let script = "trap INT [ print interrupted exit 0 ] trap TERM [ print wrong exit 1 ] \
                  trap USR1 [ print own-signal exit 0 ] pid ready forever";
    let mut fixture = daemon.run(&api, script).await;
    fixture.process("ready").await;
    let request = CancelRequest {
        how: Some(cancel_request::How::Graceful(StopPolicy {
            signal: "SIGINT".into(),
            grace: Some(secs(600)),
            ..StopPolicy::default()
        })),
        wait: true,
        ..cancel(&fixture.id)
    };
    let stopped = api.cancel_one(request).await;
    fixture.assert_gone();
    assert_eq!(signals_sent(&stopped.task.unwrap()), ["SIGINT"]);
    assert_eq!(api.lines(&fixture.id).await, ["interrupted"]);

    let request = SpawnRequest::default()
        .with_stop_signal("SIGUSR1")
        .with_grace(secs(600));
    let mut fixture = daemon.run_as(&api, request, script).await;
    assert_eq!(
        (fixture.task.stop_signal(), fixture.task.grace()),
        ("SIGUSR1", Some(secs(600)))
    );
    fixture.process("ready").await;
    let stopped = api.stop(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(signals_sent(&stopped.task.unwrap()), ["SIGUSR1"]);
    assert_eq!(api.lines(&fixture.id).await, ["own-signal"]);
}

/// C2
async fn a_grace_of_zero_kills_right_after_the_signal(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let request = SpawnRequest::default().with_grace(secs(0));
    let mut fixture = daemon
        .run_as(&api, request, "ignore TERM pid ready forever")
        .await;
    fixture.process("ready").await;
    let stopped = api.stop(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
}
