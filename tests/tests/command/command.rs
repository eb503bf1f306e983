//! One test per subcommand: output and exit code.

use heeler_tests::{Daemon, SpawnRequestExt as _, TaskSpecExt as _, v1::*};
use serde_json::Value;

/// S1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spawn_prints_the_id_alone() {
    let daemon = Daemon::start().await;
    let result = daemon
        .heeler([
            "spawn",
            "--name",
            "n",
            "--session",
            "s",
            "--label",
            "k=v",
            "--",
            "sleep",
            "60",
        ])
        .await
        .ok();
    assert_eq!(result.stderr, "");
    let id = result.stdout.strip_suffix('\n').unwrap();
    let task = daemon.api().await.task(id).await;
    assert_eq!(
        (task.name(), task.session(), task.label("k")),
        ("n", "s", "v")
    );
    assert_eq!(task.state(), TaskState::Running);
}

/// S5, S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spawn_accepts_a_directory_variables_a_script_and_durations() {
    let daemon = Daemon::start().await;
    let script = "pwd; echo \"$A\"; echo \"${PAGER-none}\"";
    let id = daemon
        .spawned(&[
            "--cwd",
            "/",
            "--env",
            "A=b=c",
            "--timeout",
            "2m",
            "--grace",
            "500ms",
            "-c",
            script,
        ])
        .await;
    let api = daemon.api().await;
    let task = api.ended(&id).await;
    assert_eq!(api.lines(&id).await, ["/", "b=c", "cat"]);
    assert_eq!(task.timeout(), Some(heeler_tests::secs(120)));
    assert_eq!(task.grace(), Some(heeler_tests::millis(500)));
}

/// L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wait_exits_with_the_tasks_exit_code() {
    let daemon = Daemon::start().await;
    let cases = [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ];
    for (script, expected) in cases {
        let id = daemon.spawned(&["-c", script]).await;
        let result = daemon.heeler(["wait", &id]).await;
        assert_eq!(result.code, Some(expected), "{script}: {result:?}");
    }
}

/// L4, L5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wait_exits_with_124_at_its_timeout_and_ends_no_task() {
    let daemon = Daemon::start().await;
    let id = daemon.spawned(&["--", "sleep", "60"]).await;
    let result = daemon.heeler(["wait", &id, "--timeout", "100ms"]).await;
    assert_eq!(result.code, Some(124), "{result:?}");
    assert_eq!(
        daemon.api().await.task(&id).await.state(),
        TaskState::Running
    );
    let other = daemon.spawned(&["--", "true"]).await;
    let result = daemon.heeler(["wait", "--any", &id, &other]).await;
    assert_eq!(result.code, Some(0), "{result:?}");
}

/// O1, O4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn logs_prints_the_output_byte_for_byte() {
    let daemon = Daemon::start().await;
    let id = daemon.spawned(&["-c", "printf 'a\\nb\\n\\377c'"]).await;
    daemon.api().await.ended(&id).await;
    let output = daemon.cli(["logs", &id]).output().await.unwrap();
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(0), &b"a\nb\n\xffc"[..])
    );
    let id = daemon.spawned(&["-c", "seq 1 100"]).await;
    daemon.api().await.ended(&id).await;
    assert_eq!(
        daemon
            .heeler(["logs", "--tail", "2", &id])
            .await
            .ok()
            .stdout,
        "99\n100\n"
    );
}

/// O3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn logs_follows_to_the_end_of_the_task() {
    let daemon = Daemon::start().await;
    let gate = daemon.gate("gate");
    let api = daemon.api().await;
    let fixture = daemon
        .run(
            &api,
            &format!("print one gate {} print two", daemon.file("gate")),
        )
        .await;
    let mut command = daemon.cli(["logs", "-f", &fixture.id]);
    let mut follower = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = follower.stdout.take().unwrap();
    let mut first = [0; 4];
    let read = tokio::io::AsyncReadExt::read_exact(&mut out, &mut first);
    heeler_tests::within("the first line", read).await.unwrap();
    gate.open();
    let mut rest = String::new();
    let read = tokio::io::AsyncReadExt::read_to_string(&mut out, &mut rest);
    heeler_tests::within("the end", read).await.unwrap();
    assert_eq!((&first, rest.as_str()), (b"one\n", "two\n"));
    assert!(
        heeler_tests::within("the exit", follower.wait())
            .await
            .unwrap()
            .success()
    );
}

/// L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ps_shows_live_tasks_or_all() {
    let daemon = Daemon::start().await;
    let live = daemon
        .spawned(&["--session", "s", "--", "sleep", "60"])
        .await;
    let other = daemon
        .spawned(&["--label", "k=v", "--", "sleep", "60"])
        .await;
    let finished = daemon.spawned(&["--", "true"]).await;
    daemon.api().await.ended(&finished).await;
    let shows = async |args: &[&str], ids: [bool; 3]| {
        let result = daemon.heeler(["ps"].iter().chain(args)).await.ok();
        let found = [&live, &other, &finished].map(|id| result.stdout.contains(id.as_str()));
        assert_eq!(found, ids, "{args:?}: {result:?}");
    };
    shows(&[], [true, true, false]).await;
    shows(&["-a"], [true, true, true]).await;
    shows(&["--session", "s"], [true, false, false]).await;
    shows(&["--label", "k=v"], [false, true, false]).await;
}

/// S10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn escape_sequences_in_names_do_not_reach_the_terminal() {
    let daemon = Daemon::start().await;
    let name = "\x1b]0;owned\x07\x1b[2J\r\n\u{9b}31m\u{202e}fake line";
    let request = daemon
        .script("forever")
        .with_name(name)
        .with_session(name)
        .with_labels([(name, name)]);
    let id = daemon.api().await.start(request).await.id;
    for args in [
        &["ps"][..],
        &["ps", "-a"],
        &["inspect", &id],
        &["events", "--after", "0"],
    ] {
        let result = daemon.heeler(args).await.ok();
        let hostile = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
        assert!(!result.stdout.contains(hostile), "{args:?}: {result:?}");
        assert!(
            !result.stdout.lines().any(|line| line.starts_with("fake")),
            "{args:?}: {result:?}"
        );
    }
    assert_eq!(
        daemon.heeler(["inspect", &id, "--json"]).await.ok().json()["task"]["spec"]["name"],
        name
    );
}

/// C1, C16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancel_returns_after_the_tree_is_gone() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for args in [
        &[][..],
        &["--force"],
        &["--grace", "100ms", "--reason", "enough"],
    ] {
        let mut fixture = daemon
            .run(
                &api,
                "fork [ setsid ignore TERM pid child forever ] pid ready forever",
            )
            .await;
        fixture.processes(&["ready", "child"]).await;
        if args.is_empty() {
            daemon
                .heeler(["cancel", "--grace", "200ms", &fixture.id])
                .await
                .ok();
        } else {
            daemon
                .heeler(["cancel", &fixture.id].iter().chain(args))
                .await
                .ok();
        }
        fixture.assert_gone();
        let task = api.task(&fixture.id).await;
        assert_eq!(task.state(), TaskState::Cancelled);
        if args.contains(&"--reason") {
            assert_eq!(task.stop.unwrap().reason, "enough");
        }
    }
}

/// C10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancel_accepts_a_session_and_no_wait() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let first = daemon
        .spawned(&["--session", "s", "--", "sleep", "60"])
        .await;
    let second = daemon
        .spawned(&["--session", "s", "--", "sleep", "60"])
        .await;
    let other = daemon.spawned(&["--", "sleep", "60"]).await;
    daemon.heeler(["cancel", "--session", "s"]).await.ok();
    for id in [&first, &second] {
        assert_eq!(api.task(id).await.state(), TaskState::Cancelled);
    }
    assert_eq!(api.task(&other).await.state(), TaskState::Running);
    daemon.heeler(["cancel", "--no-wait", &other]).await.ok();
    assert_eq!(api.ended(&other).await.state(), TaskState::Cancelled);
}

/// L6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn rm_removes_finished_tasks_only() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let live = daemon.spawned(&["--", "sleep", "60"]).await;
    let finished = daemon.spawned(&["--", "true"]).await;
    api.ended(&finished).await;
    let result = daemon.heeler(["rm", &live]).await;
    assert_eq!(result.code, Some(1), "{result:?}");
    assert!(result.stderr.contains(&live), "{result:?}");
    daemon.heeler(["rm", &finished]).await.ok();
    assert_eq!(daemon.heeler(["inspect", &finished]).await.code, Some(3));
    let third = daemon.spawned(&["--", "true"]).await;
    api.ended(&third).await;
    daemon.heeler(["rm", "--finished"]).await.ok();
    assert_eq!(api.ids().await, [live]);
}

/// C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn exit_codes_distinguish_usage_not_found_and_no_daemon() {
    let daemon = Daemon::start().await;
    for args in [
        &["no-such-command"][..],
        &["spawn"],
        &["wait"],
        &["spawn", "--timeout", "soon", "--", "true"],
    ] {
        let result = daemon.heeler(args).await;
        assert_eq!(
            (result.code, &*result.stdout),
            (Some(2), ""),
            "{args:?}: {result:?}"
        );
    }
    for command in ["inspect", "cancel", "wait", "logs", "rm"] {
        let result = daemon.heeler([command, "shell-aaaaaaaaaa"]).await;
        assert_eq!(
            (result.code, &*result.stdout),
            (Some(3), ""),
            "{command}: {result:?}"
        );
        assert!(
            result.stderr.contains("shell-aaaaaaaaaa"),
            "{command}: {result:?}"
        );
    }
    let nowhere = format!("unix:{}", daemon.file("nowhere.sock"));
    for args in [["ps", "--addr"], ["events", "--addr"]] {
        let result = daemon.heeler(args.iter().copied().chain([&*nowhere])).await;
        assert_eq!(
            (result.code, &*result.stdout),
            (Some(4), ""),
            "{args:?}: {result:?}"
        );
        assert!(result.stderr.contains(&nowhere), "{result:?}");
    }
    let result = daemon.heeler(["spawn", "--", "/no/such/program"]).await;
    assert_eq!((result.code, &*result.stdout), (Some(1), ""), "{result:?}");
    let help = daemon.heeler(["--help"]).await.ok();
    assert!(
        help.stdout.contains("124"),
        "exit codes are not documented: {help:?}"
    );
}

/// E2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_prints_one_json_object_per_line() {
    let daemon = Daemon::start().await;
    let id = daemon.spawned(&["--", "true"]).await;
    daemon.api().await.ended(&id).await;
    let result = daemon
        .heeler(["events", "--after", "0", "--json"])
        .await
        .ok();
    let lines: Vec<Value> = result
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["event"]["type"].as_str())
        .collect();
    let expected = [
        "TASK_EVENT_TYPE_CREATED",
        "TASK_EVENT_TYPE_STARTED",
        "TASK_EVENT_TYPE_ENDED",
    ];
    assert_eq!(types, expected, "{result:?}");
    let after = daemon
        .heeler(["events", "--after", "2", "--json"])
        .await
        .ok();
    assert_eq!(
        after
            .stdout
            .lines()
            .filter(|line| line.contains("\"event\""))
            .count(),
        1
    );
}
