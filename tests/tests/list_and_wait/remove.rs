//! Remove: finished tasks and their output.

use std::path::PathBuf;

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, argv,
    disk::files_below,
    eventually,
    request::{read, session},
    v1::*,
};
use tonic::Code;

/// L6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn remove_refuses_a_running_task_and_deletes_a_finished_one_with_its_output() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let running = daemon.run(&api, "forever").await;
    let over = api.start(daemon.script("print something")).await;
    api.ended(&over.id).await;
    let revision = api.revision().await;
    for ids in [vec![&running.id], vec![&over.id, &running.id]] {
        let refused = api.remove(ids).await;
        let refusal = Refusal::expect(refused, Code::FailedPrecondition, "TASK_NOT_FINISHED");
        assert_eq!(refusal.value("task_id"), running.id);
        assert_eq!(refusal.value("state"), "RUNNING");
    }
    assert_eq!(
        api.revision().await,
        revision,
        "a part of the tasks was removed"
    );
    assert!(output_file(&daemon, &over.id).is_some());

    let mut watch = api.watch_after(revision).await;
    let answer = api.remove([&over.id]).await.unwrap();
    assert_eq!(answer.removed_task_ids, [&*over.id]);
    let event = watch.event().await;
    assert_eq!(
        (event.r#type(), event.revision),
        (TaskEventType::Removed, answer.revision)
    );
    Refusal::expect(
        api.inspect(&over.id).await,
        Code::NotFound,
        "TASK_NOT_FOUND",
    );
    Refusal::expect(
        api.read(read(&over.id, 0)).await,
        Code::NotFound,
        "TASK_NOT_FOUND",
    );
    Refusal::expect(
        api.remove([&over.id]).await,
        Code::NotFound,
        "TASK_NOT_FOUND",
    );
    assert_eq!(api.ids().await, [&*running.id]);
    eventually("the output to be deleted", || {
        output_file(&daemon, &over.id).is_none()
    })
    .await;
}

fn output_file(daemon: &Daemon, id: &str) -> Option<PathBuf> {
    let mut files = files_below(&daemon.state_dir()).into_iter();
    files.find(|path| path.to_string_lossy().contains(id))
}

/// L6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn remove_by_filter_deletes_the_finished_tasks_that_match() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for name in ["a", "a", "b"] {
        let task = api.start(argv(["true"]).with_session(name)).await;
        api.ended(&task.id).await;
    }
    let running = daemon
        .run_as(&api, SpawnRequest::default().with_session("a"), "forever")
        .await;
    for (filter, expected) in [
        (session("a"), 2),
        (TaskFilter::default(), 1),
        (TaskFilter::default(), 0),
    ] {
        assert_eq!(api.remove_finished(filter).await.len(), expected);
    }
    assert_eq!(api.ids().await, [running.id]);
}
