//! `ps`, `logs` and `events`: filters, ids alone, a template, the last ones, colours, a watch.

use heeler_tests::Daemon;

/// L1, L8, U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ps_filters_by_state_name_and_key_and_prints_ids_or_a_template() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let live = daemon
        .spawned(&["--name", "dev", "--label", "team=red", "sleep", "60"])
        .await;
    let failed = daemon.spawned(&["-c", "exit 3"]).await;
    let good = daemon.spawned(&["--session", "s", "true"]).await;
    for id in [&failed, &good] {
        api.ended(id).await;
    }
    let ids = async |args: &[&str]| -> Vec<String> {
        let result = daemon.heeler(["ps", "-q"].iter().chain(args)).await.ok();
        result.stdout.lines().map(str::to_owned).collect()
    };
    assert_eq!(ids(&[]).await, [&*live]);
    assert_eq!(ids(&["--state", "failed"]).await, [&*failed]);
    assert_eq!(
        ids(&["--state", "running", "--state", "completed"]).await,
        [&*live, &*good]
    );
    assert_eq!(ids(&["--filter", "name=dev"]).await, [&*live]);
    assert_eq!(ids(&["--filter", "label=team=red"]).await, [&*live]);
    assert_eq!(ids(&["-a", "--filter", "session=s"]).await, [&*good]);
    assert_eq!(ids(&["--filter", "status=failed"]).await, [&*failed]);
    let home = format!("dir={}", daemon.home().display());
    for (filter, is_live_listed) in [
        (home.as_str(), true),
        ("dir=/no/such/place", false),
        ("stale=false", true),
        ("stale=true", false),
        ("placement=background", true),
        ("placement=foreground", false),
        ("queue=builds", false),
        ("name=nope", false),
    ] {
        let found = ids(&["--filter", filter]).await;
        assert_eq!(found.contains(&live), is_live_listed, "{filter}: {found:?}");
    }
    let format = daemon
        .heeler(["ps", "--format", "{{.ID}}\\t{state}\\t{name}"])
        .await
        .ok();
    assert_eq!(format.stdout, format!("{live}\tRUNNING\tdev\n"));
    assert_eq!(
        daemon.heeler(["ps", "--filter", "nope=1"]).await.code,
        Some(2)
    );
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ps_watch_prints_the_list_when_it_changes() {
    let daemon = Daemon::start().await;
    let mut watcher = daemon.at_terminal(["ps", "--watch"], None);
    watcher.shows("COMMAND").await;
    let id = daemon.spawned(&["--", "sleep", "60"]).await;
    watcher.shows(&id).await;
    watcher.shows("\x1b[32mRUNNING\x1b[0m").await;
    watcher.press(b"\x03");
    watcher.exit().await;
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn colours_are_for_terminals_without_no_color() {
    let daemon = Daemon::builder().env("NO_COLOR", "1").start().await;
    daemon.spawned(&["--", "sleep", "60"]).await;
    let mut shown = daemon.at_terminal(["ps"], None);
    shown.exit().await;
    shown.shows("RUNNING").await;
    assert!(!shown.shown().contains('\x1b'), "{}", shown.shown());
    let piped = daemon.heeler(["ps"]).await.ok();
    assert!(!piped.stdout.contains('\x1b'), "{piped:?}");
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn logs_without_an_id_prints_the_latest_task() {
    let daemon = Daemon::start().await;
    assert_eq!(daemon.heeler(["logs"]).await.code, Some(3));
    let first = daemon.spawned(&["-c", "echo first; sleep 60"]).await;
    let latest = daemon.spawned(&["echo", "latest"]).await;
    daemon.api().await.ended(&latest).await;
    let result = daemon.heeler(["logs"]).await.ok();
    assert_eq!(result.stdout, "latest\n");
    assert!(result.stderr.contains(&latest), "{result:?}");
    assert_eq!(
        daemon
            .heeler(["logs", "--since", "1h", &first])
            .await
            .ok()
            .stdout,
        "first\n"
    );
    assert_eq!(
        daemon
            .heeler(["logs", "--since", "0s", &first])
            .await
            .ok()
            .stdout,
        ""
    );
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_prints_the_last_ones_or_those_since() {
    let daemon = Daemon::start().await;
    let id = daemon.spawned(&["true"]).await;
    daemon.api().await.ended(&id).await;
    let lines = async |args: &[&str]| {
        let result = daemon.heeler(["events"].iter().chain(args)).await.ok();
        result.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = lines(&[]).await;
    assert_eq!(all.len(), 3, "{all:?}");
    assert_eq!(lines(&["-n", "1"]).await, all[2..]);
    assert_eq!(lines(&["-n", "0"]).await, all[3..]);
    assert_eq!(lines(&["--since", "1h"]).await, all);
    assert!(lines(&["--since", "0s"]).await.is_empty());
}
