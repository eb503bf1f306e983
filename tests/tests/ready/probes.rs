//! Tasks that become ready: by a port, by a URL, by a command.

use std::{fs, path::Path};

use heeler_tests::{
    Daemon, Refusal, Setting, SpawnRequestExt as _, eventually, in_each_setting, millis, secs,
    v1::{ready_policy::Probe, *},
    watch::{Watch, task_of},
};
use tonic::Code;

use super::{command, free_port, probe_files, ready_of, wait_ready, with_probe};

in_each_setting! {
    a_task_is_ready_when_a_process_of_its_tree_listens_on_the_port,
    a_task_is_ready_when_its_command_exits_with_0,
}

/// The types of the events of a task, up to this one.
async fn types_until(watch: &mut Watch, last: TaskEventType) -> Vec<TaskEventType> {
    let mut types = Vec::new();
    while types.last() != Some(&last) {
        types.push(watch.event().await.r#type());
    }
    types
}

/// Y1
async fn a_task_is_ready_when_a_process_of_its_tree_listens_on_the_port(
    daemon: Daemon,
    _: Setting,
) {
    let api = daemon.api().await;
    let (gate, port) = (daemon.gate("up"), free_port());
    let up = daemon.file("up");
    let script = format!("fork [ setsid gate {up} listen {port} forever ] listen 0 forever");
    let request = with_probe(Probe::Port(port.into()));
    let fixture = daemon.run_as(&api, request, &script).await;
    api.listening_port(&fixture.id).await;
    let answer = wait_ready(&api, &fixture.id, Some(millis(300))).await;
    assert!(!answer.satisfied, "another port: {answer:?}");
    assert_eq!(ready_of(&api, &fixture.id).await, Readiness::Pending);
    let mut watch = api.watch_after(fixture.task.revision).await;
    gate.open();
    let answer = wait_ready(&api, &fixture.id, None).await;
    assert!(answer.satisfied);
    assert_eq!(answer.met[0].readiness(), Readiness::Ready);
    assert_eq!(answer.met[0].state(), TaskState::Running);
    let event = watch.event().await;
    assert_eq!(event.r#type(), TaskEventType::Ready);
    assert_eq!(task_of(&event).readiness(), Readiness::Ready);
    api.kill(&fixture.id).await;
    let types = types_until(&mut watch, TaskEventType::Ended).await;
    assert!(!types.contains(&TaskEventType::Ready), "once: {types:?}");
    assert_eq!(ready_of(&api, &fixture.id).await, Readiness::Ready);
}

/// Y1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn any_port_will_do_and_the_first_looks_come_fast() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = with_probe(Probe::Port(0)).with_ready_interval(secs(3600));
    let fixture = daemon.run_as(&api, request, "listen 0 forever").await;
    assert!(wait_ready(&api, &fixture.id, None).await.satisfied);
}

/// Y1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_is_ready_when_its_url_answers_with_success_or_a_redirect() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for (status, is_ready) in [
        ("200", true),
        ("204", true),
        ("302", true),
        ("404", false),
        ("503", false),
        ("nothing", false),
    ] {
        let port = free_port();
        let timeout = match is_ready {
            true => secs(30),
            false => millis(1500),
        };
        let request = with_probe(Probe::HttpUrl(format!("http://localhost:{port}/x?y")))
            .with_ready_timeout(timeout);
        let script = format!("serve {port} {status} forever");
        let fixture = daemon.run_as(&api, request, &script).await;
        let answer = wait_ready(&api, &fixture.id, None).await;
        let readiness = match is_ready {
            true => Readiness::Ready,
            false => Readiness::NotReady,
        };
        assert_eq!(answer.met[0].readiness(), readiness, "{status}");
    }
}

/// Y1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_url_of_another_machine_is_refused_unless_the_server_allows_it() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for (url, host) in [
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254"),
        ("http://example.com/", "example.com"),
        ("http://0.0.0.0:80/", "0.0.0.0"),
    ] {
        let request = with_probe(Probe::HttpUrl(url.into()));
        let request = request.with_command_of(daemon.script("forever"));
        let refused = api.spawn(request).await;
        let reason = "PROBE_HOST_NOT_ALLOWED";
        let refusal = Refusal::expect(refused, Code::FailedPrecondition, reason);
        assert_eq!(refusal.value("host"), host);
    }
    assert_eq!(api.ids().await, Vec::<String>::new());
    let daemon = Daemon::builder().arg("--allow-probe-hosts").start().await;
    let api = daemon.api().await;
    let port = free_port();
    let request = with_probe(Probe::HttpUrl(format!("http://0.0.0.0:{port}/")));
    let script = format!("serve {port} 200 forever");
    let fixture = daemon.run_as(&api, request, &script).await;
    let answer = wait_ready(&api, &fixture.id, None).await;
    assert_eq!(answer.met[0].readiness(), Readiness::Ready);
}

/// Y1
async fn a_task_is_ready_when_its_command_exits_with_0(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let (up, seen) = (daemon.file("up"), daemon.file("seen"));
    // In the directory and with the environment of the task.
    let script = format!("echo \"$FLAVOUR $PWD $HEELER_TASK_ID $NO_COLOR\" > {seen}; test -e {up}");
    let request = with_probe(command(["/bin/sh", "-c", &script]))
        .with_env([("FLAVOUR", "vanilla")])
        .with_working_directory(daemon.home().to_str().unwrap());
    let fixture = daemon.run_as(&api, request, "forever").await;
    eventually("a look", || Path::new(&seen).exists()).await;
    assert_eq!(ready_of(&api, &fixture.id).await, Readiness::Pending);
    fs::write(&up, "").unwrap();
    let answer = wait_ready(&api, &fixture.id, None).await;
    assert_eq!(answer.met[0].readiness(), Readiness::Ready);
    let expected = format!("vanilla {} {} 1\n", daemon.home().display(), fixture.id);
    assert_eq!(fs::read_to_string(&seen).unwrap(), expected);
    // The command is no task, and no part of one.
    assert_eq!(api.output(&fixture.id).await, b"");
    assert_eq!(api.ids().await, [fixture.id]);
    assert!(probe_files(&daemon).is_empty());
}

/// Y1, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn readiness_is_looked_for_and_remembered_across_kill_9_of_the_server() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let up = daemon.file("up");
    let script = format!("test \"$FLAVOUR\" = vanilla && test -e {up}");
    let request =
        with_probe(command(["/bin/sh", "-c", &script])).with_env([("FLAVOUR", "vanilla")]);
    let pending = daemon.run_as(&api, request, "forever").await;
    let ready = daemon
        .run_as(&api, with_probe(Probe::Port(0)), "listen 0 forever")
        .await;
    assert!(wait_ready(&api, &ready.id, None).await.satisfied);
    daemon.kill9();
    fs::write(&up, "").unwrap();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(ready_of(&api, &ready.id).await, Readiness::Ready);
    let answer = wait_ready(&api, &pending.id, None).await;
    assert_eq!(
        answer.met[0].readiness(),
        Readiness::Ready,
        "by the leader's environment"
    );
    let mut watch = api.watch_after(0).await;
    let mut count = 0;
    while count < 2 {
        count += usize::from(watch.event().await.r#type() == TaskEventType::Ready);
    }
}

/// Y1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_for_readiness_ends_with_the_task_and_needs_no_policy() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = with_probe(Probe::Port(0)).with_session("s");
    let fixture = daemon.run_as(&api, request, "forever").await;
    let plain = daemon.run(&api, "forever").await;
    assert!(wait_ready(&api, &plain.id, None).await.satisfied, "it runs");
    let waiting = {
        let (api, id) = (api.clone(), fixture.id.clone());
        tokio::spawn(async move { wait_ready(&api, &id, None).await })
    };
    api.kill(&fixture.id).await;
    let answer = waiting.await.unwrap();
    assert!(answer.satisfied);
    assert_eq!(answer.met[0].readiness(), Readiness::NotReady);
    let mut of_session = heeler_tests::request::wait_for_session("s");
    of_session.until = WaitCondition::Ready.into();
    assert!(api.wait(of_session).await.unwrap().satisfied);
}
