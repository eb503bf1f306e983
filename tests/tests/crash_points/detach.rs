//! Detach, from before its intent to the order that takes the output to the disk.

use heeler_tests::{
    Daemon, eventually, foreground,
    v1::{outcome::Result as Ended, *},
    watch::types,
};

use crate::{at_each_point, doomed, outlive};

/// How far the detach had come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Got {
    /// Not onto the disk: the task is in the foreground.
    Nowhere,
    /// Onto it.
    Detached,
}

at_each_point! { a_detach_cut_short:
    before_the_intent => "detach.before-intent", Got::Nowhere;
    before_the_intent_is_committed => "journal.before-commit:3", Got::Nowhere;
    after_the_intent_is_committed => "journal.committed:3", Got::Detached;
    before_the_spill => "detach.before-spill", Got::Detached;
    after_the_spill => "detach.spill-ordered", Got::Detached;
}

/// R3, F1, F2
async fn a_detach_cut_short(point: &str, got: Got) {
    let (mut daemon, follower) = doomed(point).await;
    let gate = daemon.gate("gate");
    let request = foreground();
    let script = format!(
        "print one pid ready gate {} print two exit 7",
        daemon.file("gate")
    );
    let fixture = daemon.run_as(&daemon.api().await, request, &script).await;
    fixture.process("ready").await;
    let answer = daemon
        .api()
        .await
        .detach(heeler_tests::api::detach(&fixture.id))
        .await;
    assert!(answer.is_err(), "an answer from the dead: {answer:?}");
    outlive(&mut daemon, point).await;

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
    on_disk(&daemon, &fixture.id).await;
    gate.open();
    let task = api.ended(&fixture.id).await;
    assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(7)));
    assert_eq!(api.lines(&fixture.id).await, ["one", "two"]);
    let told = follower.up_to(api.revision().await).await;
    assert_eq!(told.faults, Vec::<String>::new());
    assert_eq!(
        types(&told.events),
        [
            TaskEventType::Created,
            TaskEventType::Started,
            TaskEventType::Detached,
            TaskEventType::Ended
        ]
    );
}

/// That its output gets there.
async fn on_disk(daemon: &Daemon, id: &str) {
    let memory = daemon.memory_file(id);
    eventually("its output on disk", || !memory.exists()).await;
}
