//! Detach: from before its record to the spill order.

use heeler_tests::{Daemon, eventually, foreground, outcome::exit_code, v1::*, watch::types};

use crate::{at_each_point, doomed, restart_after};

/// The progress of the detach at the death.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Got {
    /// Not recorded: the task is in the foreground.
    Nowhere,
    /// Recorded.
    Detached,
}

at_each_point! { a_detach_interrupted:
    before_the_intent => "detach.before-intent", Got::Nowhere;
    before_the_intent_is_committed => "journal.before-commit:3", Got::Nowhere;
    after_the_intent_is_committed => "journal.committed:3", Got::Detached;
    before_the_spill => "detach.before-spill", Got::Detached;
    after_the_spill => "detach.spill-ordered", Got::Detached;
}

/// R3, F1, F2
async fn a_detach_interrupted(point: &str, got: Got) {
    let (mut daemon, follower) = doomed(point).await;
    let gate = daemon.gate("gate");
    let script = format!(
        "print one pid ready gate {} print two exit 7",
        daemon.file("gate")
    );
    let fixture = daemon
        .run_as(&daemon.api().await, foreground(), &script)
        .await;
    fixture.process("ready").await;
    let answer = daemon
        .api()
        .await
        .detach(heeler_tests::request::detach(&fixture.id))
        .await;
    assert!(answer.is_err(), "answered after the death: {answer:?}");
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    let placement = api.task(&fixture.id).await.placement();
    match got {
        Got::Nowhere => {
            assert_eq!(placement, Placement::Foreground);
            let again = api.detach_one(&fixture.id).await;
            assert_eq!(again.outcome(), DetachOutcome::Detached);
        }
        Got::Detached => {
            assert_eq!(placement, Placement::Background);
            let again = api.detach_one(&fixture.id).await;
            assert_eq!(again.outcome(), DetachOutcome::AlreadyBackground);
        }
    }
    spilled(&daemon, &fixture.id).await;
    gate.open();
    let task = api.ended(&fixture.id).await;
    assert_eq!(exit_code(&task), 7);
    assert_eq!(api.lines(&fixture.id).await, ["one", "two"]);
    let received = follower.up_to(api.revision().await).await;
    assert_eq!(received.faults, Vec::<String>::new());
    assert_eq!(
        types(&received.events),
        [
            TaskEventType::Created,
            TaskEventType::Started,
            TaskEventType::Detached,
            TaskEventType::Ended
        ]
    );
}

/// Waits until the output is on disk.
async fn spilled(daemon: &Daemon, id: &str) {
    let memory = daemon.memory_file(id);
    eventually("the output on disk", || !memory.exists()).await;
}
