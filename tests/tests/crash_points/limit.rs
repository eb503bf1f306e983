//! A limit of output that a shim has acted on: the record of it, and of the kill.

use heeler_tests::{SpawnRequestExt as _, outcome::proof_of, v1::*};

use crate::{at_each_point, doomed, restart_after};

at_each_point! { a_kill_for_its_output_interrupted:
    after_a_limit_is_seen => "limit.seen", ();
    before_a_limit_is_committed => "journal.before-commit:3", ();
    after_a_limit_is_committed => "journal.committed:3", ();
    before_the_kill_is_committed => "journal.before-commit:4", ();
    after_the_kill_is_committed => "journal.committed:4", ();
}

/// O8, R3, E2
async fn a_kill_for_its_output_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let gate = daemon.gate("gate");
    let script = format!(
        "fork [ setsid pid hidden forever ] gate {} flood",
        daemon.file("gate")
    );
    let request = daemon
        .script(&script)
        .with_max_output(256 << 10)
        .with_on_output_limit(OutputLimitAction::Kill);
    let id = daemon.api().await.start(request).await.id;
    gate.open();
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    let task = api.ended(&id).await;
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(task.end_reason(), EndReason::OutputLimit);
    proof_of(&task);
    use TaskEventType::{Created, Ended, LeaderExited, OutputLimit, Started, Stopping};
    let mut events = api.event_types(&id).await;
    // The leader may be reaped before the rest of its tree.
    events.retain(|kind| *kind != LeaderExited);
    assert_eq!(events, [Created, Started, OutputLimit, Stopping, Ended]);
    follower.assert_whole(&api).await;
    daemon.no_processes().await;
}
