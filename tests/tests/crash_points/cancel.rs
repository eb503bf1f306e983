//! Cancel: from before its record to the record of the end.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heeler_tests::{
    Daemon, Fixture, eventually, micros, millis,
    outcome::proven,
    request::{cancel, grace},
    v1::*,
    watch::types,
};

use crate::{at_each_point, doomed, restart_after};

/// The progress of the cancel at the death.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Got {
    /// Not recorded: the task goes on.
    Nowhere,
    /// In the grace, which the next server must not restart.
    Asking,
    /// After the grace.
    Killing,
}

impl Got {
    /// For `Asking` longer than a server takes to start, so that a restarted grace shows.
    fn grace(self) -> Duration {
        match self {
            Self::Asking => Duration::from_secs(5),
            Self::Nowhere | Self::Killing => Duration::from_millis(300),
        }
    }
}

at_each_point! { a_cancel_interrupted:
    before_the_intent => "cancel.before-intent", Got::Nowhere;
    before_the_intent_is_committed => "journal.before-commit:3", Got::Nowhere;
    after_the_intent_is_committed => "journal.committed:3", Got::Asking;
    before_the_signal => "cancel.before-signal", Got::Asking;
    after_the_signal => "cancel.signal-ordered", Got::Asking;
    before_the_kill => "cancel.before-kill", Got::Asking;
    after_the_kill => "cancel.kill-ordered", Got::Killing;
    after_the_end_is_seen => "end.seen", Got::Killing;
    before_the_end_is_committed => "journal.before-commit:4", Got::Killing;
    after_the_end_is_committed => "journal.committed:4", Got::Killing;
    after_the_end => "end.recorded", Got::Killing;
}

/// R3, C13, E2
async fn a_cancel_interrupted(point: &str, got: Got) {
    let (mut daemon, follower) = doomed(point).await;
    let script = "ignore TERM fork [ setsid pid hidden forever ] pid ready forever";
    let mut fixture = daemon.run(&daemon.api().await, script).await;
    fixture.processes(&["ready", "hidden"]).await;
    let (asked, grace) = (now(), got.grace().as_micros() as i64);
    let answer = daemon.api().await.cancel(stop(&fixture.id, got)).await;
    assert!(answer.is_err(), "answered after the death: {answer:?}");
    eventually("the end of the grace", || now() > asked + grace).await;
    let restarted = now();
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    if got == Got::Nowhere {
        let task = api.task(&fixture.id).await;
        assert_eq!((task.state(), task.stop), (TaskState::Running, None));
        let hidden = fixture.process("hidden").await;
        assert!(hidden.is_alive());
        api.cancel_one(stop(&fixture.id, got)).await;
    }
    let task = api.ended(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(task.state(), TaskState::Cancelled);
    let stop = task.stop.unwrap();
    let requested = micros(&stop.request_time);
    proven(stop.proof.as_ref());
    assert!(requested >= asked, "not the time of the first request");
    let ended = micros(&task.end_time);
    assert!(
        ended >= requested + grace,
        "ended before the end of the grace"
    );
    if got != Got::Nowhere {
        assert!(requested < restarted, "not the time of the first request");
    }
    if got == Got::Asking {
        assert!(ended < restarted + grace, "the grace was restarted");
    }
    assert_stopped_once(&daemon, &fixture).await;
    follower.assert_whole(&api).await;
}

/// Asserts one STOPPING and one ENDED event; a LEADER_EXITED event may come between them.
async fn assert_stopped_once(daemon: &Daemon, fixture: &Fixture) {
    use TaskEventType::{Created, Ended, LeaderExited, Started, Stopping};
    let mut history = types(&daemon.api().await.history_of(&fixture.id).await);
    history.retain(|kind| *kind != LeaderExited);
    assert_eq!(history, [Created, Started, Stopping, Ended]);
    daemon.no_processes().await;
}

fn stop(id: &str, got: Got) -> CancelRequest {
    CancelRequest {
        how: grace(millis(got.grace().as_millis() as u64)),
        wait: true,
        ..cancel(id)
    }
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_micros() as i64
}
