//! The end of tasks with a terminal.

use heeler_tests::{
    Daemon, Setting, SpawnRequestExt as _, in_each_setting, millis,
    outcome::{exit_code, proof_of, signals_sent},
    request::micros,
    secs,
    v1::*,
};

in_each_setting! {
    a_cancel_reaches_every_process_of_a_terminal,
    orphans_of_a_terminal_are_reached,
    a_stopped_tree_of_a_terminal_is_stopped,
    a_terminal_task_that_obeys_term_is_not_killed,
    a_terminal_task_that_ignores_term_is_killed_after_the_grace,
}

fn terminal() -> SpawnRequest {
    SpawnRequest::default().with_terminal(80, 24)
}

/// C3, C4, I5
async fn a_cancel_reaches_every_process_of_a_terminal(daemon: Daemon, setting: Setting) {
    let api = daemon.api().await;
    let script = "ignore HUP fork [ pid child fork [ pid grandchild forever ] forever ] \
        fork [ setsid ignore TERM pid session forever ] \
        double-fork [ setsid close-all clean-exec [ ignore TERM forever ] ] forever";
    let request = terminal().with_grace(secs(0));
    let mut fixture = daemon.run_as(&api, request, script).await;
    fixture.processes(&["child", "grandchild", "session"]).await;
    let stopped = api.stop(&fixture.id).await.task.unwrap();
    fixture.assert_gone();
    assert_eq!(stopped.state(), TaskState::Cancelled);
    assert_eq!(proof_of(&stopped), setting.proof());
}

/// C7, I5
async fn orphans_of_a_terminal_are_reached(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let script = "fork [ setsid ignore HUP ignore TERM pid orphan forever ] await GONE exit 0";
    let script = script.replace("GONE", &daemon.file("gone"));
    let mut fixture = daemon
        .run_as(&api, terminal().with_grace(secs(0)), &script)
        .await;
    let leader = fixture.process("leader").await;
    fixture.process("orphan").await;
    std::fs::write(daemon.path("gone"), "").unwrap();
    heeler_tests::eventually("the leader's end", || leader.is_gone()).await;
    let stopped = api.stop(&fixture.id).await.task.unwrap();
    fixture.assert_gone();
    assert_eq!(stopped.state(), TaskState::Cancelled);
}

/// C1, C6, I5
async fn a_stopped_tree_of_a_terminal_is_stopped(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let script = "trap TERM [ print trapped exit 0 ] pid ready stop forever";
    let mut fixture = daemon.run_as(&api, terminal(), script).await;
    let leader = fixture.process("ready").await;
    heeler_tests::eventually("a stopped leader", || leader.is_stopped()).await;
    let stopped = api.stop(&fixture.id).await.task.unwrap();
    fixture.assert_gone();
    assert_eq!(stopped.state(), TaskState::Cancelled);
    super::output_with(&api, &fixture.id, "trapped").await;
}

/// C2, I5
async fn a_terminal_task_that_obeys_term_is_not_killed(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let script = "trap TERM [ sleep 10 exit 5 ] pid ready forever";
    let mut fixture = daemon.run_as(&api, terminal(), script).await;
    fixture.process("ready").await;
    let stopped = api.stop_within(&fixture.id, secs(600)).await.task.unwrap();
    fixture.assert_gone();
    let ended = (stopped.state(), exit_code(&stopped));
    assert_eq!(ended, (TaskState::Cancelled, 5));
    assert_eq!(signals_sent(&stopped), ["SIGTERM"]);
}

/// C2, I5
async fn a_terminal_task_that_ignores_term_is_killed_after_the_grace(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let script = "ignore TERM ignore HUP fork [ pid child forever ] pid ready forever";
    let mut fixture = daemon.run_as(&api, terminal(), script).await;
    fixture.processes(&["ready", "child"]).await;
    let stopped = api
        .stop_within(&fixture.id, millis(700))
        .await
        .task
        .unwrap();
    fixture.assert_gone();
    assert_eq!(signals_sent(&stopped), ["SIGTERM", "SIGKILL"]);
    let stop = stopped.stop.unwrap();
    let sent = stop.signals.iter().find(|signal| signal.name == "SIGKILL");
    let waited = micros(&sent.unwrap().send_time) - micros(&stop.request_time);
    assert!(waited >= 700_000, "killed after {waited} us");
}
