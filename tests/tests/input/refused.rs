//! Writes and sizes that are refused.

use std::fmt::Debug;

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, argv,
    client::input::{at, status},
    secs, shell,
    v1::*,
};
use tonic::{
    Code::{FailedPrecondition, InvalidArgument, NotFound},
    Status,
};

#[track_caller]
pub(crate) fn expect<T: Debug>(
    result: Result<T, Status>,
    code: tonic::Code,
    reason: &str,
) -> Refusal {
    Refusal::expect(result, code, reason)
}

/// I7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn input_without_stdin_after_its_close_and_after_the_end_is_refused() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let bare = api.start(argv(["sleep", "600"])).await.id;
    expect(
        api.write(&bare, 0, "x").await,
        FailedPrecondition,
        "INPUT_MISSING",
    );
    expect(
        api.write_input(status(&bare)).await,
        FailedPrecondition,
        "INPUT_MISSING",
    );
    let open = shell("cat > /dev/null; sleep 600").with_input();
    let closed = api.start(open).await.id;
    api.type_in(&closed, "ab").await;
    api.close_input(&closed).await;
    let refused = expect(
        api.write(&closed, 2, "x").await,
        FailedPrecondition,
        "INPUT_CLOSED",
    );
    assert_eq!(
        (refused.value("offset"), refused.value("closed_by")),
        ("2", "writer")
    );
    let repeated = api.write(&closed, 0, "ab").await.unwrap();
    assert_eq!((repeated.offset, repeated.closed), (2, true));
    api.kill(&closed).await;
    let refused = expect(
        api.write(&closed, 2, "x").await,
        FailedPrecondition,
        "TASK_FINISHED",
    );
    assert_eq!(refused.value("state"), "CANCELLED");
    let unknown = api.write("shell-aaaaaaaaaa", 0, "x").await;
    expect(unknown, NotFound, "TASK_NOT_FOUND");
}

/// I7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn input_that_no_process_reads_any_more_is_closed_by_the_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = shell("exec 0<&-; echo gone; exec sleep 600").with_input();
    let id = api.start(request).await.id;
    super::output_with(&api, &id, "gone").await;
    let refused = expect(
        api.write(&id, 0, "x").await,
        FailedPrecondition,
        "INPUT_CLOSED",
    );
    assert_eq!(refused.value("closed_by"), "task");
    assert!(api.write_input(status(&id)).await.unwrap().closed);
}

/// I5, I7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_resize_needs_a_terminal_and_a_size_within_the_limits() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let bare = api.start(argv(["sleep", "600"]).with_input()).await.id;
    expect(
        api.resize(&bare, 80, 24).await,
        FailedPrecondition,
        "TERMINAL_MISSING",
    );
    let terminal = api
        .start(argv(["sleep", "600"]).with_terminal(80, 24))
        .await
        .id;
    for (columns, rows, field) in [
        (0, 24, "columns"),
        (65_535, 24, "columns"),
        (u32::MAX, 24, "columns"),
        (80, 0, "rows"),
        (80, 1001, "rows"),
    ] {
        let refused = api.resize(&terminal, columns, rows).await;
        let refused = expect(refused, InvalidArgument, "INVALID_FIELD");
        assert_eq!(refused.fields, [field]);
    }
    for (columns, rows, field) in [
        (65_535, 24, "spec.terminal.columns"),
        (80, 1001, "spec.terminal.rows"),
    ] {
        let refused = api.spawn(argv(["true"]).with_terminal(columns, rows)).await;
        let refused = expect(refused, InvalidArgument, "INVALID_FIELD");
        assert_eq!(refused.fields, [field]);
    }
    api.resize(&terminal, 1000, 1).await.unwrap();
    expect(
        api.resize("shell-aaaaaaaaaa", 1, 1).await,
        NotFound,
        "TASK_NOT_FOUND",
    );
    api.kill(&terminal).await;
    expect(
        api.resize(&terminal, 80, 24).await,
        FailedPrecondition,
        "TASK_FINISHED",
    );
}

/// I2, S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bad_fields_of_a_write_are_named() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(argv(["cat"]).with_input()).await.id;
    let bad = [
        ("task_id", status("")),
        ("data", at(&id, 0, vec![0; (1 << 20) + 1])),
        ("offset", at(&id, u64::MAX, "x")),
        (
            "writer_id",
            WriteInputRequest {
                writer_id: "w".repeat(49),
                ..at(&id, 0, "x")
            },
        ),
        (
            "wait",
            WriteInputRequest {
                wait: Some(secs(301)),
                ..at(&id, 0, "x")
            },
        ),
    ];
    for (field, request) in bad {
        let refused = api.write_input(request).await;
        let refused = expect(refused, InvalidArgument, "INVALID_FIELD");
        assert_eq!(refused.fields, [field]);
    }
    assert_eq!(api.write_input(status(&id)).await.unwrap().offset, 0);
}
