//! `heeler restart`: the new task is accepted before the old one is stopped.

use heeler_tests::{Daemon, TaskSpecExt as _, v1::*};

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn restart_starts_the_same_task_under_a_new_id_that_names_the_old_one() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "echo \"$A\"; sleep 60";
    let args = [
        "--name",
        "dev",
        "--session",
        "s",
        "--cwd",
        "/",
        "--env",
        "A=1",
        "-c",
        script,
    ];
    let old = daemon.spawned(&args).await;
    let refused = daemon.heeler(["restart", "dev"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--env A="), "{refused:?}");
    assert_eq!(
        api.task(&old).await.state(),
        TaskState::Running,
        "nothing is stopped"
    );
    let new = daemon
        .heeler(["restart", "dev", "--env", "A=2"])
        .await
        .ok()
        .stdout;
    let new = new.trim_end();
    assert_ne!(new, old);
    api.assert_one_after_the_other(&[old.clone(), new.to_owned()])
        .await;
    let (before, after) = (api.task(&old).await, api.task(new).await);
    assert_eq!(before.end_reason(), EndReason::Replaced);
    assert_eq!(after.state(), TaskState::Running);
    let (mut expected, spec) = (before.spec.unwrap(), after.spec.unwrap());
    expected.exclusive = Some(ExclusivePolicy {
        key: old.clone(),
        mode: ExclusiveMode::Replace.into(),
    });
    expected.labels.insert("heeler.restart-of".to_owned(), old);
    assert_eq!(spec, expected);
    api.output_reaches(new, 2).await;
    assert_eq!(api.lines(new).await, ["2"]);
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_restart_that_the_daemon_refuses_stops_nothing() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let directory = daemon.file("work");
    std::fs::create_dir(&directory).unwrap();
    for queue in [&[][..], &["--queue", "q"]] {
        let args = [&["--cwd", &directory], queue, &["sleep", "60"]].concat();
        let id = daemon.spawned(&args).await;
        std::fs::remove_dir(&directory).unwrap();
        let refused = daemon.heeler(["restart", &id]).await;
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(refused.stderr.contains(&directory), "{refused:?}");
        assert_eq!(api.task(&id).await.state(), TaskState::Running);
        assert_eq!(api.task(&id).await.stop, None, "not even asked");
        std::fs::create_dir(&directory).unwrap();
    }
}

/// U3, S11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_slot_and_the_key_of_the_old_task_are_those_of_the_new_one() {
    let daemon = Daemon::builder().max_tasks(1).start().await;
    let api = daemon.api().await;
    let old = daemon.spawned(&["--exclusive", "k", "sleep", "60"]).await;
    let new = daemon.heeler(["restart", &old]).await.ok().stdout;
    let task = api.task(new.trim_end()).await;
    assert_eq!(task.state(), TaskState::Running, "the limit is one task");
    assert_eq!(task.exclusive_key(), "k");
    assert_eq!(api.task(&old).await.end_reason(), EndReason::Replaced);
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_of_a_queue_is_stopped_once_the_new_one_waits() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let old = daemon.spawned(&["--queue", "q", "sleep", "60"]).await;
    daemon.heeler(["queue", "q", "--slots", "2"]).await.ok();
    let new = daemon.heeler(["restart", &old]).await.ok().stdout;
    let new = new.trim_end().to_owned();
    api.until(&new, TaskState::Running).await;
    let stop = api.task(&old).await.stop.unwrap();
    assert_eq!(stop.actor.unwrap().name, "heeler restart");
    assert_eq!(stop.reason, format!("replaced by {new}"));
    api.assert_one_after_the_other(&[old, new]).await;
}

/// U3, C10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_finished_task_is_started_again_and_stops_no_other() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let replace = ["--exclusive", "k", "--on-held", "replace"];
    let args = [&replace[..], &["-c", "exit 4"]].concat();
    let old = daemon.spawned(&args).await;
    api.ended(&old).await;
    let new = daemon.heeler(["restart", &old]).await.ok().stdout;
    let again = api.ended(new.trim_end()).await;
    assert_eq!(heeler_tests::outcome::exit_code(&again), 4);
    let other = daemon.spawned(&["--exclusive", "k", "sleep", "60"]).await;
    let refused = daemon.heeler(["restart", &old]).await;
    assert!(refused.stderr.contains(&other), "{refused:?}");
    assert_eq!(api.task(&other).await.state(), TaskState::Running);
}
