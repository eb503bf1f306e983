//! Ready and input policies: what a task cannot be looked at by.

use heeler_tests::{
    SpawnRequestExt as _, argv, millis, secs,
    v1::{ready_policy::Probe, *},
};
use tonic::Code;

use super::{Call, Case, Edge, bad, bad_spans, refused, text};

fn with(probe: Probe) -> SpawnRequest {
    argv(["true"]).with_ready(probe)
}

fn spawn(field: &str, request: SpawnRequest) -> Case {
    bad(field, Call::Spawn(request))
}

fn url(url: impl Into<String>) -> SpawnRequest {
    with(Probe::HttpUrl(url.into()))
}

fn pattern(regex: &str) -> SpawnRequest {
    with(Probe::Pattern(regex.to_owned()))
}

/// S2, Y1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_probes_are_named() {
    let command = |args: &[&str]| {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        with(Probe::Command(ArgvCommand { args }))
    };
    let urls = [
        "",
        "localhost:3000",
        "/health",
        "http://",
        "http:///x",
        "http://localhost:99999/",
        "http://localhost:0/",
        "http://localhost:/",
        "http://localhost:x/",
        "http://user:secret@localhost/",
        "https://localhost/",
        "ftp://localhost/",
        "file:///etc/passwd",
        "http://local host/",
        "http://localhost/\r\nX-Header: 1",
        "http://localhost/\0",
    ];
    let mut cases: Vec<Case> = urls
        .iter()
        .map(|one| spawn("spec.ready.http_url", url(*one)))
        .collect();
    let long = format!("http://localhost/{}", text(4096));
    cases.extend([
        spawn("spec.ready.http_url", url(long)),
        spawn(
            "spec.ready.probe",
            argv(["true"]).with_ready_timeout(secs(1)),
        ),
        spawn("spec.ready.port", with(Probe::Port(65_536))),
        spawn("spec.ready.command.args", command(&[])),
        spawn("spec.ready.command.args[0]", command(&[""])),
        spawn("spec.ready.command.args[1]", command(&["true", "\0"])),
        spawn(
            "spec.ready.interval",
            pattern("up").with_ready_interval(secs(1)),
        ),
    ]);
    let long = text(4097);
    for bad in ["", "(up", r"(\w)\1", r"\w{1000}", &long] {
        cases.push(spawn("spec.ready.pattern", pattern(bad)));
    }
    for host in [
        "http://example.com/",
        "http://10.0.0.1:80/x",
        "http://[::]/",
    ] {
        let call = Call::Spawn(url(host));
        let code = Code::FailedPrecondition;
        cases.push(refused(code, "PROBE_HOST_NOT_ALLOWED", call));
    }
    Edge::new().await.refuses(cases).await;
}

/// S2, Y2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_times_and_actions_of_a_ready_policy_are_named() {
    let any = || with(Probe::Port(0));
    let mut cases = Vec::new();
    for span in bad_spans().into_iter().chain([secs(0)]) {
        cases.extend([
            spawn("spec.ready.interval", any().with_ready_interval(span)),
            spawn("spec.ready.timeout", any().with_ready_timeout(span)),
            spawn("spec.input.notify_after", any().with_input_after(span)),
        ]);
    }
    cases.extend([
        spawn("spec.ready.interval", any().with_ready_interval(millis(19))),
        spawn("spec.ready.on_timeout", any().with_ready_action(9)),
    ]);
    Edge::new().await.refuses(cases).await;
}
