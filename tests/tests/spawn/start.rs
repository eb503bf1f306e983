//! The start of a task: the answer, refusals, and what the child inherits.

use std::{collections::HashSet, fs};

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, TaskSpecExt as _, argv, binary,
    outcome::{exit_code, outcome},
    process::Stat,
    shell,
    v1::{outcome::Result as Ended, *},
    watch::ONE_RUN,
};
use tonic::Code;

/// S1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spawn_returns_before_the_command_ends_and_list_shows_it_running() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = SpawnRequest::default().with_name("build").with_session("s");
    let fixture = daemon.run_as(&api, request, "forever").await;

    let listed = api.list(ListRequest::default()).await.unwrap();
    assert_eq!(listed.tasks.len(), 1, "{listed:?}");
    let task = &listed.tasks[0];
    assert_eq!(
        (task.id.as_str(), task.state()),
        (fixture.id.as_str(), TaskState::Running)
    );
    assert_eq!((task.name(), task.session()), ("build", "s"));
    assert_eq!(
        task.leader.unwrap().pid,
        fixture.process("leader").await.pid
    );
    assert!(task.start_time.is_some() && task.create_time.is_some() && task.end_time.is_none());
    assert_eq!(task.working_directory(), daemon.home().to_str().unwrap());
    assert_eq!(task, &fixture.task, "the task in the answer to Spawn");
    assert_eq!(listed.revision, task.revision);
}

/// S1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_id_starts_with_the_kind_and_has_ten_characters() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for (kind, prefix) in [
        (TaskKind::Unspecified, "shell-"),
        (TaskKind::Agent, "agent-"),
    ] {
        let task = api.start(argv(["true"]).with_kind(kind)).await;
        let digits = task.id.strip_prefix(prefix).expect(prefix);
        let base32 = |c: char| c.is_ascii_lowercase() || ('2'..='7').contains(&c);
        assert!(
            digits.len() == 10 && digits.chars().all(base32),
            "{}",
            task.id
        );
        assert_eq!(task.uid.len(), 36, "{}", task.uid);
        assert_eq!(task.uid.as_bytes()[14], b'7', "a UUIDv7: {}", task.uid);
    }
}

/// S3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unusable_working_directory_is_refused_by_name_and_nothing_is_created() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let plain = daemon.file("plain");
    fs::write(&plain, "").unwrap();
    for path in [daemon.file("nowhere"), plain] {
        let request = argv(["true"]).with_working_directory(path.clone());
        let refused = api.spawn(request).await;
        let refusal = Refusal::expect(
            refused,
            Code::FailedPrecondition,
            "WORKING_DIRECTORY_UNUSABLE",
        );
        assert_eq!(refusal.value("path"), path);
        assert!(!refusal.value("os_error").is_empty());
        assert!(refusal.message.contains(&path), "{refusal:?}");
    }
    assert_eq!((api.all().await.len(), api.revision().await), (0, 0));
    assert!(daemon.processes().is_empty());
}

/// S4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_missing_or_non_executable_program_is_refused_with_the_os_reason() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let plain = daemon.file("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let missing = daemon.file("missing");
    let directory = daemon.file("home");
    let cases = [
        (missing.as_str(), "No such file"),
        ("no-such-program-anywhere", "No such file"),
        ("./missing", "No such file"),
        (plain.as_str(), "Permission denied"),
        (directory.as_str(), ""),
    ];
    for (program, reason) in cases {
        let refused = api.spawn(argv([program, "x"])).await;
        let refusal = Refusal::expect(refused, Code::FailedPrecondition, "PROGRAM_UNUSABLE");
        assert_eq!(refusal.value("program"), program);
        assert!(refusal.value("os_error").contains(reason), "{refusal:?}");
    }
    assert_eq!((api.all().await.len(), api.revision().await), (0, 0));
}

/// S4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_program_that_the_kernel_refuses_is_a_spawn_error_and_not_exit_code_127() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let broken = daemon.broken_program();
    let garbage = daemon.file("garbage");
    binary::make(garbage.as_ref(), [0x7f, b'E', b'L', b'F', 0, 0, 0, 0]);
    for (path, errno) in [(broken, nix::libc::ENOENT), (garbage, nix::libc::ENOEXEC)] {
        let refusal = Refusal::expect(
            api.spawn(argv([&path])).await,
            Code::FailedPrecondition,
            "SPAWN_FAILED",
        );
        let id = refusal.value("task_id");
        assert_eq!(refusal.value("stage"), "EXEC", "{refusal:?}");
        let task = api.task(id).await;
        assert_eq!(
            (task.state(), task.end_reason()),
            (TaskState::Failed, EndReason::SpawnFailed)
        );
        assert!(task.leader.is_none() && task.start_time.is_none());
        match outcome(&task) {
            Ended::SpawnError(error) => assert_eq!(
                (error.stage(), &*error.path, error.errno),
                (SpawnStage::Exec, &*path, errno),
                "{error:?}"
            ),
            other @ (Ended::ExitCode(_)
            | Ended::Signal(_)
            | Ended::Unknown(_)
            | Ended::Worker(_)) => {
                panic!("not a spawn error: {other:?}")
            }
        }
        let history = api.event_types(id).await;
        assert_eq!(history, [TaskEventType::Created, TaskEventType::Ended]);
    }
}

/// S5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_a_directory_a_task_starts_in_the_users_home() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("cwd")).await;
    assert_eq!(task.working_directory(), daemon.home().to_str().unwrap());
    api.ended(&task.id).await;
    assert_eq!(
        api.lines(&task.id).await,
        [format!("cwd {}", daemon.home().display())]
    );
}

/// S5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_directory_is_the_requests_else_the_configured_one() {
    let configured = tempfile::tempdir().unwrap();
    let path = configured.path().canonicalize().unwrap();
    let daemon = Daemon::builder()
        .arg("--working-directory")
        .arg(&path)
        .start()
        .await;
    let api = daemon.api().await;
    let plain = api.start(daemon.script("cwd")).await;
    let own = daemon.script("cwd").with_working_directory("/");
    let own = api.start(own).await;
    for (task, expected) in [(plain, path.to_str().unwrap()), (own, "/")] {
        assert_eq!(task.working_directory(), expected);
        api.ended(&task.id).await;
        assert_eq!(api.lines(&task.id).await, [format!("cwd {expected}")]);
    }
}

/// S7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn stdin_reads_end_of_file_at_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("stdin")).await;
    assert_eq!(api.ended(&task.id).await.state(), TaskState::Completed);
    assert_eq!(api.lines(&task.id).await, ["stdin 0"]);
}

/// S8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_child_has_three_descriptors_its_own_session_and_no_terminal() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("descriptors")).await;
    api.ended(&task.id).await;
    assert_eq!(api.lines(&task.id).await, ["descriptors 0 1 2"]);

    let task = api.start(argv(["cat", "/proc/self/stat"])).await;
    api.ended(&task.id).await;
    let stat = Stat::parse(&api.lines(&task.id).await[0]).unwrap();
    let pid = task.leader.unwrap().pid;
    assert_eq!((stat.session, stat.group, stat.terminal), (pid, pid, 0));
}

/// S8: shown by `cat`, since the fixture changes its own signal mask.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_child_has_default_signal_dispositions_and_an_empty_mask() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(argv(["cat", "/proc/self/status"])).await;
    api.ended(&task.id).await;
    let lines = api.lines(&task.id).await;
    for field in ["SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd"] {
        let line = lines
            .iter()
            .find(|line| line.starts_with(field))
            .expect(field);
        assert!(line.ends_with("\t0000000000000000"), "{line}");
    }
}

/// S10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn hostile_names_and_labels_are_stored_as_data() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let long = "x".repeat(10_000);
    let texts = [
        "../../etc/passwd",
        "a\nb\r\n",
        "\x1b[2J\x1b]0;owned\x07",
        "\u{202e}\0'\"$(id)`id`",
        &long,
    ];
    for text in texts {
        let request = argv(["true"]).with_name(text).with_labels([("key", text)]);
        let task = api.start(request).await;
        api.ended(&task.id).await;
        let filter = TaskFilter {
            labels: task.labels().clone(),
            ..Default::default()
        };
        let request = ListRequest {
            filter: Some(filter),
            include_finished: true,
            ..Default::default()
        };
        let found = api.list(request).await.unwrap().tasks;
        assert_eq!(found.len(), 1, "{text:?}");
        assert_eq!((found[0].name(), found[0].label("key")), (text, text));
    }
    let key = "../\n\x1b[31m";
    let task = api.start(argv(["true"]).with_labels([(key, "v")])).await;
    assert_eq!(api.ended(&task.id).await.label(key), "v");
    assert!(
        !daemon.log().contains('\x1b'),
        "an escape sequence in the log"
    );
}

/// S11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn at_the_task_limit_spawn_is_refused_with_the_numbers_and_no_task_is_evicted() {
    let daemon = Daemon::builder().max_tasks(2).start().await;
    let api = daemon.api().await;
    let first = daemon.run(&api, "forever").await;
    let second = daemon.run(&api, "forever").await;
    let (revision, processes) = (api.revision().await, daemon.processes().len());

    let refused = api.spawn(argv(["true"])).await;
    let refusal = Refusal::expect(refused, Code::ResourceExhausted, "TASK_LIMIT_REACHED");
    assert_eq!((refusal.value("running"), refusal.value("max")), ("2", "2"));
    assert_eq!(
        (api.revision().await, daemon.processes().len()),
        (revision, processes)
    );
    for fixture in [&first, &second] {
        assert_eq!(api.task(&fixture.id).await.state(), TaskState::Running);
    }
    let server = api.server().await;
    assert_eq!((server.live_tasks, server.max_live_tasks), (2, 2));

    api.kill(&first.id).await;
    let third = api.start(argv(["true"])).await;
    assert_eq!(api.ended(&third.id).await.state(), TaskState::Completed);
}

/// S11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn racing_spawns_never_exceed_the_task_limit() {
    let daemon = Daemon::builder().max_tasks(3).start().await;
    let api = daemon.api().await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (api, request) = (api.clone(), daemon.script("forever"));
        calls.spawn(async move { api.spawn(request).await });
    }
    let (mut started, mut refused) = (0, 0);
    while let Some(answer) = calls.join_next().await {
        match answer.unwrap() {
            Ok(_) => started += 1,
            Err(status) => {
                assert_eq!(Refusal::of(&status).reason, "TASK_LIMIT_REACHED");
                refused += 1;
            }
        }
    }
    assert_eq!((started, refused), (3, 9));
    assert_eq!(api.all().await.len(), 3, "refused requests leave no task");
}

/// S12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_id_is_reused_after_remove_or_restart() {
    let mut daemon = Daemon::start().await;
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let api = daemon.api().await;
        for _ in 0..20 {
            let task = api.start(argv(["true"])).await;
            assert!(seen.insert(task.id.clone()), "{} twice", task.id);
            assert!(seen.insert(task.uid.clone()), "{} twice", task.uid);
            api.ended(&task.id).await;
        }
        let removed = api.remove_finished(TaskFilter::default()).await;
        assert_eq!(removed.len(), 20);
        daemon.kill9();
        daemon.restart().await;
    }
}

/// S13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn started_precedes_ended_for_tasks_that_live_a_millisecond() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let api = api.clone();
        calls.spawn(async move { api.start(argv(["true"])).await.id });
    }
    for id in calls.join_all().await {
        api.ended(&id).await;
        assert_eq!(api.event_types(&id).await, ONE_RUN);
    }
}

/// S1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_script_runs_in_a_shell_whose_exit_code_is_the_tasks() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("echo \"$((40 + 2))\" && exit 3")).await;
    let task = api.ended(&task.id).await;
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Failed, EndReason::Exited)
    );
    assert_eq!(exit_code(&task), 3);
    assert_eq!(api.lines(&task.id).await, ["42"]);
}
