//! Pruning of old events, which is not an event itself.

use heeler_tests::{Daemon, argv};

use crate::{at_each_point, restart_after};

const TASKS: usize = 4;
const KEPT: u64 = 5;

at_each_point! { a_pruning_interrupted:
    before_events_are_pruned => "upkeep.before-commit", ();
    after_events_are_pruned => "upkeep.committed", ();
}

/// R3, E2, L7
async fn a_pruning_interrupted(point: &str, (): ()) {
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
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    for task in &tasks {
        assert_eq!(api.task(&task.id).await, *task, "the task has changed");
    }
    let oldest = api.oldest_kept(1).await;
    assert_eq!(oldest, head + 1 - KEPT);
    let kept = api.watch_after(oldest - 1).await.up_to(head).await;
    let revisions: Vec<u64> = kept.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, (oldest..=head).collect::<Vec<_>>());
}
