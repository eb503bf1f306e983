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

/// Y3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ps_inspect_and_cancel_know_the_port_of_a_task() {
    let daemon = Daemon::start().await;
    let fixture = daemon.fixture_program().to_str().unwrap();
    let other = daemon.spawned(&["--", "sleep", "600"]).await;
    let id = daemon
        .spawned(&["--", fixture, "listen", "0", "forever"])
        .await;
    let port = daemon.api().await.listening_port(&id).await.to_string();
    let run = async |args: &[&str]| daemon.heeler(args).await.ok().stdout;
    let table = run(&["ps"]).await;
    let row = table.lines().find(|line| line.starts_with(&id)).unwrap();
    assert!(row.contains(&format!(" :{port} ")), "{table}");
    let ids = [id.as_str(), ""].join("\n");
    assert_eq!(run(&["ps", "-q", "--port", &port]).await, ids);
    assert_eq!(
        run(&["ps", "-q", "--filter", &format!("port={port}")]).await,
        ids
    );
    let shown = daemon.heeler(["ps", "--json"]).await.ok().json();
    assert_eq!(shown["ports"][0]["taskId"], *id);
    let card = run(&["inspect", &id]).await;
    assert!(card.contains(&format!("127.0.0.1:{port} ")), "{card}");
    let cancelled = run(&["cancel", "--port", &port]).await;
    assert!(cancelled.starts_with(&id), "{cancelled}");
    assert_eq!(run(&["ps", "-q"]).await, [other.as_str(), ""].join("\n"));
}

/// Y1, Y2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spawn_and_wait_know_when_a_task_is_ready() {
    let daemon = Daemon::start().await;
    let fixture = daemon.fixture_program().to_str().unwrap();
    let up = daemon.file("up");
    let look = format!("test -e {up}");
    let id = daemon
        .spawned(&[
            "--ready-command",
            &look,
            "--ready-timeout",
            "300ms",
            "--",
            "sleep",
            "600",
        ])
        .await;
    let waited = daemon.heeler(["wait", "--until", "ready", &id]).await;
    assert_eq!(waited.code, Some(1), "{waited:?}");
    assert_eq!(waited.stdout, format!("{id}  not ready, RUNNING\n"));
    std::fs::write(&up, "").unwrap();
    let waited = async || daemon.heeler(["wait", "--until", "ready", &id]).await;
    while waited().await.code != Some(0) {}
    assert_eq!(waited().await.stdout, format!("{id}  ready, RUNNING\n"));
    let card = daemon.heeler(["inspect", &id]).await.ok().stdout;
    let rule = format!("yes: /bin/sh -c {look}, within 300ms");
    assert!(card.contains(&rule), "{card}");
    let listen = [
        "--ready-port",
        "0",
        "--wait-ready",
        "--",
        fixture,
        "listen",
        "0",
        "forever",
    ];
    let listening = daemon.spawned(&listen).await;
    let table = daemon
        .heeler(["ps", "--filter", "kind=shell"])
        .await
        .ok()
        .stdout;
    let row = table.lines().find(|line| line.starts_with(&listening));
    assert!(row.unwrap().contains(" ready :"), "{table}");
    let line = [
        "--ready-match",
        "^up [0-9]",
        "--wait-ready",
        "--",
        fixture,
        "print",
        "up 80",
        "forever",
    ];
    let up = daemon.spawned(&line).await;
    let card = daemon.heeler(["inspect", &up]).await.ok().stdout;
    assert!(card.contains("yes: a line with ^up [0-9]"), "{card}");
    let late = [
        "--ready-port",
        "0",
        "--ready-timeout",
        "200ms",
        "--ready-cancel",
        "--wait-ready",
    ];
    let args = ["spawn"].iter().chain(&late).chain(&["--", "sleep", "600"]);
    let spawned = daemon.heeler(args).await;
    assert_eq!(spawned.code, Some(1), "{spawned:?}");
    let id = spawned.stdout.trim_end();
    assert!(
        spawned.stderr.contains(&format!("{id} is not ready")),
        "{spawned:?}"
    );
    let events = daemon.heeler(["events", "--type", "not-ready"]).await.ok();
    assert!(
        events.stdout.contains("any port, within 200ms or stopped"),
        "{events:?}"
    );
    for bad in [
        &["--wait-ready", "--", "true"][..],
        &["--ready-timeout", "1s", "--", "true"],
        &[
            "--ready-port",
            "1",
            "--ready-url",
            "http://localhost",
            "--",
            "true",
        ],
        &["--ready-port", "70000", "--", "true"],
        &["--ready-match", "", "--", "true"],
    ] {
        let refused = daemon.heeler(["spawn"].iter().chain(bad)).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}

/// U2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn restarts_are_asked_for_by_a_flag_and_shown_with_their_attempts() {
    let daemon = Daemon::start().await;
    let rule = ["--restart", "on-failure:0", "--restart-delay", "1h"];
    let args: Vec<&str> = rule.into_iter().chain(["-c", "exit 7"]).collect();
    let id = daemon.spawned(&args).await;
    let api = daemon.api().await;
    let restarting = heeler_tests::v1::TaskEventType::Restarting;
    api.watch_after(0).await.until_of(&id, restarting).await;
    let table = daemon.heeler(["ps"]).await.ok().stdout;
    assert!(table.contains("attempt 2"), "{table}");
    let card = daemon.heeler(["inspect", &id]).await.ok().stdout;
    for part in [
        "attempt 2 at ",
        "after exit code 7; no limit, after 1h at first",
    ] {
        assert!(card.contains(part), "{card}");
    }
    let events = daemon.heeler(["events", "--type", "restarting"]).await.ok();
    assert!(
        events.stdout.contains("attempt 1: exit code 7"),
        "{events:?}"
    );
    let refused = daemon
        .heeler(["run", "--restart", "on-failure", "--", "true"])
        .await;
    assert!(refused.stderr.contains("--restart"), "{refused:?}");
    assert_ne!(refused.code, Some(0));
    for bad in [&["--restart", "always"][..], &["--restart-delay", "1s"]] {
        let args = ["spawn"].iter().chain(bad).chain(&["--", "true"]);
        assert_eq!(daemon.heeler(args).await.code, Some(2));
    }
}
