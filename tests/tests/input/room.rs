//! A task that does not read its input.

use std::fs;

use heeler_tests::{
    Daemon, SpawnRequestExt as _, argv,
    client::input::{at, status},
    millis, numbered, secs, shell,
    v1::*,
    within,
};

/// More than a pipe and a shim hold of input.
const MOST: u64 = 256 << 10;

/// The resident memory of a process, in KiB.
fn memory_of(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.unwrap().parse().unwrap()
}

/// I3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_gigabyte_for_a_task_that_does_not_read_costs_bounded_memory() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(argv(["sleep", "600"]).with_input()).await.id;
    let piece = vec![b'x'; 1 << 20];
    let (mut offset, before) = (0, memory_of(daemon.pid()));
    for _ in 0..1024 {
        let answer = api.write(&id, offset, &piece).await.unwrap();
        offset = answer.offset;
        assert!(offset < MOST, "it took {offset} bytes");
    }
    let grown = memory_of(daemon.pid()).saturating_sub(before);
    assert!(grown < 64 << 10, "the server has grown by {grown} KiB");
    // Others are served meanwhile, and a write that waits says so when its time is over.
    let other = api.start(argv(["cat"]).with_input()).await.id;
    let waiting = WriteInputRequest {
        wait: Some(millis(300)),
        ..at(&id, offset, "y")
    };
    let (waited, ()) = tokio::join!(api.write_input(waiting), async {
        api.type_in(&other, "through").await;
        super::output_with(&api, &other, "through").await;
    });
    let waited = waited.unwrap();
    assert_eq!((waited.taken_bytes, waited.offset), (0, offset));
}

/// I3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_write_that_waits_is_complete_when_the_task_reads() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (gate, path) = (daemon.gate("read"), daemon.file("read"));
    let copy = daemon.file("copy");
    let request = shell(format!("cat {path}; exec cat > {copy}")).with_input();
    let id = api.start(request).await.id;
    let data = numbered(0..1 << 20);
    let write = WriteInputRequest {
        wait: Some(secs(60)),
        close: true,
        ..at(&id, 0, &data)
    };
    let writing = tokio::spawn({
        let api = api.clone();
        async move { api.write_input(write).await.unwrap() }
    });
    // It has begun, and waits.
    loop {
        let given = api.write_input(status(&id)).await.unwrap().offset;
        if given > 0 {
            assert!(given < MOST);
            break;
        }
    }
    gate.open();
    let answer = within("the write", writing).await.unwrap();
    assert_eq!((answer.offset, answer.closed), (1 << 20, true));
    api.ended(&id).await;
    assert!(fs::read(copy).unwrap() == data);
}
