//! Bytes to the stdin of a task.

use std::time::Duration;

use heeler_client::{Client, InputOptions, Spawn};
use heeler_tests::{
    Daemon, Setting, SpawnRequestExt as _, argv,
    client::input::{at, status},
    in_each_setting,
    outcome::exit_code,
    pattern, queued, secs, shell,
    v1::*,
    within,
};
use tokio::io::AsyncWriteExt as _;

in_each_setting! {
    what_is_written_is_read_in_order_and_a_close_is_the_end_of_it,
}

/// I1
async fn what_is_written_is_read_in_order_and_a_close_is_the_end_of_it(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let id = api.start(argv(["cat"]).with_input()).await.id;
    let answer = api.write(&id, 0, "one ").await.unwrap();
    assert_eq!((answer.offset, answer.taken_bytes), (4, 4));
    assert!(!answer.closed);
    super::output_with(&api, &id, "one ").await;
    let last = WriteInputRequest {
        close: true,
        ..at(&id, 4, b"\0two\xff\n")
    };
    let answer = api.write_input(last.clone()).await.unwrap();
    assert_eq!((answer.offset, answer.closed), (10, true));
    let again = api.write_input(last).await;
    if let Ok(again) = again {
        assert_eq!(again, answer, "a repetition changes nothing");
    }
    assert_eq!(exit_code(&api.ended(&id).await), 0);
    assert_eq!(api.output(&id).await, b"one \0two\xff\n");
}

/// S7, I1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_with_input_waits_for_its_end_and_one_without_does_not() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "cat; echo over";
    let without = api.start(shell(script)).await.id;
    assert_eq!(exit_code(&api.ended(&without).await), 0);
    let with = api.start(shell(script).with_input()).await.id;
    api.type_in(&with, "x").await;
    super::output_with(&api, &with, "x").await;
    assert_eq!(api.task(&with).await.state(), TaskState::Running);
    api.close_input(&with).await;
    assert_eq!(exit_code(&api.ended(&with).await), 0);
    assert_eq!(api.output(&with).await, b"xover\n");
}

/// I2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_repeated_write_changes_nothing_and_a_gap_is_refused() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(argv(["cat"]).with_input()).await.id;
    for (offset, data, end) in [(0, "abc", 3), (0, "abc", 3), (1, "bcde", 5), (0, "a", 5)] {
        let answer = api.write(&id, offset, data).await.unwrap();
        assert_eq!(answer.offset, end, "{data} at {offset}");
        assert_eq!(answer.taken_bytes as usize, data.len());
    }
    let refused = super::refused::expect(
        api.write(&id, 6, "x").await,
        tonic::Code::OutOfRange,
        "INPUT_GAP",
    );
    assert_eq!(refused.value("offset"), "5");
    let asked = api.write_input(status(&id)).await.unwrap();
    assert_eq!((asked.offset, asked.closed), (5, false));
    api.close_input(&id).await;
    api.ended(&id).await;
    assert_eq!(api.output(&id).await, b"abcde");
}

/// I1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_queued_task_takes_its_input_when_it_starts() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let first = api.start(queued("q", argv(["sleep", "600"]))).await.id;
    let second = api.start(queued("q", argv(["cat"])).with_input()).await.id;
    assert_eq!(api.task(&second).await.state(), TaskState::Queued);
    let answer = api.write(&second, 0, "hello").await.unwrap();
    assert_eq!((answer.offset, answer.taken_bytes), (0, 0));
    let waiting = WriteInputRequest {
        wait: Some(secs(60)),
        writer_id: "early".into(),
        close: true,
        ..at(&second, 0, "hello")
    };
    let waiting = tokio::spawn({
        let api = api.clone();
        async move { api.write_input(waiting).await.unwrap() }
    });
    api.kill(&first).await;
    let answer = within("the write", waiting).await.unwrap();
    assert_eq!((answer.offset, answer.closed), (5, true));
    assert_eq!(answer.writer_id, "early");
    api.ended(&second).await;
    assert_eq!(api.output(&second).await, b"hello");
}

/// I1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_writer_of_the_sdk_passes_every_byte_and_the_end() {
    let daemon = Daemon::start().await;
    let client = Client::connect(daemon.address().parse().unwrap());
    let client = client.await.unwrap();
    let spawn = Spawn::argv(["cat"]).input().max_output(64 << 20);
    let task = client.spawn(spawn).await.unwrap();
    let data = pattern(5 << 20);
    let mut input = task.input();
    within("the writes", input.write_all(&data)).await.unwrap();
    within("the end", input.shutdown()).await.unwrap();
    let ended = within("the task", task.wait()).await.unwrap();
    assert_eq!(exit_code(&ended), 0);
    let api = daemon.api().await;
    assert!(api.output(task.id()).await == data);
    let mut late = task.input();
    late.write_all(b"x").await.unwrap();
    let broken = within("the refusal", late.flush()).await.unwrap_err();
    assert_eq!(broken.kind(), std::io::ErrorKind::BrokenPipe);
}

/// I2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_writer_of_the_sdk_waits_for_a_daemon_that_is_away_unless_it_gives_up() {
    let mut daemon = Daemon::start().await;
    let client = Client::connect(daemon.address().parse().unwrap());
    let client = client.await.unwrap().retry_for(Duration::ZERO);
    let cat = || Spawn::argv(["cat"]).input();
    let task = client.spawn(cat()).await.unwrap();
    let other = client.spawn(cat()).await.unwrap();
    let mut input = task.input();
    let impatient = InputOptions::default().give_up_after(Duration::from_millis(1));
    let mut impatient = other.input_with(impatient);
    for writer in [&mut input, &mut impatient] {
        writer.write_all(b"a").await.unwrap();
        within("a flush", writer.flush()).await.unwrap();
    }
    daemon.kill9();
    for writer in [&mut input, &mut impatient] {
        writer.write_all(b"b").await.unwrap();
    }
    let given_up = within("an error", impatient.flush()).await;
    assert_eq!(given_up.unwrap_err().kind(), std::io::ErrorKind::Other);
    daemon.restart().await;
    within("the end", input.shutdown()).await.unwrap();
    let api = daemon.api().await;
    api.ended(task.id()).await;
    assert_eq!(api.output(task.id()).await, b"ab");
    api.kill(other.id()).await;
}
