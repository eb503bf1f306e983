//! The system's limits and shares: Spawn at the limit of processes, and the time slice of a leader.

use std::process::Command;

use heeler_tests::{
    Daemon, Refusal, argv, containment, eventually, eventually_some,
    outcome::{exit_code, proof_in},
    process::{kill_all, shims_of},
    v1::TaskState,
};
use tonic::Code;

/// Sets the limit of processes of the user beyond which this process can create none. Root has no limit.
fn limit_processes(pid: i32, most: u32) {
    let done = Command::new("prlimit")
        .args(["--pid", &pid.to_string(), &format!("--nproc={most}:")])
        .status();
    assert!(done.unwrap().success(), "prlimit");
}

/// S11, S14, C16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_spawn_at_the_limit_of_processes_is_refused_and_a_cancel_is_not() {
    let test = concat!(
        module_path!(),
        "::a_spawn_at_the_limit_of_processes_is_refused_and_a_cancel_is_not"
    );
    if containment::reruns_as_nobody(test) {
        return;
    }
    let daemon = Daemon::builder().containment("subreaper").start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "ignore TERM pid ready forever").await;
    let task_dir = daemon.state_dir().join("tasks");
    let idle = eventually_some("idle shims", || {
        let mut shims = shims_of(&task_dir);
        shims.retain(|shim| shim.is_idle_shim(None, &task_dir));
        (shims.len() > 1).then_some(shims)
    })
    .await;
    idle.iter().for_each(|shim| limit_processes(shim.pid, 1));
    limit_processes(daemon.pid(), 1);
    // First the idle shims cannot create the leader, then the server no shim.
    let refused = || async {
        let answer = api.spawn(argv(["true"])).await;
        let refusal = Refusal::expect(answer, Code::ResourceExhausted, "SPAWN_FAILED");
        let task = api.task(refusal.value("task_id")).await;
        assert_eq!((task.state(), task.leader), (TaskState::Failed, None));
    };
    refused().await;
    kill_all(&idle).await;
    refused().await;
    proof_in(&api.kill(&fixture.id).await);
    daemon.no_processes().await;

    limit_processes(daemon.pid(), 4096);
    let id = api.start(argv(["true"])).await.id;
    assert_eq!(exit_code(&api.ended(&id).await), 0);
    eventually("idle shims", || shims_of(&task_dir).len() > 1).await;
}
