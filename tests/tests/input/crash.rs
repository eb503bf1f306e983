//! Input across a crash of the server.

use std::fs;

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, argv,
    client::input::{at, status},
    numbered, secs, shell,
    v1::*,
    within,
};

use super::refused::expect;

const LENGTH: u64 = 50 << 20;
const PIECE: u64 = 1 << 20;

/// I2: the server is killed in the middle of a write, again and again. The writer does not know what was taken, and
/// repeats it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_in_the_middle_of_writes_loses_and_doubles_no_byte() {
    let mut daemon = Daemon::start().await;
    let mut api = daemon.api().await;
    let copy = daemon.file("copy");
    let request = shell(format!("exec cat > {copy}")).with_input();
    let id = api.start(request).await.id;
    let mut offset = 0;
    for number in 0.. {
        let end = (offset + PIECE).min(LENGTH);
        let write = WriteInputRequest {
            wait: Some(secs(60)),
            writer_id: "w".into(),
            close: end == LENGTH,
            ..at(&id, offset, numbered(offset..end))
        };
        if number % 7 == 3 {
            let writing = tokio::spawn(write_with(api.clone(), write.clone()));
            // The earlier the kill, the less is taken.
            for _ in 0..number {
                tokio::task::yield_now().await;
            }
            daemon.kill9();
            let _ = within("the broken write", writing).await;
            daemon.restart().await;
            api = daemon.api().await;
        }
        let answer = within("a write", api.write_input(write)).await.unwrap();
        assert_eq!(
            (answer.offset, answer.taken_bytes as u64),
            (end, end - offset)
        );
        offset = end;
        if offset == LENGTH {
            break;
        }
    }
    assert_eq!(api.ended(&id).await.state(), TaskState::Completed);
    let copied = fs::read(copy).unwrap();
    assert_eq!(copied.len() as u64, LENGTH);
    assert!(copied == numbered(0..LENGTH));
}

async fn write_with(api: Api, write: WriteInputRequest) {
    let _ = api.write_input(write).await;
}

/// I2, I6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_count_the_writer_and_the_close_outlive_the_server() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(argv(["cat"]).with_input()).await.id;
    let by = |writer: &str, request| WriteInputRequest {
        writer_id: writer.into(),
        ..request
    };
    api.write_input(by("first", at(&id, 0, "abc")))
        .await
        .unwrap();
    let taken = WriteInputRequest {
        take_over: true,
        ..by("second", status(&id))
    };
    api.write_input(taken).await.unwrap();
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    let asked = api.write_input(status(&id)).await.unwrap();
    assert_eq!((asked.offset, asked.writer_id.as_str()), (3, "second"));
    let refused = api.write_input(by("first", at(&id, 3, "x"))).await;
    let refused = expect(refused, tonic::Code::Aborted, "INPUT_TAKEN_OVER");
    assert_eq!(refused.value("writer_id"), "second");
    let gap = api.write_input(by("second", at(&id, 4, "x"))).await;
    let gap = expect(gap, tonic::Code::OutOfRange, "INPUT_GAP");
    assert_eq!(gap.value("offset"), "3");
    let last = WriteInputRequest {
        close: true,
        ..by("second", at(&id, 3, "def"))
    };
    api.write_input(last).await.unwrap();
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    api.ended(&id).await;
    assert_eq!(api.output(&id).await, b"abcdef");
}
