//! Inspect: the process tree, resources and the output tail.

use heeler_tests::{Daemon, output::bytes, v1::*};

/// L3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inspect_shows_the_tree_its_cpu_time_memory_and_process_count() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "burn 200 print said fork [ pid child fork [ setsid pid grandchild forever ] forever ] forever";
    let fixture = daemon.run(&api, script).await;
    let tree = fixture.processes(&["leader", "child", "grandchild"]).await;
    // The shim reads from the pipe some time after the write.
    api.output_reaches(&fixture.id, 1).await;
    let shown = api.inspect(&fixture.id).await.unwrap();
    let pids: Vec<i32> = shown.processes.iter().map(|process| process.pid).collect();
    assert_eq!(
        pids,
        tree.iter().map(|process| process.pid).collect::<Vec<_>>()
    );
    assert_eq!(shown.processes[1].parent_pid, tree[0].pid);
    assert_eq!(shown.processes[2].parent_pid, tree[1].pid);
    for process in &shown.processes {
        assert!(process.command.contains("heeler-fixture"), "{process:?}");
        assert!(
            process.memory_bytes > 0 && process.start_time.is_some(),
            "{process:?}"
        );
        assert!(["R", "S", "D"].contains(&&*process.state), "{process:?}");
    }
    let used = shown.resources.unwrap();
    assert_eq!(used.process_count, 3);
    assert!(used.memory_bytes > 0);
    let cpu = used.cpu_time.unwrap();
    assert!(cpu.seconds > 0 || cpu.nanos >= 150_000_000, "{cpu:?}");
    assert_eq!(shown.task.unwrap().state(), TaskState::Running);
    assert_eq!(tail(shown.output_tail), "said\n");
    assert_eq!(shown.server.unwrap(), api.server().await);
}

fn tail(tail: Option<OutputTail>) -> String {
    String::from_utf8(bytes(&tail.unwrap().chunks)).unwrap()
}

/// L3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inspect_of_a_finished_task_shows_what_it_used_and_no_processes() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("burn 200 print bye exit 2")).await;
    api.ended(&task.id).await;
    let shown = api.inspect(&task.id).await.unwrap();
    assert_eq!(shown.processes, []);
    let used = shown.resources.unwrap();
    let cpu = used.cpu_time.unwrap();
    assert!(cpu.seconds > 0 || cpu.nanos >= 150_000_000, "{cpu:?}");
    assert!(used.memory_bytes > 0);
    assert_eq!(used.process_count, 0);
    assert_eq!(tail(shown.output_tail), "bye\n");
}

/// L3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inspect_gives_as_much_of_the_output_as_requested() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("bytes 300000")).await;
    api.ended(&task.id).await;
    let cases = [
        (None, 4096),
        (Some(0), 0),
        (Some(10), 10),
        (Some(256 * 1024), 256 * 1024),
    ];
    for (output_tail_bytes, expected) in cases {
        let request = InspectRequest {
            task_id: task.id.clone(),
            output_tail_bytes,
            ..InspectRequest::default()
        };
        let shown = api.raw().inspect(request).await.unwrap().into_inner();
        let shown = shown.output_tail.unwrap();
        assert_eq!(shown.end_offset, 300_000);
        assert_eq!(
            bytes(&shown.chunks),
            heeler_tests::pattern(300_000)[300_000 - expected..],
            "{expected}"
        );
    }
}
