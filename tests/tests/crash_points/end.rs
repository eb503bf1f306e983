//! The record of an end: of the tree, of the leader alone, and after the death of the shim.

use heeler_tests::{
    Api, Fixture, eventually,
    outcome::{assert_lost, exit_code},
    task_file::shim_of,
    v1::*,
};
use nix::sys::signal::Signal;

use crate::{at_each_point, doomed, restart_after};

/// The way a task ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Leader and tree together, with exit code 7.
    AtOnce,
    /// The leader with exit code 7, the rest of the tree later.
    LeaderFirst,
    /// Unobserved: the shim was killed.
    ShimKilled,
}

at_each_point! { an_end_interrupted:
    after_an_end_is_seen => "end.seen", End::AtOnce;
    before_an_end_is_committed => "journal.before-commit:3", End::AtOnce;
    after_an_end_is_committed => "journal.committed:3", End::AtOnce;
    after_an_end => "end.recorded", End::AtOnce;
    after_a_leaders_end_is_seen => "end.leader-seen", End::LeaderFirst;
    before_a_leaders_end_is_committed => "journal.before-commit:3", End::LeaderFirst;
    after_a_leaders_end_is_committed => "journal.committed:3", End::LeaderFirst;
    after_a_sweep => "end.swept", End::ShimKilled;
    before_a_loss_is_committed => "journal.before-commit:3", End::ShimKilled;
    after_a_loss_is_committed => "journal.committed:3", End::ShimKilled;
}

/// R1, R2, R3, E2, O11
async fn an_end_interrupted(point: &str, end: End) {
    let (mut daemon, follower) = doomed(point).await;
    let (gate, late) = (daemon.gate("gate"), daemon.gate("late"));
    let (gate_path, late_path) = (daemon.file("gate"), daemon.file("late"));
    let rest = match end {
        End::AtOnce => String::new(),
        End::LeaderFirst | End::ShimKilled => {
            format!("fork [ setsid pid hidden gate {late_path} print late ]")
        }
    };
    let script = format!("print early {rest} gate {gate_path} exit 7");
    let mut fixture = daemon.run(&daemon.api().await, &script).await;
    match end {
        End::AtOnce | End::LeaderFirst => gate.open(),
        End::ShimKilled => {
            let hidden = fixture.process("hidden").await;
            // Output that the shim has not read from the pipe is lost with it.
            daemon.api().await.output_reaches(&fixture.id, 1).await;
            let shim = shim_of(&fixture.process("leader").await);
            shim.signal(Signal::SIGKILL);
            eventually("the sweep of the tree", || hidden.is_gone()).await;
        }
    }
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    if end == End::LeaderFirst {
        let task = api.task(&fixture.id).await;
        assert_eq!(task.state(), TaskState::Running, "ended before its tree");
        late.open();
    }
    let task = api.ended(&fixture.id).await;
    fixture.assert_gone();
    match end {
        End::AtOnce | End::LeaderFirst => {
            assert_eq!((task.state(), exit_code(&task)), (TaskState::Failed, 7));
        }
        End::ShimKilled => {
            assert_lost(&task, "");
        }
    }
    assert_recorded_once(&api, &fixture, end).await;
    follower.assert_whole(&api).await;
    daemon.no_processes().await;
}

/// Asserts each event once, and the output.
async fn assert_recorded_once(api: &Api, fixture: &Fixture, end: End) {
    use TaskEventType::{Created, Ended, LeaderExited, Started};
    let (history, output) = match end {
        End::AtOnce => (vec![Created, Started, Ended], vec!["early"]),
        End::LeaderFirst => (
            vec![Created, Started, LeaderExited, Ended],
            vec!["early", "late"],
        ),
        End::ShimKilled => (vec![Created, Started, Ended], vec!["early"]),
    };
    assert_eq!(api.event_types(&fixture.id).await, history);
    assert_eq!(api.lines(&fixture.id).await, output);
}
