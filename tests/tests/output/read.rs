//! Reading output: offsets, long polls, streams, and readers that do not read.

use std::{
    task::Poll,
    time::{Duration, Instant},
};

use heeler_tests::{
    Daemon, argv, eventually, millis,
    outcome::exit_code,
    output::{bytes, raw},
    pattern,
    request::{read, read_tail},
    secs,
    v1::*,
    watch::task_of,
    within,
};

/// O1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn any_offset_can_be_read_and_past_the_end_it_is_empty() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    const ALL: usize = 200_000;
    let id = api.start(daemon.script(&format!("bytes {ALL}"))).await.id;
    api.ended(&id).await;
    let expected = pattern(ALL);
    for offset in [0, 1, 4095, 65_495, 65_496, 65_536, 131_072, ALL - 1, ALL] {
        for max_bytes in [1, 100, 70_000, 0, u32::MAX] {
            let request = ReadOutputRequest {
                max_bytes,
                ..read(&id, offset as u64)
            };
            let answer = api.read(request).await.unwrap();
            let given = bytes(&answer.chunks);
            let end = (offset + given.len()).min(ALL);
            assert_eq!(given, expected[offset..end], "{offset} {max_bytes}");
            let most = if max_bytes == 0 {
                256 << 10
            } else {
                max_bytes as usize
            };
            assert_eq!(
                given.len(),
                most.min(ALL - offset),
                "not as much as requested"
            );
            assert_eq!(answer.next_offset, end as u64);
            assert_eq!((answer.end_offset, answer.complete), (ALL as u64, true));
        }
    }
    for offset in [ALL as u64 + 1, u64::MAX] {
        let answer = api.read(read(&id, offset)).await.unwrap();
        assert_eq!((answer.chunks.len(), answer.next_offset), (0, offset));
        assert_eq!(answer.end_offset, ALL as u64);
    }
}

/// O1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_last_bytes_can_be_read() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(daemon.script("bytes 1000")).await.id;
    api.ended(&id).await;
    for (tail, expected) in [(0, 0), (10, 10), (1000, 1000), (u64::MAX, 1000)] {
        let answer = api.read(read_tail(&id, tail)).await.unwrap();
        assert_eq!(bytes(&answer.chunks), pattern(1000)[1000 - expected..]);
        assert_eq!(answer.next_offset, 1000);
    }
}

/// O2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn several_readers_each_see_every_byte() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    const ALL: usize = 500_000;
    let id = api.start(daemon.script(&format!("bytes {ALL}"))).await.id;
    let mut readers = tokio::task::JoinSet::new();
    for max_bytes in [1_000, 4_096, 65_536, 100_000, 1 << 20] {
        let (api, id) = (daemon.api().await, id.clone());
        readers.spawn(async move {
            let mut all = Vec::new();
            loop {
                let wait = Some(secs(30));
                let request = ReadOutputRequest {
                    max_bytes,
                    wait,
                    ..read(&id, all.len() as u64)
                };
                let answer = api.read(request).await.unwrap();
                if answer.chunks.is_empty() {
                    assert!(answer.complete, "{answer:?}");
                    return all;
                }
                all.extend(bytes(&answer.chunks));
            }
        });
    }
    for all in within("every reader", readers.join_all()).await {
        assert!(
            all == pattern(ALL),
            "{} bytes differ from those written",
            all.len()
        );
    }
}

/// O3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_long_poll_returns_at_the_first_new_byte_and_at_the_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (first, second) = (daemon.gate("first"), daemon.gate("second"));
    let script = format!(
        "gate {} print hello gate {} exit 0",
        daemon.file("first"),
        daemon.file("second")
    );
    let fixture = daemon.run(&api, &script).await;
    let call = api.poll(&fixture.id, 0);
    first.open();
    let answer = within("the first byte", call).await.unwrap();
    assert_eq!(
        (bytes(&answer.chunks), answer.complete),
        (b"hello\n".to_vec(), false)
    );

    let call = api.poll(&fixture.id, answer.next_offset);
    second.open();
    let answer = within("the end", call).await.unwrap();
    assert_eq!(
        (answer.chunks.len(), answer.next_offset, answer.complete),
        (0, 6, true)
    );
}

/// O3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_long_poll_returns_at_its_timeout_and_zero_is_a_snapshot() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "forever").await;
    let began = Instant::now();
    let request = ReadOutputRequest {
        wait: Some(millis(300)),
        ..read(&fixture.id, 0)
    };
    let answer = api.read(request).await.unwrap();
    assert!(
        began.elapsed() >= Duration::from_millis(300),
        "returned before its timeout"
    );
    assert_eq!(
        (answer.chunks.len(), answer.next_offset, answer.complete),
        (0, 0, false)
    );
    for wait in [None, Some(secs(0))] {
        let request = ReadOutputRequest {
            wait,
            ..read(&fixture.id, 0)
        };
        assert_eq!(api.read(request).await.unwrap().chunks.len(), 0);
    }
}

/// O3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_long_poll_on_a_finished_task_returns_at_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(argv(["true"])).await.id;
    api.ended(&id).await;
    let answer = within("an answer", api.poll(&id, 0)).await.unwrap();
    assert!(answer.complete);
}

/// O4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn stdout_and_stderr_are_tagged_and_in_order_of_arrival() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    // Each step waits until the one before was read, so that the order is certain.
    let mut script = String::new();
    for n in 0..8 {
        let step = if n % 2 == 0 { "print" } else { "err" };
        script += &format!("{step} {n} await {} ", daemon.file(&format!("read-{n}")));
    }
    let fixture = daemon.run(&api, &script).await;
    let mut offset = 0;
    for n in 0..8 {
        let answer = within("the next line", api.poll(&fixture.id, offset))
            .await
            .unwrap();
        assert_eq!(bytes(&answer.chunks), format!("{n}\n").into_bytes());
        offset = answer.next_offset;
        std::fs::write(daemon.file(&format!("read-{n}")), "").unwrap();
    }
    api.ended(&fixture.id).await;
    let whole = api.read(read(&fixture.id, 0)).await.unwrap();
    let mut last = 0;
    for (n, chunk) in whole.chunks.iter().enumerate() {
        let stream = if n % 2 == 0 {
            OutputStream::Stdout
        } else {
            OutputStream::Stderr
        };
        assert_eq!((chunk.stream(), chunk.offset), (stream, 2 * n as u64));
        assert_eq!(raw(chunk), format!("{n}\n").as_bytes());
        assert!(
            heeler_tests::micros(&chunk.read_time) >= last,
            "read times go backwards"
        );
        last = heeler_tests::micros(&chunk.read_time);
    }
    assert_eq!(whole.chunks.len(), 8);
}

/// O6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_written_just_before_the_exit_is_there_at_the_end_event() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    const ALL: usize = 150_000;
    for _ in 0..10 {
        let mut watch = api.watch(WatchEventsRequest::default()).await.unwrap();
        let id = api
            .start(daemon.script(&format!("bytes {ALL} exit 1")))
            .await
            .id;
        let seen = watch.until_of(&id, TaskEventType::Ended).await;
        let end = seen.last().unwrap();
        assert_eq!(task_of(end).output_bytes, ALL as u64);
        assert_eq!(end.output_tail.as_ref().unwrap().end_offset, ALL as u64);
        assert!(api.output(&id).await == pattern(ALL));
    }
}

/// O7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_grandchild_with_the_pipe_open_neither_delays_the_exit_nor_changes_its_code() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "print early double-fork [ pid late gate {} print late exit 0 ] exit 7",
        daemon.file("gate")
    );
    let mut watch = api.watch(WatchEventsRequest::default()).await.unwrap();
    let fixture = daemon.run(&api, &script).await;
    let seen = watch
        .until_of(&fixture.id, TaskEventType::LeaderExited)
        .await;
    let task = task_of(seen.last().unwrap());
    assert_eq!(exit_code(task), 7);
    assert_eq!(
        task.state(),
        TaskState::Running,
        "the task ended before its tree"
    );
    assert_eq!(api.lines(&fixture.id).await, ["early"]);
    let late = fixture.process("late").await;
    assert!(late.is_alive());

    gate.open();
    let seen = watch.until_of(&fixture.id, TaskEventType::Ended).await;
    let task = task_of(seen.last().unwrap());
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Failed, EndReason::Exited)
    );
    assert_eq!(exit_code(task), 7);
    assert_eq!(api.lines(&fixture.id).await, ["early", "late"]);
    assert!(late.is_gone(), "a process after the end");
}

/// O10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn clients_that_do_not_read_do_not_slow_a_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    const ALL: usize = 48 << 20;
    let gate = daemon.gate("gate");
    let script = format!(
        "bytes 2000000 gate {} bytes {} exit 0",
        daemon.file("gate"),
        ALL - 2_000_000
    );
    let fixture = daemon.run(&api, &script).await;
    api.output_reaches(&fixture.id, 2_000_000).await;
    // Each requests a mebibyte, is polled once, and so takes no more than the first flow-control window.
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let mut client = daemon.api().await.raw();
        let request = ReadOutputRequest {
            max_bytes: 1 << 20,
            ..read(&fixture.id, 0)
        };
        let mut call = Box::pin(async move { client.read_output(request).await });
        let asked = std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending()));
        // On a busy machine the whole answer may be there at the first poll.
        if asked.await {
            stalled.push(call);
        }
    }
    assert!(!stalled.is_empty(), "no client stalled");
    let watcher = daemon.api().await.watch_after(0).await;
    gate.open();
    let task = api.ended(&fixture.id).await;
    assert_eq!(
        (task.state(), task.output_bytes),
        (TaskState::Completed, ALL as u64)
    );
    drop((stalled, watcher));
}

/// O11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_is_readable_after_the_end_and_after_a_restart_until_removed() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api
        .start(daemon.script("print one err two bytes 100000"))
        .await
        .id;
    api.ended(&id).await;
    let all = api.output(&id).await;
    assert_eq!(all.len(), 100_008);
    daemon.kill9();
    daemon.restart().await;
    let after_crash = daemon.api().await;
    assert!(after_crash.output(&id).await == all);
    let whole = after_crash.read(read(&id, 0)).await.unwrap();
    assert!(
        whole.complete
            && whole
                .chunks
                .iter()
                .any(|chunk| chunk.stream() == OutputStream::Stderr)
    );
    daemon.terminate();
    daemon.restart().await;
    let api = daemon.api().await;
    assert!(api.output(&id).await == all);
    api.remove([&id]).await.unwrap();
    let status = api.read(read(&id, 0)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::NotFound);
}

/// O11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_of_a_running_task_continues_across_a_crash() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "print before gate {} print meanwhile touch {} forever",
        daemon.file("gate"),
        daemon.file("done")
    );
    let fixture = daemon.run(&api, &script).await;
    api.output_reaches(&fixture.id, 1).await;
    daemon.kill9();
    gate.open();
    let done = daemon.path("done");
    eventually("output while no server runs", || done.exists()).await;
    daemon.restart().await;
    let api = daemon.api().await;
    api.output_reaches(&fixture.id, 17).await;
    assert_eq!(api.lines(&fixture.id).await, ["before", "meanwhile"]);
}
