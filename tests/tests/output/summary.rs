//! The summary of an end: the same text from Inspect and from the event stream, and gone with the task.

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, foreground, history::after, request::cancel, shell, v1::*,
    watch::is_of,
};

/// The summary in the ENDED event of a task.
async fn delivered(api: &Api, id: &str, summaries: bool) -> String {
    let request = WatchEventsRequest {
        summaries,
        ..after(0)
    };
    let mut watch = api.watch(request).await.unwrap();
    let is_end = |event: &TaskEvent| is_of(event, id) && event.r#type() == TaskEventType::Ended;
    let mut events = watch.until(is_end).await;
    events.pop().unwrap().summary
}

/// E5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inspect_and_the_end_event_have_the_same_summary() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "for i in $(seq 5000); do echo step $i; done; echo 'error: it broke' >&2; exit 3";
    let failed = api.start(shell(script)).await.id;
    let quiet = api.start(shell("exit 0")).await.id;
    let attached = api
        .start(foreground().with_command_of(shell("echo hello; exit 4")))
        .await
        .id;
    let expected = [
        (&failed, "FAILED: exit code 3", "error: it broke"),
        (&quiet, "COMPLETED: exit code 0", "output: none"),
        (&attached, "FAILED: exit code 4", "\nhello\n"),
    ];
    for (id, end, line) in expected {
        api.ended(id).await;
        let summary = api.inspect(id).await.unwrap().summary;
        assert!(summary.contains(end) && summary.contains(line), "{summary}");
        assert!(summary.len() <= 4096 && summary.starts_with(id.as_str()));
        assert_eq!(delivered(&api, id, true).await, summary);
        assert_eq!(delivered(&api, id, false).await, "");
    }
    let before = api.inspect(&failed).await.unwrap().summary;
    daemon.kill9();
    daemon.restart().await;
    let after = daemon.api().await.inspect(&failed).await.unwrap().summary;
    assert_eq!(before, after);
}

/// E5, O8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_summary_of_truncated_output_has_the_last_lines_that_were_kept() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = shell("seq 1 1000000")
        .with_max_output(2 << 20)
        .with_on_output_limit(OutputLimitAction::Truncate);
    let id = api.start(request).await.id;
    api.ended(&id).await;
    let kept = api.output_up_to_gap(&id).await;
    let last = kept.lines().nth_back(1).unwrap();
    let summary = api.inspect(&id).await.unwrap().summary;
    assert!(
        summary.contains(&format!("\n{last}\n")),
        "{last}: {summary}"
    );
}

/// E5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_summary_tells_who_stopped_the_task_and_why_and_a_live_task_has_none() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "print working forever").await;
    assert_eq!(api.inspect(&fixture.id).await.unwrap().summary, "");
    let request = CancelRequest {
        actor: "alice".into(),
        reason: "took too long".into(),
        wait: true,
        ..cancel(&fixture.id)
    };
    api.cancel_one(request).await;
    let summary = api.inspect(&fixture.id).await.unwrap().summary;
    for part in [
        "CANCELLED: cancelled",
        "stopped by: alice",
        "reason: took too long",
    ] {
        assert!(summary.contains(part), "{part} is not in {summary}");
    }
}

/// L9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_remove_an_old_end_has_no_summary() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(shell("echo secret; exit 1")).await.id;
    api.ended(&id).await;
    assert!(delivered(&api, &id, true).await.contains("secret"));
    api.remove([&id]).await.unwrap();
    assert_eq!(delivered(&api, &id, true).await, "");
}
