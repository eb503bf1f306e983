//! Tasks that become ready by a line of their output.

use std::time::{Duration, Instant};

use heeler_tests::{
    Daemon, Setting, SpawnRequestExt as _, eventually, in_each_setting, millis,
    process::Gate,
    secs,
    v1::{ready_policy::Probe, *},
    watch::count,
};

use super::{ready_of, wait_ready, with_probe};

in_each_setting! {
    a_task_is_ready_when_a_line_matches,
}

fn with_pattern(regex: &str) -> SpawnRequest {
    with_probe(Probe::Pattern(regex.to_owned()))
}

/// Y1
async fn a_task_is_ready_when_a_line_matches(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let gate = daemon.gate("up");
    let script = format!(
        "print upper bytes 70000 gate {} print end print up print up exit 0",
        daemon.file("up")
    );
    let id = daemon.run_as(&api, with_pattern("^up$"), &script).await.id;
    let answer = wait_ready(&api, &id, Some(millis(300))).await;
    assert!(!answer.satisfied, "another line: {answer:?}");
    gate.open();
    assert!(wait_ready(&api, &id, None).await.satisfied);
    api.ended(&id).await;
    assert_eq!(ready_of(&api, &id).await, Readiness::Ready);
    let events = api.history_of(&id).await;
    assert_eq!(count(&events, TaskEventType::Ready), 1, "{events:?}");
    assert_eq!(
        events.last().map(TaskEvent::r#type),
        Some(TaskEventType::Ended)
    );
}

/// Y1, O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_last_line_before_the_end_makes_a_task_ready_beside_its_other_patterns() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut request = with_pattern("ready").with_command_of(daemon.script("print ready exit 3"));
    request.spec.as_mut().unwrap().output = Some(OutputPolicy {
        patterns: vec![OutputPattern {
            name: "ready".into(),
            regex: "ready".into(),
            ..OutputPattern::default()
        }],
        ..OutputPolicy::default()
    });
    let id = api.start(request).await.id;
    api.ended(&id).await;
    let events = api.history_of(&id).await;
    assert_eq!(count(&events, TaskEventType::Ready), 1, "{events:?}");
    assert_eq!(count(&events, TaskEventType::Matched), 1, "{events:?}");
}

/// Y1, Y2, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_line_that_was_written_while_no_server_ran_makes_a_task_ready() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gates = ["line", "rotated"].map(|name| daemon.gate(name));
    let timed = |request: SpawnRequest| {
        request
            .with_ready_timeout(secs(3))
            .with_ready_action(ReadyTimeoutAction::Cancel)
    };
    let script = |name: &str, rest: &str| {
        let gate = daemon.file(name);
        format!("gate {gate} print up {rest} touch {gate}.done forever")
    };
    let (line, rotating) = (script("line", ""), script("rotated", "bytes 2000000"));
    let plain = daemon
        .run_as(&api, timed(with_pattern("^up$")), &line)
        .await;
    // The line is within the head of the output, which stays when the rest rotates.
    let mut small = with_pattern("^up$");
    small.spec.as_mut().unwrap().output = Some(OutputPolicy {
        max_bytes: 256 << 10,
        ..OutputPolicy::default()
    });
    let rotated = daemon.run_as(&api, timed(small), &rotating).await;
    let begun = Instant::now();
    daemon.kill9();
    gates.into_iter().for_each(Gate::open);
    for name in ["line.done", "rotated.done"] {
        eventually(name, || daemon.path(name).exists()).await;
    }
    let is_over = || begun.elapsed() > Duration::from_secs(3);
    eventually("the end of the time to become ready", is_over).await;
    daemon.restart().await;
    let api = daemon.api().await;
    for id in [&plain.id, &rotated.id] {
        let answer = wait_ready(&api, id, None).await;
        assert_eq!(answer.met[0].readiness(), Readiness::Ready, "{answer:?}");
        assert_eq!(answer.met[0].state(), TaskState::Running);
        let events = api.history_of(id).await;
        assert_eq!(count(&events, TaskEventType::Ready), 1);
        assert_eq!(count(&events, TaskEventType::NotReady), 0);
    }
}

/// Y1, O12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_line_that_the_rotation_has_passed_made_the_task_ready_when_it_was_written() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut request = with_pattern("^up$");
    request.spec.as_mut().unwrap().output = Some(OutputPolicy {
        max_bytes: 256 << 10,
        head_bytes: Some(0),
        ..OutputPolicy::default()
    });
    let gate = daemon.gate("more");
    let script = format!("print up gate {} bytes 2000000 exit 0", daemon.file("more"));
    let id = daemon.run_as(&api, request, &script).await.id;
    assert!(wait_ready(&api, &id, None).await.satisfied);
    gate.open();
    api.ended(&id).await;
    assert_eq!(ready_of(&api, &id).await, Readiness::Ready);
    let events = api.history_of(&id).await;
    assert_eq!(count(&events, TaskEventType::Ready), 1);
}
