//! Damaged write-ahead logs: repaired if nothing is missing, else reported and set aside.

use std::fs;

use heeler_tests::{Daemon, eventually, outcome::exit_code};

use super::assert_sound;

/// Kills the server, changes its WAL, and returns the changed bytes.
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

/// R4: a damaged frame costs nothing if a later frame has the same page.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_damaged_frame_with_a_later_version_is_repaired_without_loss() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "print live forever").await;
    let ended = api.start(daemon.script("print over exit 5")).await.id;
    let ended = api.ended(&ended).await;
    let (live, history) = (api.task(&fixture.id).await, api.history().await);
    let damaged = with_changed_wal(&mut daemon, |wal| {
        let versions = |page: u32| {
            let frames = wal[WAL_HEADER..].chunks_exact(WAL_FRAME);
            let of = |frame: &[u8]| frame[..4] == page.to_be_bytes();
            frames.filter(|frame| of(frame)).count()
        };
        let page = (2..9).max_by_key(|page| versions(*page));
        let page = page.unwrap().to_be_bytes();
        let frame = wal[WAL_HEADER..]
            .chunks_exact_mut(WAL_FRAME)
            .find(|frame| frame[..4] == page);
        frame.unwrap()[2000] ^= 1;
    })
    .await;
    daemon.restart().await;
    let line = daemon.logged("was damaged at frame").await;
    assert!(line.contains("nothing is lost"), "{line}");
    let kept = daemon.path("state/strays/journal.db-wal");
    assert!(
        fs::read(kept).unwrap() == damaged,
        "the damaged WAL is not kept"
    );
    let api = daemon.api().await;
    assert_eq!(api.history().await, history, "earlier events have changed");
    assert_eq!(api.task(&fixture.id).await, live);
    assert_eq!(api.task(&ended.id).await, ended);
    assert_sound(&daemon, &api).await;
}

/// R4: entries behind the damage are lost, except ends, which task files have too.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wal_with_a_hole_is_set_aside_and_ends_are_read_from_task_files() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("print before gate {} exit 6", daemon.file("gate"));
    let fixture = daemon.run(&api, &script).await;
    let known = api.history().await.len();
    // Checkpointed by now, so the hole is behind it.
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
    assert!(
        fs::read(kept).unwrap() == damaged,
        "the damaged WAL is not kept"
    );
    let api = daemon.api().await;
    let task = api.ended(&fixture.id).await;
    assert_eq!(exit_code(&task), 6, "the end in the task file");
    assert_eq!(api.lines(&fixture.id).await, ["before"]);
    assert!(api.history().await.len() > known);
    let now = api.server().await.epoch;
    assert_ne!(now, epoch, "the same epoch after a loss");
    let stray = daemon.path("state/strays").join(&late);
    eventually("the file of the lost task to be kept", || stray.exists()).await;
    assert_sound(&daemon, &api).await;
    daemon.kill9();
    daemon.restart().await;
    assert_eq!(
        daemon.log().matches("is damaged").count(),
        1,
        "reported once"
    );
}
