//! The `heeler` command: what a person types, and what a script reads.

use heeler_tests::{
    Daemon, SpawnRequestExt as _, TaskSpecExt as _, cli::Said, eventually, eventually_some,
    grpcurl, v1::*,
};
use serde_json::{Value, json};

/// S1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spawn_prints_the_id_alone() {
    let daemon = Daemon::start().await;
    let said = daemon
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
    assert_eq!(said.stderr, "");
    let id = said.stdout.strip_suffix('\n').unwrap();
    let task = daemon.api().await.task(id).await;
    assert_eq!(
        (task.name(), task.session(), task.label("k")),
        ("n", "s", "v")
    );
    assert_eq!(task.state(), TaskState::Running);
}

/// S5, S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spawn_takes_a_directory_variables_a_script_and_times() {
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
async fn wait_gives_the_tasks_exit_code() {
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
        let said = daemon.heeler(["wait", &id]).await;
        assert_eq!(said.code, Some(expected), "{script}: {said:?}");
    }
}

/// L4, L5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wait_times_out_with_124_and_ends_nothing() {
    let daemon = Daemon::start().await;
    let id = daemon.spawned(&["--", "sleep", "60"]).await;
    let said = daemon.heeler(["wait", &id, "--timeout", "100ms"]).await;
    assert_eq!(said.code, Some(124), "{said:?}");
    assert_eq!(
        daemon.api().await.task(&id).await.state(),
        TaskState::Running
    );
    let other = daemon.spawned(&["--", "true"]).await;
    let said = daemon.heeler(["wait", "--any", &id, &other]).await;
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// O1, O4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn logs_prints_the_output_as_it_is() {
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
async fn logs_follows_until_the_end() {
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
        heeler_tests::within("its exit", follower.wait())
            .await
            .unwrap()
            .success()
    );
}

/// L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ps_shows_live_tasks_and_all_on_request() {
    let daemon = Daemon::start().await;
    let live = daemon
        .spawned(&["--session", "s", "--", "sleep", "60"])
        .await;
    let other = daemon
        .spawned(&["--label", "k=v", "--", "sleep", "60"])
        .await;
    let over = daemon.spawned(&["--", "true"]).await;
    daemon.api().await.ended(&over).await;
    let shows = async |args: &[&str], ids: [bool; 3]| {
        let said = daemon.heeler(["ps"].iter().chain(args)).await.ok();
        let found = [&live, &other, &over].map(|id| said.stdout.contains(id.as_str()));
        assert_eq!(found, ids, "{args:?}: {said:?}");
    };
    shows(&[], [true, true, false]).await;
    shows(&["-a"], [true, true, true]).await;
    shows(&["--session", "s"], [true, false, false]).await;
    shows(&["--label", "k=v"], [false, true, false]).await;
}

/// S10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn hostile_names_reach_no_terminal() {
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
        let said = daemon.heeler(args).await.ok();
        let hostile = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
        assert!(!said.stdout.contains(hostile), "{args:?}: {said:?}");
        assert!(
            !said.stdout.lines().any(|line| line.starts_with("fake")),
            "{args:?}: {said:?}"
        );
    }
    assert_eq!(
        daemon.heeler(["inspect", &id, "--json"]).await.ok().json()["task"]["name"],
        name
    );
}

/// C1, C16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancel_returns_when_the_tree_is_gone() {
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
async fn cancel_of_a_session_or_without_waiting() {
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
async fn rm_forgets_finished_tasks_only() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let live = daemon.spawned(&["--", "sleep", "60"]).await;
    let over = daemon.spawned(&["--", "true"]).await;
    api.ended(&over).await;
    let said = daemon.heeler(["rm", &live]).await;
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains(&live), "{said:?}");
    daemon.heeler(["rm", &over]).await.ok();
    assert_eq!(daemon.heeler(["inspect", &over]).await.code, Some(3));
    let third = daemon.spawned(&["--", "true"]).await;
    api.ended(&third).await;
    daemon.heeler(["rm", "--finished"]).await.ok();
    let left: Vec<String> = api.all().await.into_iter().map(|task| task.id).collect();
    assert_eq!(left, [live]);
}

/// C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn exit_codes_tell_usage_not_found_and_no_daemon_apart() {
    let daemon = Daemon::start().await;
    for args in [
        &["no-such-command"][..],
        &["spawn"],
        &["wait"],
        &["spawn", "--timeout", "soon", "--", "true"],
    ] {
        let said = daemon.heeler(args).await;
        assert_eq!(
            (said.code, &*said.stdout),
            (Some(2), ""),
            "{args:?}: {said:?}"
        );
    }
    for command in ["inspect", "cancel", "wait", "logs", "rm"] {
        let said = daemon.heeler([command, "shell-aaaaaaaaaa"]).await;
        assert_eq!(
            (said.code, &*said.stdout),
            (Some(3), ""),
            "{command}: {said:?}"
        );
        assert!(
            said.stderr.contains("shell-aaaaaaaaaa"),
            "{command}: {said:?}"
        );
    }
    let nowhere = format!("unix:{}", daemon.file("nowhere.sock"));
    for args in [["ps", "--addr"], ["events", "--addr"]] {
        let said = daemon.heeler(args.iter().copied().chain([&*nowhere])).await;
        assert_eq!(
            (said.code, &*said.stdout),
            (Some(4), ""),
            "{args:?}: {said:?}"
        );
        assert!(said.stderr.contains(&nowhere), "{said:?}");
    }
    let said = daemon.heeler(["spawn", "--", "/no/such/program"]).await;
    assert_eq!((said.code, &*said.stdout), (Some(1), ""), "{said:?}");
    let help = daemon.heeler(["--help"]).await.ok();
    assert!(
        help.stdout.contains("124"),
        "exit codes are documented: {help:?}"
    );
}

/// E2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_prints_the_past_one_object_a_line() {
    let daemon = Daemon::start().await;
    let id = daemon.spawned(&["--", "true"]).await;
    daemon.api().await.ended(&id).await;
    let said = daemon
        .heeler(["events", "--after", "0", "--json"])
        .await
        .ok();
    let lines: Vec<Value> = said
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
    assert_eq!(types, expected, "{said:?}");
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

/// The mapping that the product page promises: what `--json` prints is what grpcurl prints.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn json_is_what_grpcurl_prints() {
    let Some(program) = grpcurl::program() else {
        return;
    };
    let daemon = Daemon::start().await;
    let id = daemon
        .spawned(&[
            "--timeout",
            "1500ms",
            "--label",
            "k=v",
            "-c",
            "printf '\\377'; exit 3",
        ])
        .await;
    daemon.api().await.ended(&id).await;
    let call = async |method: &str, data: Value| {
        let method = format!("heeler.v1.BackgroundTasks/{method}");
        daemon
            .grpcurl(&program, Some(&data.to_string()), &[&method])
            .await
            .json()
    };
    let ours = daemon.heeler(["inspect", &id, "--json"]).await.ok().json();
    assert_eq!(ours, call("Inspect", json!({"taskId": id})).await);
    let mut ours = daemon.heeler(["ps", "-a", "--json"]).await.ok().json();
    let mut theirs = call("List", json!({"includeFinished": true})).await;
    for page in [&mut ours, &mut theirs] {
        page.as_object_mut().unwrap().remove("nextPageToken");
    }
    assert_eq!(ours, theirs);
    let ours = daemon.heeler(["wait", &id, "--json"]).await;
    assert_eq!(ours.code, Some(3), "{ours:?}");
    assert_eq!(ours.json(), call("Wait", json!({"taskIds": [id]})).await);
}

/// The product page: a script may stop reading.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reader_that_goes_away_is_no_failure_of_ours() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for _ in 0..40 {
        let request = heeler_tests::argv(["true"]).with_name("n".repeat(8000));
        api.start(request).await;
    }
    let heeler = daemon.command();
    let variables = heeler
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut shell = tokio::process::Command::new("bash");
    shell
        .arg("-c")
        .arg("\"$0\" ps -a --json | head -c 10; exit ${PIPESTATUS[0]}");
    shell
        .arg(heeler.get_program())
        .env_clear()
        .envs(variables)
        .kill_on_drop(true);
    let said = Said::of(shell).await;
    assert_eq!(said.stderr, "", "{said:?}");
    assert!([Some(0), Some(141)].contains(&said.code), "{said:?}");
}

/// The product page: a client command starts a daemon where there is none, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_daemon_is_started_where_there_is_none_and_that_is_said() {
    let mut daemon = Daemon::builder().own_program().prepare();
    let said = daemon.heeler(["run", "--", "echo", "hi"]).await.ok();
    assert_eq!(said.stdout, "hi\n");
    assert!(said.stderr.contains("heeler"), "it is said: {said:?}");
    let said = daemon.heeler(["spawn", "--", "true"]).await.ok();
    let id = said.stdout.trim_end();
    assert!(id.starts_with("shell-"), "{said:?}");
    let said = daemon.heeler(["wait", id]).await.ok();
    assert_eq!(said.stderr, "", "the second command finds it");
    daemon.meet().await;
    // The shim may not have put its task away yet.
    let server = eventually_some("one daemon", || {
        let left = daemon.processes();
        (left.len() == 1).then_some(left)
    })
    .await;
    server[0].signal(nix::sys::signal::Signal::SIGTERM);
    eventually("the daemon ends", || server[0].is_gone()).await;
    assert!(!daemon.socket().exists());
}

/// The product page
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn completions_are_printed() {
    let daemon = Daemon::start().await;
    for shell in ["bash", "zsh", "fish"] {
        let said = daemon.heeler(["completions", shell]).await.ok();
        assert!(said.stdout.contains("spawn"), "{shell}");
    }
}
