//! The command and the other fields of Spawn.

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, argv, http2, request::cancel, shell, shell_by, v1::*,
};
use tonic::{Code, Status};

use super::{Call, Edge, bad, bad_spans, entry, refused, text};

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_commands_are_named() {
    let none = SpawnRequest::default().with_name("no command");
    let shell_by = |program| shell_by(program, "true");
    let many = vec!["x".to_owned(); 4097];
    let cases = [
        bad("spec", Call::Spawn(SpawnRequest::default())),
        bad("spec.command", Call::Spawn(none)),
        bad("spec.argv.args", Call::Spawn(argv::<String>([]))),
        bad("spec.argv.args[0]", Call::Spawn(argv([""]))),
        bad("spec.argv.args[0]", Call::Spawn(argv(["tr\0ue"]))),
        bad("spec.argv.args[1]", Call::Spawn(argv(["true", "a\0b"]))),
        bad(
            "spec.argv.args[2]",
            Call::Spawn(argv(["true".into(), "".into(), text(128 << 10)])),
        ),
        bad("spec.argv.args", Call::Spawn(argv(many))),
        bad("spec.shell.script", Call::Spawn(shell(""))),
        bad("spec.shell.script", Call::Spawn(shell("a\0b"))),
        bad(
            "spec.shell.script",
            Call::Spawn(shell(text((128 << 10) + 1))),
        ),
        bad("spec.shell.program", Call::Spawn(shell_by("bash"))),
        bad("spec.shell.program", Call::Spawn(shell_by("/bin/\0sh"))),
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
        spawn("spec.kind", ok().with_kind(99)),
        spawn("spec.kind", ok().with_kind(-1)),
        spawn("spec.kind", ok().with_kind(3)),
        spawn("spec.environment.defaults", ok().with_env_defaults(99)),
        spawn("spec.output.max_bytes", ok().with_max_output(1)),
        spawn(
            "spec.output.max_bytes",
            ok().with_max_output((256 << 10) - 1),
        ),
        spawn("spec.output.head_bytes", ok().with_output_head(64 << 20)),
        spawn("spec.output.head_bytes", ok().with_output_head(u64::MAX)),
        spawn(
            "spec.output.head_bytes",
            ok().with_max_output(256 << 10)
                .with_output_head((64 << 10) + 1),
        ),
        spawn("spec.output.on_limit", ok().with_on_output_limit(99)),
        spawn(
            "spec.environment.variable_names",
            ok().with_env_names(["A"]),
        ),
        spawn("request_id", ok().with_request_id(text(129))),
        spawn("spec.session_id", ok().with_session(text(257))),
        spawn("spec.name", ok().with_name(text((16 << 10) + 1))),
        spawn("spec.labels", ok().with_labels(labels)),
        spawn(
            r#"spec.labels["k"]"#,
            ok().with_labels(entry("k", &text((16 << 10) + 1))),
        ),
        spawn(
            "spec.working_directory",
            ok().with_working_directory("relative"),
        ),
        spawn("spec.working_directory", ok().with_working_directory("./x")),
        spawn(
            "spec.working_directory",
            ok().with_working_directory("/a\0b"),
        ),
        spawn(
            "spec.environment.remove[1]",
            ok().with_env_remove(["A", ""]),
        ),
        spawn("spec.environment.remove[0]", ok().with_env_remove(["A=B"])),
        spawn(
            r#"spec.environment.variables["A"]"#,
            ok().with_env(entry("A", "a\0b")),
        ),
        spawn(
            r#"spec.environment.variables["A"]"#,
            ok().with_env(entry("A", &text(128 << 10))),
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
            &format!("spec.environment.variables[{key:?}]"),
            ok().with_env(entry(key, "v")),
        ));
    }
    for span in bad_spans() {
        cases.push(spawn("spec.timeout", ok().with_timeout(span)));
        cases.push(spawn("spec.stop.grace", ok().with_grace(span)));
    }
    for signal in ["TERMINATE", "SIGNOPE", "999", "0", "-1", " "] {
        cases.push(spawn("spec.stop.signal", ok().with_stop_signal(signal)));
    }
    Edge::new().await.refuses(cases).await;
}

/// The request of a client that knows the options of a task as fields of the request.
#[derive(Clone, PartialEq, prost::Message)]
struct FlatSpawnRequest {
    #[prost(string, tag = "1")]
    request_id: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(message, optional, tag = "6")]
    shell: Option<ShellCommand>,
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_with_options_outside_of_spec_is_refused_and_told_where_they_are() {
    let edge = Edge::new().await;
    let request = FlatSpawnRequest {
        request_id: "once".into(),
        name: "flat".into(),
        shell: Some(ShellCommand {
            script: "touch started".into(),
            ..Default::default()
        }),
    };
    let answer = http2::call(&edge.daemon.socket(), "Spawn", &request, &[]).await;
    let status = Status::from_header_map(&answer).expect("a status");
    let refusal = Refusal::of(&status);
    assert_eq!(
        (refusal.code, &*refusal.reason),
        (Code::InvalidArgument, "INVALID_FIELD")
    );
    assert_eq!(refusal.fields, ["spec"]);
    assert!(refusal.message.contains("fields of spec"), "{refusal:?}");
    edge.refuses(vec![]).await;
}

/// S2: the refusal shows a prefix of the key.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_oversized_label_key_is_refused() {
    let edge = Edge::new().await;
    let request = argv(["true"]).with_labels(entry(&text(257), "v"));
    let result = edge.api.spawn(request).await;
    let refusal = Refusal::expect(result, Code::InvalidArgument, "INVALID_FIELD");
    assert!(
        refusal.fields[0].starts_with("spec.labels[\"xxx"),
        "{refusal:?}"
    );
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
