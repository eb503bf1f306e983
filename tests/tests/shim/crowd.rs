//! Another user who connects to a shim's socket again and again.

use std::{
    os::unix::process::CommandExt,
    process::{Child, Command},
    time::{Duration, Instant},
};

use heeler_tests::{
    Daemon, SpawnRequestExt as _, argv, binary,
    containment::NOBODY,
    eventually,
    outcome::proof_in,
    process::{cpu_time, shims_of},
    skipped,
};

/// The most CPU time that the shim may use, as a part of the time that passes.
const SHARE: f64 = 0.08;
const SPAN: Duration = Duration::from_secs(3);

/// A process of another user that floods the socket, until it is dropped.
struct Crowd(Child);

impl Crowd {
    fn at(socket: &str, program: &std::path::Path) -> Self {
        let flood = Command::new(program)
            .args(["knock", socket, "120000"])
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY)
            .spawn();
        Self(flood.unwrap())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Passes time in which processes of another user flood a socket of a task's shim; the shim must use little CPU.
async fn flood(daemon: &Daemon, task_id: &str, socket: &str) -> [Crowd; 2] {
    let mut found = shims_of(&daemon.state_dir().join("tasks")).into_iter();
    let shim = found.find(|shim| shim.command().contains(task_id)).unwrap();
    // Outside the build's directory, which another user may not be able to enter.
    let dir = tempfile::Builder::new()
        .prefix("heeler-")
        .tempdir_in("/tmp")
        .unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let program = binary::copy(
        &binary::sibling("heeler-fixture"),
        &dir.path().join("fixture"),
    );

    let crowd = [Crowd::at(socket, &program), Crowd::at(socket, &program)];
    let (begun, before) = (Instant::now(), cpu_time(shim.pid));
    eventually("the end of the measurement", || begun.elapsed() > SPAN).await;
    let share = (cpu_time(shim.pid) - before).as_secs_f64() / begun.elapsed().as_secs_f64();
    assert!(share < SHARE, "the shim uses {share} of a CPU");
    crowd
}

/// N3, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_users_connections_cost_a_shim_little_and_do_not_keep_a_server_out() {
    if !nix::unistd::geteuid().is_root() {
        return skipped("only root can connect as another user");
    }
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "pid ready forever").await;
    let socket = socket_of(fixture.process("leader").await.pid);
    let _crowd = flood(&daemon, &fixture.id, &socket).await;
    daemon.kill9();
    daemon.restart().await;
    let result = daemon.api().await.kill(&fixture.id).await;
    proof_in(&result);
    daemon.no_processes().await;
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_users_connections_to_a_relay_cost_a_shim_little() {
    if !nix::unistd::geteuid().is_root() {
        return skipped("only root can connect as another user");
    }
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(argv(["sleep", "600"]).with_input()).await;
    let socket = format!("heeler/{}/relay", task.uid.replace('-', ""));
    let _crowd = flood(&daemon, &task.id, &socket).await;
    api.kill(&task.id).await;
}

/// The abstract name of the socket of a leader's shim.
fn socket_of(leader: i32) -> String {
    let environ = std::fs::read_to_string(format!("/proc/{leader}/environ")).unwrap();
    let mut variables = environ.split('\0');
    let uid = variables.find_map(|variable| variable.strip_prefix("HEELER_TASK_UID="));
    format!("heeler/{}", uid.unwrap().replace('-', ""))
}
