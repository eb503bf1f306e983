//! One writer and many readers.

use std::io::ErrorKind;

use heeler_client::Client;
use heeler_tests::{
    Daemon, SpawnRequestExt as _, argv,
    client::input::{at, status},
    secs, shell,
    v1::*,
};
use tokio::io::AsyncWriteExt as _;
use tonic::Code::{Aborted, FailedPrecondition};

use super::{output_until, refused::expect};

/// I6: also if the one before waits for room, and its shim is about to answer it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_take_over_from_a_writer_that_waits_lasts() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("read line < {}; exec cat > /dev/null", daemon.file("gate"));
    let id = api.start(shell(script).with_input()).await.id;
    let by = |writer: &str, data: Vec<u8>| WriteInputRequest {
        task_id: id.clone(),
        writer_id: writer.to_owned(),
        data: data.into(),
        wait: Some(secs(30)),
        ..WriteInputRequest::default()
    };
    // More than there is room for.
    let first = tokio::spawn({
        let (api, request) = (api.clone(), by("one", vec![0; 1 << 20]));
        async move { api.write_input(request).await }
    });
    let held = async || api.write_input(status(&id)).await.unwrap().writer_id == "one";
    while !held().await {
        tokio::task::yield_now().await;
    }
    let over = WriteInputRequest {
        take_over: true,
        ..by("two", Vec::new())
    };
    assert_eq!(api.write_input(over).await.unwrap().writer_id, "two");
    gate.open();
    for _ in 0..50 {
        let written = api.write_input(by("two", vec![1; 10_000])).await;
        assert_eq!(written.unwrap().writer_id, "two");
    }
    let told = first.await.unwrap();
    expect(told, Aborted, "INPUT_TAKEN_OVER");
}

/// I6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_writes_to_a_terminal_and_another_takes_over_only_by_saying_so() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(argv(["cat"]).with_terminal(80, 24)).await.id;
    let by = |writer: &str, request| WriteInputRequest {
        writer_id: writer.into(),
        ..request
    };
    let answer = api.write_input(by("one", at(&id, 0, "1\n"))).await.unwrap();
    assert_eq!(answer.writer_id, "one");
    for other in ["two", ""] {
        let refused = api.write_input(by(other, at(&id, 2, "2\n"))).await;
        let refused = expect(refused, FailedPrecondition, "INPUT_HELD");
        assert_eq!(refused.value("writer_id"), "one");
    }
    let asked = api.write_input(by("two", status(&id))).await.unwrap();
    assert_eq!((asked.writer_id.as_str(), asked.offset), ("one", 2));
    let over = WriteInputRequest {
        take_over: true,
        ..by("two", at(&id, 2, "2\n"))
    };
    assert_eq!(api.write_input(over).await.unwrap().writer_id, "two");
    let told = api.write_input(by("one", at(&id, 4, "3\n"))).await;
    let told = expect(told, Aborted, "INPUT_TAKEN_OVER");
    assert_eq!(told.value("writer_id"), "two");
    api.write_input(by("two", at(&id, 4, "4\n"))).await.unwrap();
    // Each line twice, in any order: the echo, and the output.
    let both = |output: &str| output.matches("4\r\n").count() == 2;
    for _ in 0..3 {
        let output = output_until(&api, &id, "4 twice", both).await;
        assert!(!output.contains('3'), "{output:?}");
        assert!(output.contains("1\r\n") && output.contains("2\r\n"));
    }
    let freed = WriteInputRequest {
        take_over: true,
        ..status(&id)
    };
    assert_eq!(api.write_input(freed).await.unwrap().writer_id, "");
    api.write(&id, 6, "5\n").await.unwrap();
}

/// I6: by the writer of the Rust client, at whichever call the refusal is seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_writer_that_is_refused_says_why() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(argv(["cat"]).with_input()).await.id;
    let held = WriteInputRequest {
        writer_id: "other".to_owned(),
        take_over: true,
        ..status(&id)
    };
    api.write_input(held).await.unwrap();
    let client = Client::connect(daemon.address().parse().unwrap());
    let task = client.await.unwrap().task(&id);
    for _ in 0..200 {
        let mut closing = task.input();
        let refused = closing.shutdown().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused:?}");
        let mut writing = task.input();
        let refused = async {
            loop {
                writing.write_all(b"x").await?;
                writing.flush().await?;
            }
        };
        let refused: std::io::Result<()> = refused.await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused:?}");
    }
    api.kill(&id).await;
}
