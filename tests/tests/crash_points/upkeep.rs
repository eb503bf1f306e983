//! What a server writes for its own sake: it drops old events, and tells nobody.

use heeler_tests::{DEADLINE, Daemon, Refusal, argv, v1::*};
use tonic::Code;

use crate::{at_each_point, outlive};

const TASKS: usize = 4;
const KEPT: u64 = 5;

at_each_point! { a_shortening_cut_short:
    before_the_past_is_shortened => "upkeep.before-commit", ();
    after_the_past_is_shortened => "upkeep.committed", ();
}

/// R3, E2, L7
async fn a_shortening_cut_short(point: &str, (): ()) {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        let id = api.start(argv(["true"])).await.id;
        tasks.push(api.ended(&id).await);
    }
    let head = api.revision().await;
    daemon.terminate();
    daemon.add_arg(&format!("--keep-events={KEPT}"));
    daemon.die_at(point);
    daemon.launch();
    outlive(&mut daemon, point).await;

    let api = daemon.api().await;
    for task in &tasks {
        assert_eq!(api.task(&task.id).await, *task, "the same in every respect");
    }
    let oldest = oldest_kept(&api).await;
    assert_eq!(oldest, head + 1 - KEPT);
    let kept = api.watch_after(oldest - 1).await.up_to(head).await;
    let revisions: Vec<u64> = kept.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, (oldest..=head).collect::<Vec<_>>());
}

/// What a watcher from the beginning is told, once that is too long ago.
async fn oldest_kept(api: &heeler_tests::Api) -> u64 {
    let end = tokio::time::Instant::now() + DEADLINE;
    let request = WatchEventsRequest {
        after_revision: Some(0),
        ..Default::default()
    };
    loop {
        if let Err(status) = api.watch(request.clone()).await {
            let refusal = Refusal::of(&status);
            assert_eq!(refusal.code, Code::OutOfRange, "{refusal:?}");
            return refusal.value("oldest").parse().unwrap();
        }
        assert!(tokio::time::Instant::now() < end, "nothing was dropped");
        tokio::time::sleep(heeler_tests::waiting::STEP).await;
    }
}
