//! A damaged WAL: copied aside and reported; the commits before the damage stay, and an epoch begins.

use std::fs;

use heeler_tests::{
    Daemon, eventually,
    v1::{TaskState, outcome::Result as Ended},
};

use super::assert_sound;

/// Kills the server, changes its WAL, and returns the changed WAL.
async fn with_changed_wal(daemon: &mut Daemon, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    daemon.kill9();
    let path = daemon.path("state/journal.db-wal");
    let mut wal = fs::read(&path).unwrap();
    change(&mut wal);
    fs::write(&path, &wal).unwrap();
    wal
}

const WAL_HEADER: usize = 32;
const WAL_FRAME: usize = 24 + 4096;

/// R4: a bit that flips in the middle costs the commits behind it; tasks that run are not lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_flipped_bit_costs_the_commits_behind_it_and_begins_an_epoch() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "print live forever").await;
    let (before, epoch) = (api.history().await, api.server().await.epoch);
    let frames = |wal: &[u8]| (wal.len() - WAL_HEADER) / WAL_FRAME;
    let intact = frames(&fs::read(daemon.path("state/journal.db-wal")).unwrap());
    let late = api.start(daemon.script("print late")).await.id;
    api.ended(&late).await;
    let damaged = with_changed_wal(&mut daemon, |wal| {
        assert!(
            frames(wal) > intact + 1,
            "the late task is behind the damage"
        );
        wal[WAL_HEADER + intact * WAL_FRAME + 2000] ^= 1;
    })
    .await;
    daemon.restart().await;
    let line = daemon.logged("journal.db-wal is damaged").await;
    assert!(line.contains("strays/journal.db-wal"), "{line}");
    let copy = daemon.path("state/strays/journal.db-wal");
    assert!(fs::read(copy).unwrap() == damaged, "the copy is complete");
    let api = daemon.api().await;
    let history = api.history().await;
    assert_eq!(history[..before.len()], before, "what came before stays");
    assert_eq!(api.task(&fixture.id).await.state(), TaskState::Running);
    assert_ne!(api.server().await.epoch, epoch);
    assert_sound(&daemon, &api).await;
}

/// R4: events behind the damage are lost; an end that is in a task file is learned again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wal_with_a_hole_is_reported_and_ends_are_learned_again_from_task_files() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("print before gate {} exit 6", daemon.file("gate"));
    let fixture = daemon.run(&api, &script).await;
    let known = api.history().await.len();
    // A clean shutdown moves everything into the file: the hole is behind it.
    daemon.terminate();
    daemon.restart().await;
    let api = daemon.api().await;
    let epoch = api.server().await.epoch;
    gate.open();
    api.ended(&fixture.id).await;
    let late = api.start(daemon.script("print late")).await.id;
    api.ended(&late).await;
    let damaged = with_changed_wal(&mut daemon, |wal| {
        wal[WAL_HEADER..WAL_HEADER + 2 * WAL_FRAME].fill(0);
    })
    .await;
    daemon.restart().await;
    let line = daemon.logged("journal.db-wal is damaged").await;
    for part in ["from frame 1 on", " frames of ", "strays/journal.db-wal"] {
        assert!(line.contains(part), "{line}");
    }
    let kept = daemon.path("state/strays/journal.db-wal");
    assert!(fs::read(kept).unwrap() == damaged, "the copy is complete");
    let api = daemon.api().await;
    let task = api.ended(&fixture.id).await;
    let end = task.outcome.unwrap().result;
    assert_eq!(end, Some(Ended::ExitCode(6)), "the task file has it");
    assert_eq!(api.lines(&fixture.id).await, ["before"]);
    assert!(api.history().await.len() > known);
    let now = api.server().await.epoch;
    assert_ne!(now, epoch, "a new epoch");
    let stray = daemon.path("state/strays").join(&late);
    eventually("the file of the lost task is kept", || stray.exists()).await;
    assert_sound(&daemon, &api).await;
    daemon.kill9();
    daemon.restart().await;
    assert_eq!(
        daemon.log().matches("is damaged").count(),
        1,
        "reported once"
    );
}
