//! The listening ports of tasks, and their readiness.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;
mod pattern;
mod ports;
mod probes;
mod timeout;

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
};

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _,
    request::wait,
    v1::{ready_policy::Probe, *},
};

/// A request without a command, with this probe.
fn with_probe(probe: Probe) -> SpawnRequest {
    SpawnRequest::default().with_ready(probe)
}

/// A probe by a command.
fn command<'a>(args: impl IntoIterator<Item = &'a str>) -> Probe {
    let args = args.into_iter().map(str::to_owned).collect();
    Probe::Command(ArgvCommand { args })
}

/// Waits until it is known whether the task is ready, or for this time.
async fn wait_ready(api: &Api, id: &str, timeout: Option<prost_types::Duration>) -> WaitResponse {
    let request = WaitRequest {
        until: WaitCondition::Ready.into(),
        timeout,
        ..wait([id])
    };
    let answer = heeler_tests::within("the readiness", api.wait(request)).await;
    answer.unwrap()
}

async fn ready_of(api: &Api, id: &str) -> Readiness {
    api.task(id).await.readiness()
}

/// The files of commands that look whether a task is ready.
fn probe_files(daemon: &Daemon) -> Vec<PathBuf> {
    let files = |dir: &Path| {
        fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
    };
    let parts = files(&daemon.state_dir().join("tasks"));
    let all = parts.flat_map(|part| files(&part).collect::<Vec<_>>());
    all.filter(|file| file.extension().is_some_and(|end| end == "probe"))
        .collect()
}

/// A port on which nothing listens. Another process may take it, which fails the test.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}
