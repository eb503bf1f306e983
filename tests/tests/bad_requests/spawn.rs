//! Spawn.

use heeler_tests::{
    Daemon, Refusal, api, argv, shell,
    v1::{spawn_request::Command, *},
};
use tonic::Code;

use super::{Call, Edge, bad, bad_spans, entry, refused, text};

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bad_commands_are_named() {
    let none = SpawnRequest::default();
    let with = |command| SpawnRequest {
        command: Some(command),
        ..Default::default()
    };
    let shell_by = |program: &str| {
        with(Command::Shell(ShellCommand {
            script: "true".into(),
            program: program.into(),
        }))
    };
    let many = vec!["x".to_owned(); 4097];
    let cases = [
        bad("command", Call::Spawn(none)),
        bad("argv.args", Call::Spawn(argv::<String>([]))),
        bad("argv.args[0]", Call::Spawn(argv([""]))),
        bad("argv.args[0]", Call::Spawn(argv(["tr\0ue"]))),
        bad("argv.args[1]", Call::Spawn(argv(["true", "a\0b"]))),
        bad(
            "argv.args[2]",
            Call::Spawn(argv(["true".into(), "".into(), text(128 << 10)])),
        ),
        bad("argv.args", Call::Spawn(argv(many))),
        bad("shell.script", Call::Spawn(shell(""))),
        bad("shell.script", Call::Spawn(shell("a\0b"))),
        bad("shell.script", Call::Spawn(shell(text((128 << 10) + 1)))),
        bad("shell.program", Call::Spawn(shell_by("bash"))),
        bad("shell.program", Call::Spawn(shell_by("/bin/\0sh"))),
    ];
    Edge::new().await.refuses(cases.into()).await;
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bad_fields_of_a_spawn_are_named() {
    let ok = || argv(["true"]);
    let spawn = |field: &str, request| bad(field, Call::Spawn(request));
    let labels = (0..65).map(|n| (n.to_string(), String::new())).collect();
    let mut cases = vec![
        spawn("kind", SpawnRequest { kind: 99, ..ok() }),
        spawn("kind", SpawnRequest { kind: -1, ..ok() }),
        spawn(
            "kind",
            SpawnRequest {
                kind: TaskKind::Hosted.into(),
                ..ok()
            },
        ),
        spawn(
            "env_defaults",
            SpawnRequest {
                env_defaults: 99,
                ..ok()
            },
        ),
        spawn(
            "request_id",
            SpawnRequest {
                request_id: text(129),
                ..ok()
            },
        ),
        spawn(
            "session_id",
            SpawnRequest {
                session_id: text(257),
                ..ok()
            },
        ),
        spawn(
            "name",
            SpawnRequest {
                name: text((16 << 10) + 1),
                ..ok()
            },
        ),
        spawn("labels", SpawnRequest { labels, ..ok() }),
        spawn(
            r#"labels["k"]"#,
            SpawnRequest {
                labels: entry("k", &text((16 << 10) + 1)),
                ..ok()
            },
        ),
        spawn(
            "working_directory",
            SpawnRequest {
                working_directory: "relative".into(),
                ..ok()
            },
        ),
        spawn(
            "working_directory",
            SpawnRequest {
                working_directory: "./x".into(),
                ..ok()
            },
        ),
        spawn(
            "working_directory",
            SpawnRequest {
                working_directory: "/a\0b".into(),
                ..ok()
            },
        ),
        spawn(
            "env_remove[1]",
            SpawnRequest {
                env_remove: vec!["A".into(), String::new()],
                ..ok()
            },
        ),
        spawn(
            "env_remove[0]",
            SpawnRequest {
                env_remove: vec!["A=B".into()],
                ..ok()
            },
        ),
        spawn(
            r#"env["A"]"#,
            SpawnRequest {
                env: entry("A", "a\0b"),
                ..ok()
            },
        ),
        spawn(
            r#"env["A"]"#,
            SpawnRequest {
                env: entry("A", &text(128 << 10)),
                ..ok()
            },
        ),
    ];
    for key in [
        "",
        "A=B",
        "=",
        "A\0B",
        "HEELER_TASK_ID",
        "HEELER_ADDR",
        "HEELER_ANYTHING",
    ] {
        cases.push(spawn(
            &format!("env[{key:?}]"),
            SpawnRequest {
                env: entry(key, "v"),
                ..ok()
            },
        ));
    }
    for span in bad_spans() {
        let policy = StopPolicy {
            grace: Some(span),
            signal: String::new(),
        };
        cases.push(spawn(
            "timeout",
            SpawnRequest {
                timeout: Some(span),
                ..ok()
            },
        ));
        cases.push(spawn(
            "stop_policy.grace",
            SpawnRequest {
                stop_policy: Some(policy),
                ..ok()
            },
        ));
    }
    for signal in ["TERMINATE", "SIGNOPE", "999", "0", "-1", " "] {
        let policy = Some(StopPolicy {
            grace: None,
            signal: signal.into(),
        });
        cases.push(spawn(
            "stop_policy.signal",
            SpawnRequest {
                stop_policy: policy,
                ..ok()
            },
        ));
    }
    Edge::new().await.refuses(cases).await;
}

/// S2: a label's key that is too long is named by what can be shown of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_label_with_too_long_a_key_is_refused() {
    let edge = Edge::new().await;
    let request = SpawnRequest {
        labels: entry(&text(257), "v"),
        ..argv(["true"])
    };
    let result = edge.api.spawn(request).await;
    let refusal = Refusal::expect(result, Code::InvalidArgument, "INVALID_FIELD");
    assert!(refusal.fields[0].starts_with("labels[\"xxx"), "{refusal:?}");
    assert!(refusal.fields[0].len() < 300, "{refusal:?}");
    edge.refuses(vec![]).await;
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_parent_must_be_a_live_task() {
    let edge = Edge::new().await;
    let over = edge.over.clone();
    let with = |parent: &str| SpawnRequest {
        parent_id: parent.into(),
        ..argv(["true"])
    };
    let dead = |id: &str| {
        refused(
            Code::FailedPrecondition,
            "PARENT_NOT_LIVE",
            Call::Spawn(with(id)),
        )
    };
    edge.refuses(vec![
        dead("shell-aaaaaaaaaa"),
        dead("nonsense"),
        dead(&over),
    ])
    .await;
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_longest_that_is_allowed_is_allowed() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let labels = (0..64).map(|n| (format!("{n:0256}"), text(100))).collect();
    let request = SpawnRequest {
        request_id: text(128),
        session_id: text(256),
        name: text(16 << 10),
        labels,
        env: entry("A", &text(100_000)),
        ..argv(["true".to_owned(), text((128 << 10) - 1)])
    };
    let task = api.start(request).await;
    assert_eq!(api.ended(&task.id).await.state(), TaskState::Completed);
    let fixture = daemon.run(&api, "forever").await;
    let request = CancelRequest {
        reason: text(4096),
        actor: text(256),
        wait: true,
        ..api::cancel(&fixture.id)
    };
    assert_eq!(
        api.cancel_one(request).await.outcome(),
        CancelOutcome::Requested
    );
}
