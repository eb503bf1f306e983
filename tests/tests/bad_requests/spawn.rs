//! The command and the other fields of Spawn.

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, argv, request::cancel, shell, shell_by, v1::*,
};
use tonic::Code;

use super::{Call, Edge, bad, bad_spans, entry, refused, text};

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_commands_are_named() {
    let none = SpawnRequest::default();
    let shell_by = |program| shell_by(program, "true");
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
async fn invalid_fields_of_spawn_are_named() {
    let ok = || argv(["true"]);
    let spawn = |field: &str, request| bad(field, Call::Spawn(request));
    let labels = (0..65).map(|n| (n.to_string(), ""));
    let mut cases = vec![
        spawn("kind", ok().with_kind(99)),
        spawn("kind", ok().with_kind(-1)),
        spawn("kind", ok().with_kind(TaskKind::Hosted)),
        spawn("env_defaults", ok().with_env_defaults(99)),
        spawn("request_id", ok().with_request_id(text(129))),
        spawn("session_id", ok().with_session(text(257))),
        spawn("name", ok().with_name(text((16 << 10) + 1))),
        spawn("labels", ok().with_labels(labels)),
        spawn(
            r#"labels["k"]"#,
            ok().with_labels(entry("k", &text((16 << 10) + 1))),
        ),
        spawn("working_directory", ok().with_working_directory("relative")),
        spawn("working_directory", ok().with_working_directory("./x")),
        spawn("working_directory", ok().with_working_directory("/a\0b")),
        spawn("env_remove[1]", ok().with_env_remove(["A", ""])),
        spawn("env_remove[0]", ok().with_env_remove(["A=B"])),
        spawn(r#"env["A"]"#, ok().with_env(entry("A", "a\0b"))),
        spawn(r#"env["A"]"#, ok().with_env(entry("A", &text(128 << 10)))),
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
            ok().with_env(entry(key, "v")),
        ));
    }
    for span in bad_spans() {
        cases.push(spawn("timeout", ok().with_timeout(span)));
        cases.push(spawn("stop_policy.grace", ok().with_grace(span)));
    }
    for signal in ["TERMINATE", "SIGNOPE", "999", "0", "-1", " "] {
        cases.push(spawn("stop_policy.signal", ok().with_stop_signal(signal)));
    }
    Edge::new().await.refuses(cases).await;
}

/// S2: the refusal shows a prefix of the key.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_oversized_label_key_is_refused() {
    let edge = Edge::new().await;
    let request = argv(["true"]).with_labels(entry(&text(257), "v"));
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
    let finished = edge.finished.clone();
    let with = |parent: &str| argv(["true"]).with_parent(parent);
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
        dead(&finished),
    ])
    .await;
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn values_at_their_size_limit_are_accepted() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let labels = (0..64).map(|n| (format!("{n:0256}"), text(100)));
    let request = argv(["true".to_owned(), text((128 << 10) - 1)])
        .with_request_id(text(128))
        .with_session(text(256))
        .with_name(text(16 << 10))
        .with_labels(labels)
        .with_env(entry("A", &text(100_000)));
    let task = api.start(request).await;
    assert_eq!(api.ended(&task.id).await.state(), TaskState::Completed);
    let fixture = daemon.run(&api, "forever").await;
    let request = CancelRequest {
        reason: text(4096),
        actor: text(256),
        wait: true,
        ..cancel(&fixture.id)
    };
    assert_eq!(
        api.cancel_one(request).await.outcome(),
        CancelOutcome::Requested
    );
}
