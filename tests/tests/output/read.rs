//! Output: every byte, tagged and in order, for any number of readers.

use std::{
    task::Poll,
    time::{Duration, Instant},
};

use heeler_tests::{
    Daemon,
    api::{self, raw, read},
    argv, eventually, millis, pattern, secs,
    v1::{outcome::Result as Ended, *},
    watch::task_of,
    within,
};

fn bytes(answer: &ReadOutputResponse) -> Vec<u8> {
    answer
        .chunks
        .iter()
        .flat_map(|chunk| raw(chunk).to_vec())
        .collect()
}

/// O1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn any_offset_can_be_read_and_past_the_end_is_nothing() {
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
            let given = bytes(&answer);
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
                "as much as was asked for"
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
async fn the_last_bytes_can_be_asked_for() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(daemon.script("bytes 1000")).await.id;
    api.ended(&id).await;
    for (tail, expected) in [(0, 0), (10, 10), (1000, 1000), (u64::MAX, 1000)] {
        let start = Some(read_output_request::Start::TailBytes(tail));
        let request = ReadOutputRequest {
            task_id: id.clone(),
            start,
            ..Default::default()
        };
        let answer = api.read(request).await.unwrap();
        assert_eq!(bytes(&answer), pattern(1000)[1000 - expected..]);
        assert_eq!(answer.next_offset, 1000);
    }
}

/// O2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn readers_do_not_disturb_one_another() {
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
                all.extend(bytes(&answer));
            }
        });
    }
    for all in within("every reader", readers.join_all()).await {
        assert!(
            all == pattern(ALL),
            "{} bytes, not those that were written",
            all.len()
        );
    }
}

/// O3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_long_poll_returns_at_the_first_byte_and_at_the_end() {
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
        (bytes(&answer), answer.complete),
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
        "not before its time"
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
async fn stdout_and_stderr_are_tagged_and_in_the_order_of_arrival() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    // Each step waits until the one before has been read, so that the order is certain.
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
        assert_eq!(bytes(&answer), format!("{n}\n").into_bytes());
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
            "times go forward"
        );
        last = heeler_tests::micros(&chunk.read_time);
    }
    assert_eq!(whole.chunks.len(), 8);
}

/// O6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_written_just_before_the_exit_is_there_when_the_end_is_told() {
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
async fn a_grandchild_that_holds_the_pipe_delays_and_falsifies_nothing() {
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
    assert_eq!(
        task.outcome.as_ref().unwrap().result,
        Some(Ended::ExitCode(7))
    );
    assert_eq!(task.state(), TaskState::Running, "the tree is not empty");
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
    assert_eq!(
        task.outcome.as_ref().unwrap().result,
        Some(Ended::ExitCode(7))
    );
    assert_eq!(api.lines(&fixture.id).await, ["early", "late"]);
    assert!(late.is_gone(), "ended is ended");
}

/// O10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn clients_that_do_not_read_slow_no_task_down() {
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
    while api.read(read(&fixture.id, 0)).await.unwrap().end_offset < 2_000_000 {
        within("some output", api.poll(&fixture.id, 1_999_999))
            .await
            .unwrap();
    }
    // Each asks for a mebibyte and, polled once and never again, takes no more than a first window.
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let mut client = daemon.api().await.raw();
        let request = ReadOutputRequest {
            max_bytes: 1 << 20,
            ..read(&fixture.id, 0)
        };
        let mut call = Box::pin(async move { client.read_output(request).await });
        let asked = std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending()));
        // On a busy machine a whole answer may have come before the first look for it.
        if asked.await {
            stalled.push(call);
        }
    }
    assert!(!stalled.is_empty(), "nobody stalled");
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
async fn output_is_readable_after_the_end_and_after_a_restart_until_it_is_removed() {
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
    let status = api.read(api::read(&id, 0)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::NotFound);
}

/// O11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_of_a_running_task_goes_on_across_a_crash() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "print before gate {} print meanwhile touch {} forever",
        daemon.file("gate"),
        daemon.file("done")
    );
    let fixture = daemon.run(&api, &script).await;
    within("the first line", api.poll(&fixture.id, 0))
        .await
        .unwrap();
    daemon.kill9();
    gate.open();
    let done = daemon.path("done");
    eventually("output while no server runs", || done.exists()).await;
    daemon.restart().await;
    let api = daemon.api().await;
    while api.read(read(&fixture.id, 0)).await.unwrap().end_offset < 17 {
        within("the second line", api.poll(&fixture.id, 7))
            .await
            .unwrap();
    }
    assert_eq!(api.lines(&fixture.id).await, ["before", "meanwhile"]);
}
