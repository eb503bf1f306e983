//! The metrics: their form, their agreement with the journal, and the page and the dashboard that name them.

use std::{collections::BTreeMap, fs};

use heeler_tests::{
    Api, Daemon, Fixture, SpawnRequestExt, Worker, argv, binary, eventually,
    http1::Http,
    millis,
    openmetrics::{Exposition, Sample},
    queued, shell,
    task_file::shim_of,
    v1::*,
    watch::types,
    within,
    worker::{hosted, result},
};
use http::{Method, StatusCode};
use nix::sys::signal::Signal::SIGKILL;
use regex::Regex;

const FORM: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

async fn metrics(http: &Http) -> Exposition {
    let answer = http.get("/metrics", &[]).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.headers["content-type"], FORM);
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    Exposition::parse(&text).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

/// Runs tasks to ends of many kinds.
async fn run_to_many_ends(daemon: &Daemon, api: &Api) {
    let mut ids = Vec::new();
    for request in [
        shell("echo hello"),
        shell("exit 3").with_kind(TaskKind::Agent),
        shell("kill -SEGV $$"),
        shell("sleep 1000").with_timeout(millis(50)),
        shell("sleep 1000").with_idle_timeout(millis(50)),
        shell("yes")
            .with_max_output(256 << 10)
            .with_on_output_limit(OutputLimitAction::Kill),
    ] {
        ids.push(api.start(request).await.id);
    }
    let broken = api.spawn(argv([daemon.broken_program()])).await;
    assert!(broken.is_err());
    for kill in [false, true] {
        let id = api.start(shell("sleep 1000")).await.id;
        match kill {
            true => api.kill(&id).await,
            false => api.stop(&id).await,
        };
    }
    let shimless: Fixture = daemon.run(api, "print here forever").await;
    shim_of(&shimless.process("leader").await).signal(SIGKILL);
    ids.push(shimless.id.clone());
    for status in [WorkerStatus::Ok, WorkerStatus::Failed] {
        let mut worker = Worker::register(api, hosted()).await;
        worker.finish(result(status, "done")).await;
    }
    for id in ids {
        api.ended(&id).await;
    }
}

fn short(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).expect("the prefix").to_owned()
}

/// The ends among some events, by kind, state and reason.
fn ends(events: &[TaskEvent]) -> BTreeMap<[String; 3], f64> {
    let mut ends = BTreeMap::new();
    let ended = |event: &&TaskEvent| event.r#type() == TaskEventType::Ended;
    for task in events
        .iter()
        .filter(ended)
        .filter_map(|one| one.task.as_ref())
    {
        let kind = task.spec.as_ref().expect("a spec").kind();
        let labels = [
            short(kind.as_str_name(), "TASK_KIND_"),
            short(task.state().as_str_name(), "TASK_STATE_"),
            short(task.end_reason().as_str_name(), "END_REASON_"),
        ];
        *ends.entry(labels).or_default() += 1.0;
    }
    ends
}

/// The same, as it is exposed; series at zero left out.
fn counted_ends(metrics: &Exposition) -> BTreeMap<[String; 3], f64> {
    let samples = metrics.families["heeler_tasks_ended"].samples.iter();
    let labels = |one: &Sample| ["kind", "state", "reason"].map(|name| one.labels[name].clone());
    let samples = samples.filter(|one| one.value > 0.0);
    samples.map(|one| (labels(one), one.value)).collect()
}

/// Asserts that the metrics agree with the journal, whose events these are since the server started.
async fn assert_agreement(metrics: &Exposition, events: &[TaskEvent], api: &Api) {
    assert_eq!(counted_ends(metrics), ends(events));
    let mut by_type: BTreeMap<String, f64> = BTreeMap::new();
    for kind in types(events) {
        let name = short(kind.as_str_name(), "TASK_EVENT_TYPE_");
        *by_type.entry(name).or_default() += 1.0;
    }
    let counted = metrics.families["heeler_events"].samples.iter();
    let counted: BTreeMap<_, _> = counted
        .filter(|one| one.value > 0.0)
        .map(|one| (one.labels["type"].clone(), one.value))
        .collect();
    assert_eq!(counted, by_type);
    let tasks = api.all().await;
    let is_live = |task: &&BackgroundTask| task.end_time.is_none();
    let live = tasks.iter().filter(is_live).count();
    assert_eq!(metrics.sum("heeler_tasks", &[]), live as f64);
    assert_eq!(
        metrics.sum("heeler_tasks_kept", &[]),
        (tasks.len() - live) as f64
    );
    assert_eq!(
        metrics.sum("heeler_revision", &[]),
        api.revision().await as f64
    );
    let ended = |event: &&TaskEvent| event.r#type() == TaskEventType::Ended;
    let ended = events
        .iter()
        .filter(ended)
        .filter_map(|one| one.task.as_ref());
    let output: u64 = ended.map(|task| task.output_bytes).sum();
    assert_eq!(metrics.sum("heeler_output_bytes_total", &[]), output as f64);
}

/// H5: an alert on an increase would miss the first one of a series that begins with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn rare_events_are_exposed_before_they_happen() {
    let daemon = Daemon::builder().http().start().await;
    let metrics = metrics(&daemon.http().await).await;
    for kind in ["KILL_OVERDUE", "STALE", "NEEDS_INPUT"] {
        let series = &metrics.families["heeler_events"].samples;
        let series = series.iter().find(|one| one.labels["type"] == kind);
        assert_eq!(series.map(|one| one.value), Some(0.0), "{kind}");
    }
    for kind in ["SHELL", "AGENT", "HOSTED"] {
        let series = &metrics.families["heeler_tasks_ended"].samples;
        let lost = |one: &&Sample| one.labels["kind"] == kind && one.labels["state"] == "LOST";
        let series = series.iter().find(lost);
        assert_eq!(series.map(|one| one.value), Some(0.0), "{kind}");
    }
}

/// H5: also after the server was killed, when counters begin at zero and everything else is what it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_metrics_agree_with_the_journal_also_after_a_crash() {
    let mut daemon = Daemon::builder().http().start().await;
    let api = daemon.api().await;
    run_to_many_ends(&daemon, &api).await;
    let running = api.start(shell("sleep 1000")).await.id;
    let running_fixture = daemon.run(&api, "print here forever").await;
    let seen = metrics(&daemon.http().await).await;
    let events = api.history().await;
    assert!(ends(&events).len() >= 10, "{:?}", ends(&events));
    assert_agreement(&seen, &events, &api).await;
    let running_tasks = [("state", "RUNNING")];
    assert_eq!(seen.sum("heeler_tasks", &running_tasks), 2.0);
    // The eight shells and agents that started by themselves, both that were stopped, two fixtures and one more.
    assert!(seen.sum("heeler_spawn_duration_seconds_count", &[]) >= 11.0);
    let stops = seen.sum("heeler_stop_duration_seconds_count", &[]);
    assert!(
        stops >= 4.0,
        "cancelled, killed, and both timeouts: {stops}"
    );
    let killed_at = api.revision().await;
    daemon.kill9();
    let before = daemon.log().matches("listening on http://").count();
    daemon.restart().await;
    eventually("the new address", || {
        daemon.log().matches("listening on http://").count() > before
    })
    .await;
    let api = daemon.api().await;
    let shim = shim_of(&running_fixture.process("leader").await);
    shim.signal(SIGKILL);
    api.ended(&running_fixture.id).await;
    api.stop(&running).await;
    let seen = within("a count of finished tasks", async {
        loop {
            let seen = metrics(&daemon.http().await).await;
            if seen.sum("heeler_tasks_kept", &[]) == api.all().await.len() as f64 {
                return seen;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut events = api.history().await;
    events.retain(|event| event.revision > killed_at);
    assert_agreement(&seen, &events, &api).await;
    assert!(seen.sum("heeler_recovery_duration_seconds", &[]) > 0.0);
}

/// H5: calls are counted by their status, refused and cancelled ones included, and streams are open as long as
/// they last.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn calls_are_counted_by_method_and_code() {
    let daemon = Daemon::builder().http().start().await;
    let (api, http) = (daemon.api().await, daemon.http().await);
    // The harness has made calls, too.
    let begun = metrics(&http).await;
    let watch = api.watch_after(0).await;
    http.call("List", "{}").await;
    assert!(api.inspect("shell-aaaaaaaaaa").await.is_err());
    let mut request = http.request("List", "{}");
    request.headers_mut().remove("authorization");
    http.send(request).await;
    http.send(http.request("Unheard", "{}")).await;
    let seen = metrics(&http).await;
    let calls = |method, code| {
        let labels = [("method", method), ("code", code)];
        seen.sum("heeler_calls_total", &labels) - begun.sum("heeler_calls_total", &labels)
    };
    assert_eq!(calls("List", "OK"), 1.0);
    assert_eq!(calls("Inspect", "NOT_FOUND"), 1.0);
    assert_eq!(calls("List", "UNAUTHENTICATED"), 1.0);
    let calls = seen.sum("heeler_calls_total", &[]) - begun.sum("heeler_calls_total", &[]);
    assert_eq!(
        calls, 3.0,
        "a method that does not exist has no calls over HTTP"
    );
    let open = |seen: &Exposition| seen.sum("heeler_calls_open", &[("method", "WatchEvents")]);
    assert_eq!(open(&seen), 1.0);
    drop(watch);
    let seen = within("the end of the stream", async {
        loop {
            let seen = metrics(&http).await;
            if open(&seen) == 0.0 {
                return seen;
            }
        }
    })
    .await;
    let cancelled = [("method", "WatchEvents"), ("code", "CANCELLED")];
    assert_eq!(seen.sum("heeler_calls_total", &cancelled), 1.0);
}

/// H2, H5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_metrics_need_the_token_the_host_and_the_rights() {
    let daemon = Daemon::builder().http().start().await;
    let (api, http) = (daemon.api().await, daemon.http().await);
    let ask = |token: Option<String>, host: &str, method: Method| {
        let mut request = http.request("", "");
        *request.method_mut() = method;
        *request.uri_mut() = "/metrics".parse().unwrap();
        request.headers_mut().remove("authorization");
        if let Some(token) = token {
            let token = format!("Bearer {token}").parse().unwrap();
            request.headers_mut().insert("authorization", token);
        }
        request.headers_mut().insert("host", host.parse().unwrap());
        http.send(request)
    };
    let own = Some(http.token.clone());
    let head = ask(own.clone(), &http.host, Method::HEAD).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    let post = ask(own.clone(), &http.host, Method::POST).await;
    assert_eq!(post.status, StatusCode::METHOD_NOT_ALLOWED);
    let forged = ask(own, "evil.example", Method::GET).await;
    assert_eq!(forged.error().1, "ORIGIN_REFUSED");
    for token in [None, Some("x".to_owned())] {
        let refused = ask(token, &http.host, Method::GET).await;
        assert_eq!(refused.error().1, "TOKEN_REFUSED");
    }
    // A task's token has that task's rights, which do not reach the whole server.
    let request = shell("echo \"$HEELER_TOKEN\"; sleep 1000");
    let task = api.start(request).await;
    let token = within("the token", async {
        loop {
            let output = api.output(&task.id).await;
            if output.ends_with(b"\n") {
                return String::from_utf8(output).unwrap().trim().to_owned();
            }
        }
    })
    .await;
    let refused = ask(Some(token), &http.host, Method::GET).await;
    assert_eq!(refused.error().1, "RIGHTS_INSUFFICIENT");
}

/// H5: a client cannot multiply the metrics, and its names do not break them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn queues_are_limited_and_their_names_are_escaped() {
    let daemon = Daemon::builder().http().start().await;
    let (api, http) = (daemon.api().await, daemon.http().await);
    let hostile = "a\"} 1\n# EOF\nx\\";
    api.set_queue(hostile, Some(2), None).await.unwrap();
    for name in 0..120 {
        let name = format!("queue-{name:03}");
        api.set_queue(&name, Some(3), Some(true)).await.unwrap();
    }
    for session in 0..3 {
        let request = queued(hostile, shell("sleep 1000"));
        api.start(request.with_session(format!("session-{session}")))
            .await;
    }
    let seen = metrics(&http).await;
    assert_eq!(seen.families["heeler_queue_slots"].samples.len(), 100);
    assert_eq!(seen.sum("heeler_queues", &[]), 121.0);
    let place = |place| {
        let labels = [("queue", hostile), ("place", place)];
        seen.sum("heeler_queue_tasks", &labels)
    };
    assert_eq!((place("running"), place("waiting")), (2.0, 1.0));
    assert_eq!(seen.sum("heeler_queue_paused", &[]), 99.0);
    let names = seen.samples().flat_map(|one| one.labels.values());
    assert!(!names.into_iter().any(|value| value.contains("session-")));
}

/// The rows of the table in docs/METRICS.md: name, kind and labels.
fn documented() -> BTreeMap<String, (String, Vec<String>)> {
    let page = fs::read_to_string(binary::workspace().join("docs/METRICS.md")).unwrap();
    let row = Regex::new(r"(?m)^\| `((?:heeler|process)_\w+)` \| (\w+) \|([^|]*)\|").unwrap();
    let label = Regex::new(r"`(\w+)`").unwrap();
    let labels = |text: &str| {
        let mut labels: Vec<String> = label
            .captures_iter(text)
            .map(|one| one[1].to_owned())
            .collect();
        labels.sort();
        labels
    };
    let rows = row.captures_iter(&page);
    rows.map(|one| (one[1].to_owned(), (one[2].to_owned(), labels(&one[3]))))
        .collect()
}

/// The same, as it is exposed.
fn exposed(metrics: &Exposition) -> BTreeMap<String, (String, Vec<String>)> {
    let families = metrics.families.iter().map(|(name, family)| {
        let suffix = match &*family.kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let labels = family.samples.iter().flat_map(|one| one.labels.keys());
        let mut labels: Vec<String> = labels.filter(|name| *name != "le").cloned().collect();
        labels.sort();
        labels.dedup();
        (format!("{name}{suffix}"), (family.kind.clone(), labels))
    });
    families.collect()
}

/// H5: the page lists exactly what is exposed, and the dashboard asks for nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_and_the_dashboard_name_the_metrics_that_there_are() {
    let daemon = Daemon::builder().http().start().await;
    let (api, http) = (daemon.api().await, daemon.http().await);
    api.set_queue("q", Some(2), None).await.unwrap();
    let id = api.start(shell("true")).await.id;
    api.ended(&id).await;
    let seen = metrics(&http).await;
    let exposed = exposed(&seen);
    assert_eq!(documented(), exposed);
    let dashboard = fs::read_to_string(binary::workspace().join("docs/grafana.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let name = Regex::new(r"\b(?:heeler|process)_\w+").unwrap();
    let suffix = Regex::new("_(bucket|count|sum)$").unwrap();
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array());
    let mut asked = 0;
    for target in targets.flatten() {
        let expression = target["expr"].as_str().expect("an expression");
        for found in name.find_iter(expression) {
            let known = exposed.get(found.as_str()).or_else(|| {
                let family = exposed.get(&*suffix.replace(found.as_str(), ""));
                family.filter(|(kind, _)| kind == "histogram")
            });
            assert!(known.is_some(), "{expression}: {}", found.as_str());
            asked += 1;
        }
    }
    assert!(asked >= 15, "{asked}");
}
