//! Habits from docker, pueue and tmux: aliases, short flags, and help for words that are not commands.

use heeler_tests::{Daemon, v1::*};

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_program_needs_no_dashes_before_it() {
    let daemon = Daemon::start().await;
    let result = daemon
        .heeler(["run", "echo", "hi", "--json", "-x"])
        .await
        .ok();
    assert_eq!(result.stdout, "hi --json -x\n");
    let id = daemon.spawned(&["--name", "n", "sleep", "60"]).await;
    let task = daemon.api().await.task(&id).await;
    let Some(task_spec::Command::Argv(argv)) = task.spec.unwrap().command else {
        panic!("no argv");
    };
    assert_eq!(argv.args, ["sleep", "60"]);
    let result = daemon.heeler(["run", "--no-such-flag", "echo"]).await;
    assert_eq!(result.code, Some(2), "{result:?}");
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn aliases_do_what_people_expect() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = daemon
        .heeler(["add", "--", "sleep", "60"])
        .await
        .ok()
        .stdout;
    let id = id.trim_end();
    for list in ["ls", "list", "status", "ps"] {
        let result = daemon.heeler([list, "-q"]).await.ok();
        assert_eq!(result.stdout, format!("{id}\n"), "{list}");
    }
    daemon.heeler(["stop", id]).await.ok();
    assert_eq!(api.task(id).await.state(), TaskState::Cancelled);
    let stubborn = daemon.run(&api, "ignore TERM pid ready forever").await;
    daemon.heeler(["kill", &stubborn.id]).await.ok();
    let stop = api.task(&stubborn.id).await.stop.unwrap();
    let sent: Vec<&str> = stop.signals.iter().map(|one| &*one.name).collect();
    assert_eq!(sent, ["SIGKILL"], "{stop:?}");
    let done = daemon
        .heeler(["run", "-d", "echo", "out"])
        .await
        .ok()
        .stdout;
    let done = done.trim_end();
    assert_eq!(daemon.heeler(["follow", done]).await.ok().stdout, "out\n");
    assert_eq!(daemon.heeler(["log", done]).await.ok().stdout, "out\n");
    let version = daemon.heeler(["version"]).await.ok().stdout;
    assert_eq!(version, daemon.heeler(["--version"]).await.ok().stdout);
    // Its exit code depends on the orphans of other tests.
    let info = daemon.heeler(["info"]).await;
    assert!(info.stdout.contains("containment"), "{info:?}");
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unknown_command_suggests_nothing_destructive() {
    let daemon = Daemon::start().await;
    for word in ["prune", "clean", "exec", "top", "delete"] {
        let result = daemon.heeler([word]).await;
        assert_eq!((result.code, &*result.stdout), (Some(2), ""), "{result:?}");
        for destructive in ["cancel", "kill", "stop", "rm", "shutdown", "restart"] {
            let suggested = format!("`heeler {destructive}`");
            assert!(!result.stderr.contains(&suggested), "{result:?}");
        }
    }
    let slip = daemon.heeler(["spwan", "--", "true"]).await;
    assert!(slip.stderr.contains("`heeler spawn`"), "{slip:?}");
}

/// C10, U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancel_all_stops_every_task_and_rm_f_stops_first() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let kept = daemon.spawned(&["sleep", "60"]).await;
    let removed = daemon.spawned(&["--name", "dev", "sleep", "60"]).await;
    let result = daemon.heeler(["rm", "-f", "dev"]).await.ok();
    assert_eq!(result.stdout, format!("{removed}\n"));
    assert_eq!(daemon.heeler(["inspect", &removed]).await.code, Some(3));
    assert_eq!(api.task(&kept).await.state(), TaskState::Running);
    let queued = daemon.spawned(&["--queue", "q", "sleep", "60"]).await;
    daemon.heeler(["cancel", "--all"]).await.ok();
    for id in [&kept, &queued] {
        assert_eq!(api.task(id).await.state(), TaskState::Cancelled);
    }
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn run_rm_leaves_no_task_and_inspect_takes_several() {
    let daemon = Daemon::start().await;
    let result = daemon
        .heeler(["run", "--rm", "-c", "echo gone; exit 4"])
        .await;
    assert_eq!(
        (result.code, &*result.stdout),
        (Some(4), "gone\n"),
        "{result:?}"
    );
    assert_eq!(daemon.heeler(["ps", "-aq"]).await.ok().stdout, "");
    let (a, b) = (
        daemon.spawned(&["true"]).await,
        daemon.spawned(&["true"]).await,
    );
    let both = daemon.heeler(["inspect", &a, &b]).await.ok().stdout;
    assert!(both.contains(&a) && both.contains(&b), "{both}");
    let one_missing = daemon.heeler(["inspect", &a, "shell-aaaaaaaaaa"]).await;
    assert_eq!(one_missing.code, Some(3), "{one_missing:?}");
    assert!(one_missing.stdout.contains(&a), "{one_missing:?}");
}

/// L4, U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_for_a_misspelt_session_fails() {
    let daemon = Daemon::start().await;
    let result = daemon.heeler(["wait", "--session", "typo"]).await;
    assert_eq!(result.code, Some(3), "{result:?}");
    assert!(result.stderr.contains("typo"), "{result:?}");
    let id = daemon.spawned(&["--session", "s", "true"]).await;
    daemon.api().await.ended(&id).await;
    let quiet = daemon.heeler(["wait", "--session", "s"]).await.ok();
    assert!(quiet.stderr.contains("no live task"), "{quiet:?}");
}
