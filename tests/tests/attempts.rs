//! Tasks that are started again after a failure: attempts, their events and output, stops between them, and the
//! death of the server and of the shim.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use heeler_tests::{
    Api, Daemon, Process, Setting, SpawnRequestExt as _, eventually, in_each_setting, millis,
    outcome::{exit_code, signal},
    process::shims_of,
    secs, shell,
    v1::{ready_policy::Probe, *},
    watch::{task_of, types},
};
use nix::sys::signal::Signal;

in_each_setting! {
    a_task_that_fails_is_started_again_under_its_id_until_it_succeeds,
    every_process_of_a_failed_attempt_is_gone_before_the_next_one,
    orphans_that_end_while_they_are_to_be_killed_do_not_end_the_restarts,
    a_cancel_between_two_attempts_ends_the_task_at_once,
}

/// Asks for restarts after this delay, at most so many in a row.
fn restarted(mut request: SpawnRequest, delay: prost_types::Duration, max: u32) -> SpawnRequest {
    request.spec.get_or_insert_default().restart = Some(RestartPolicy {
        delay: Some(delay),
        max_restarts: Some(max),
        ..RestartPolicy::default()
    });
    request
}

/// A script that counts its attempts in a file, which is `$n` in the rest of it.
fn counted(daemon: &Daemon, rest: &str) -> SpawnRequest {
    let file = daemon.file("count");
    shell(format!("echo >> {file}; n=$(wc -l < {file}); {rest}"))
}

/// Waits until an attempt of the task has failed and another one is to follow.
async fn between_attempts(api: &Api, id: &str) -> BackgroundTask {
    let mut watch = api.watch_after(0).await;
    let events = watch.until_of(id, TaskEventType::Restarting).await;
    task_of(events.last().unwrap()).clone()
}

/// A script that goes on when the file is there.
fn awaiting(file: &str) -> String {
    format!("while ! test -e {file}; do sleep 0.05; done")
}

fn attempts(task: &BackgroundTask) -> &TaskAttempts {
    task.attempts.as_ref().unwrap()
}

fn code_of(outcome: Option<&Outcome>) -> Option<i32> {
    use outcome::Result;
    match outcome?.result.as_ref()? {
        Result::ExitCode(code) => Some(*code),
        Result::Signal(_) | Result::SpawnError(_) | Result::Unknown(_) | Result::Worker(_) => None,
    }
}

/// E1, E5
async fn a_task_that_fails_is_started_again_under_its_id_until_it_succeeds(
    daemon: Daemon,
    _: Setting,
) {
    let api = daemon.api().await;
    let script = "echo attempt $n; test $n = 3 || exit 4$n";
    let request = restarted(counted(&daemon, script), millis(50), 5);
    let first = api.start(request).await;
    let ended = api.ended(&first.id).await;
    assert_eq!(ended.state(), TaskState::Completed);
    assert_eq!(exit_code(&ended), 0);
    assert_eq!(ended.start_time, first.start_time, "one task all along");
    assert_eq!(
        api.output(&first.id).await,
        b"attempt 1\nattempt 2\nattempt 3\n"
    );
    let events = api.history_of(&first.id).await;
    use TaskEventType::{Created, Ended, Restarted, Restarting, Started};
    let expected = [
        Created, Started, Restarting, Restarted, Restarting, Restarted, Ended,
    ];
    assert_eq!(types(&events), expected);
    for (at, attempt, offset) in [(2, 2, 10), (4, 3, 20)] {
        let (waiting, running) = (task_of(&events[at]), task_of(&events[at + 1]));
        assert_eq!(waiting.state(), TaskState::Starting);
        assert_eq!((&waiting.leader, &waiting.outcome), (&None, &None));
        let told = attempts(waiting);
        assert_eq!((told.latest, told.output_offset), (attempt, offset));
        let failed = code_of(told.failed_outcome.as_ref());
        assert_eq!(failed, Some(40 + attempt as i32 - 1));
        assert!(told.due_time.is_some() && told.start_time.is_none());
        assert_eq!(running.state(), TaskState::Running);
        assert!(attempts(running).start_time.is_some() && attempts(running).due_time.is_none());
        assert_ne!(running.leader, first.leader);
    }
    assert_eq!((attempts(&ended).latest, attempts(&ended).failures), (3, 2));
    daemon.no_processes().await;
}

/// E1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_failure_after_the_last_restart_and_a_signal_end_the_task_as_they_are() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = restarted(
        counted(&daemon, "test $n = 3 && kill -9 $$; exit 7"),
        millis(20),
        2,
    );
    let id = api.start(request).await.id;
    let ended = api.ended(&id).await;
    assert_eq!(ended.state(), TaskState::Failed);
    assert_eq!(signal(&ended).number, 9);
    assert_eq!(attempts(&ended).latest, 3);
    assert_eq!(daemon.line_count("count"), 3);
    let plain = api.start(restarted(shell("exit 0"), millis(20), 2)).await;
    assert_eq!(api.ended(&plain.id).await.state(), TaskState::Completed);
    let types = api.event_types(&plain.id).await;
    assert!(!types.contains(&TaskEventType::Restarting), "{types:?}");
    daemon.no_processes().await;
}

/// C7, X2
async fn every_process_of_a_failed_attempt_is_gone_before_the_next_one(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let up = daemon.file("up");
    let script =
        format!("fork [ setsid ignore TERM pid orphan touch {up} forever ] await {up} exit 3");
    let request = restarted(SpawnRequest::default(), millis(50), 2).with_exclusive_key("k");
    let fixture = daemon.run_as(&api, request, &script).await;
    let mut watch = api.watch_after(0).await;
    let is_restarting = |event: &TaskEvent| event.r#type() == TaskEventType::Restarting;
    watch.until(is_restarting).await;
    let orphan = fixture.process("orphan").await;
    assert!(
        orphan.is_gone(),
        "the orphan is killed before the next attempt"
    );
    let rival = shell("true").with_exclusive_key("k");
    assert!(api.spawn(rival).await.is_err(), "the key is still held");
    // After the last attempt the orphan policy decides.
    watch
        .until_of(&fixture.id, TaskEventType::LeaderExited)
        .await;
    let task = api.kill(&fixture.id).await.task.unwrap();
    assert_eq!((task.state(), exit_code(&task)), (TaskState::Cancelled, 3));
    daemon.no_processes().await;
}

/// C7: the order to kill them may come after the end of the attempt.
async fn orphans_that_end_while_they_are_to_be_killed_do_not_end_the_restarts(
    daemon: Daemon,
    _: Setting,
) {
    let api = daemon.api().await;
    let mut tasks = Vec::new();
    for index in 0..12 {
        // Orphans that live for up to a few milliseconds.
        let script = format!("sleep 0.00{} & exit 3", index % 8);
        let request = restarted(shell(script), millis(20), 3);
        tasks.push(api.start(request).await.id);
    }
    for id in tasks {
        // The last orphan may live on until it ends by itself.
        let ended = api.ended(&id).await;
        assert_eq!(ended.state(), TaskState::Failed, "{ended:?}");
        assert_eq!(exit_code(&ended), 3);
        assert_eq!(attempts(&ended).latest, 4);
    }
    daemon.no_processes().await;
}

/// C1, C14
async fn a_cancel_between_two_attempts_ends_the_task_at_once(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let request = restarted(counted(&daemon, "exit 5"), secs(3600), 0);
    let id = api.start(request).await.id;
    let waiting = between_attempts(&api, &id).await;
    assert_eq!(attempts(&waiting).latest, 2);
    let result = api.stop(&id).await;
    let task = result.task.unwrap();
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!(exit_code(&task), 5, "of the last attempt");
    assert!(task.stop.unwrap().proof.is_some());
    assert_eq!(daemon.line_count("count"), 1);
    daemon.no_processes().await;
}

/// T1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_timeout_counts_from_the_first_start_and_ends_a_task_between_two_attempts() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = restarted(counted(&daemon, "exit 5"), secs(3600), 0).with_timeout(millis(400));
    let id = api.start(request).await.id;
    let ended = api.ended(&id).await;
    assert_eq!(ended.state(), TaskState::TimedOut);
    assert_eq!(daemon.line_count("count"), 1);
    daemon.no_processes().await;
}

/// Y1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_is_ready_anew_in_each_attempt() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fail = daemon.file("fail");
    let script = format!(
        "echo ready $n; test $n = 2 || {{ {}; exit 1; }}; sleep 600",
        awaiting(&fail)
    );
    let request = restarted(counted(&daemon, &script), millis(50), 1);
    let request = request.with_ready(Probe::Pattern("^ready".into()));
    let id = api.start(request).await.id;
    let mut watch = api.watch_after(0).await;
    let ready = |event: &TaskEvent| event.r#type() == TaskEventType::Ready;
    watch.until(ready).await;
    std::fs::write(&fail, "").unwrap();
    let events = watch.until(ready).await;
    let waiting = events
        .iter()
        .find(|event| event.r#type() == TaskEventType::Restarting);
    assert_eq!(task_of(waiting.unwrap()).readiness(), Readiness::Pending);
    api.kill(&id).await;
    daemon.no_processes().await;
}

/// O16, Y1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_line_that_an_attempt_leaves_open_is_not_continued_by_the_next_one() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "test $n = 1 && { printf 'error 1, Loading...'; exit 1; }; \
                  printf 'error 2\\nListening\\n'; sleep 600";
    let request = restarted(counted(&daemon, script), millis(50), 1);
    let mut request = request.with_ready(Probe::Pattern("^Listening".into()));
    request.spec.get_or_insert_default().output = Some(OutputPolicy {
        patterns: vec![OutputPattern {
            name: "errors".into(),
            regex: "^error".into(),
            cooldown: Some(millis(0)),
            ..OutputPattern::default()
        }],
        ..OutputPolicy::default()
    });
    let id = api.start(request).await.id;
    let mut watch = api.watch_after(0).await;
    let events = watch.until_of(&id, TaskEventType::Ready).await;
    let starts = |events: &[TaskEvent]| -> Vec<u64> {
        let matches = events.iter().filter_map(|event| event.r#match.as_ref());
        let lines = matches.flat_map(|found| &found.lines);
        lines.map(|line| line.offset).collect()
    };
    let mut found = starts(&events);
    while found.len() < 2 {
        found.extend(starts(&watch.until_of(&id, TaskEventType::Matched).await));
    }
    let first = "error 1, Loading...".len() as u64;
    assert_eq!(found, [0, first], "each line of the pattern once");
    api.kill(&id).await;
    daemon.no_processes().await;
}

/// L3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_is_stopped_between_two_attempts_has_the_use_of_the_earlier_ones() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let busy = "i=0; while test $i -lt 20000; do i=$((i+1)); done; exit 5";
    let request = restarted(counted(&daemon, busy), secs(3600), 1);
    let id = api.start(request).await.id;
    between_attempts(&api, &id).await;
    api.kill(&id).await;
    api.ended(&id).await;
    let used = api.inspect(&id).await.unwrap().resources.unwrap();
    assert!(used.memory_bytes > 0, "{used:?}");
    daemon.no_processes().await;
}

/// R1, R3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_failure_while_no_server_runs_is_followed_by_one_attempt_of_the_next_server() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fail = daemon.file("fail");
    let script = format!(
        "echo attempt $n; test $n = 2 || {{ {}; exit 6; }}; sleep 600",
        awaiting(&fail)
    );
    let started = api
        .start(restarted(counted(&daemon, &script), millis(50), 3))
        .await;
    let leader = Process::now(started.leader.unwrap().pid).unwrap();
    daemon.kill9();
    std::fs::write(&fail, "").unwrap();
    eventually("the end of the first attempt", || leader.is_gone()).await;
    daemon.restart().await;
    let api = daemon.api().await;
    let mut watch = api.watch_after(0).await;
    let events = watch.until_of(&started.id, TaskEventType::Restarted).await;
    let waiting = events
        .iter()
        .find(|event| event.r#type() == TaskEventType::Restarting);
    let failed = attempts(task_of(waiting.unwrap())).failed_outcome.clone();
    assert_eq!(code_of(failed.as_ref()), Some(6), "its true exit code");
    eventually("the second attempt", || daemon.line_count("count") == 2).await;
    api.output_reaches(&started.id, 20).await;
    api.kill(&started.id).await;
    assert_eq!(api.output(&started.id).await, b"attempt 1\nattempt 2\n");
    assert_eq!(daemon.line_count("count"), 2);
    daemon.no_processes().await;
}

/// R3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_shim_of_an_unknown_task_does_not_wait_for_another_attempt() {
    let mut daemon = Daemon::start().await;
    daemon.terminate();
    daemon.save_journal();
    daemon.restart().await;
    let api = daemon.api().await;
    let request = restarted(counted(&daemon, "exit 5"), secs(3600), 0);
    let id = api.start(request).await.id;
    between_attempts(&api, &id).await;
    let shims = shims_of(&daemon.state_dir().join("tasks"));
    let shim = shims.iter().find(|shim| shim.command().contains(&id));
    daemon.kill9();
    daemon.restore_journal();
    daemon.restart().await;
    eventually("the end of the shim", || shim.unwrap().is_gone()).await;
    daemon.logged("file of an unknown task was set aside").await;
}

/// R2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_whose_shim_dies_between_two_attempts_is_lost() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api
        .start(restarted(counted(&daemon, "exit 5"), secs(3600), 0))
        .await
        .id;
    between_attempts(&api, &id).await;
    let shims = shims_of(&daemon.state_dir().join("tasks"));
    let shim = shims.iter().find(|shim| shim.command().contains(&id));
    shim.unwrap().signal(Signal::SIGKILL);
    let ended = api.ended(&id).await;
    assert_eq!(ended.state(), TaskState::Lost);
    assert_eq!(code_of(attempts(&ended).failed_outcome.as_ref()), Some(5));
    daemon.no_processes().await;
}
