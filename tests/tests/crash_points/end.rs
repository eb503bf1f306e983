//! The intake of an end: of a task's own, of its leader's alone, and of one whose shim was killed.

use heeler_tests::{
    Api, Daemon, Fixture, Process,
    api::read,
    eventually, secs,
    v1::{outcome::Result as Ended, *},
    watch::types,
};
use nix::sys::signal::Signal;

use crate::{at_each_point, doomed, outlive};

/// How a task comes to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Whole, with code 7.
    AtOnce,
    /// The leader with code 7, another of its tree later.
    LeaderFirst,
    /// Nobody saw: the shim was killed.
    ShimKilled,
}

at_each_point! { an_end_cut_short:
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
async fn an_end_cut_short(point: &str, end: End) {
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
            // What the shim has not read from the pipe goes with it.
            let request = ReadOutputRequest {
                wait: Some(secs(30)),
                ..read(&fixture.id, 0)
            };
            daemon.api().await.read(request).await.unwrap();
            shim_of(&daemon, &fixture).await.signal(Signal::SIGKILL);
            eventually("the sweep", || hidden.is_gone()).await;
        }
    }
    outlive(&mut daemon, point).await;

    let api = daemon.api().await;
    if end == End::LeaderFirst {
        let task = api.task(&fixture.id).await;
        assert_eq!(task.state(), TaskState::Running, "others live on");
        late.open();
    }
    let task = api.ended(&fixture.id).await;
    fixture.assert_gone();
    let result = task.outcome.as_ref().unwrap().result.as_ref().unwrap();
    match end {
        End::AtOnce | End::LeaderFirst => {
            assert_eq!(
                (task.state(), result),
                (TaskState::Failed, &Ended::ExitCode(7))
            );
        }
        End::ShimKilled => {
            assert_eq!(task.state(), TaskState::Lost);
            assert!(matches!(result, Ended::Unknown(_)), "{result:?}");
        }
    }
    told_once(&api, &fixture, end).await;
    follower.assert_whole(&api).await;
    daemon.no_processes().await;
}

async fn told_once(api: &Api, fixture: &Fixture, end: End) {
    use TaskEventType::{Created, Ended, LeaderExited, Started};
    let (history, output) = match end {
        End::AtOnce => (vec![Created, Started, Ended], vec!["early"]),
        End::LeaderFirst => (
            vec![Created, Started, LeaderExited, Ended],
            vec!["early", "late"],
        ),
        End::ShimKilled => (vec![Created, Started, Ended], vec!["early"]),
    };
    assert_eq!(types(&api.history_of(&fixture.id).await), history);
    assert_eq!(api.lines(&fixture.id).await, output);
}

async fn shim_of(daemon: &Daemon, fixture: &Fixture) -> Process {
    let leader = fixture.process("leader").await;
    let shim = leader.stat().expect("it waits").parent;
    assert!(daemon.processes().iter().any(|process| process.pid == shim));
    Process::now(shim).expect("a shim outlives its leader")
}
