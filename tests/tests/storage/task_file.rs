//! Damaged task files: each costs at most what was damaged, and the server reports it.

use std::{fs, os::unix::net::UnixListener, path::Path};

use heeler_tests::{
    Api, Daemon, Fixture, eventually,
    outcome::{assert_lost, exit_code},
    output::{end, gap},
    process::kill_all,
    request::read,
    task_file::{BLOCKS, IDENTITY, LEADER_EXIT, START, TREE_END, boot_id, reseal, shim_of},
    v1::*,
};

use super::assert_sound;

/// A task that ended with this code, and with two lines of output, without a server.
pub(crate) async fn ended_unobserved(daemon: &mut Daemon, code: i32) -> Fixture {
    let gate = daemon.gate("gate");
    let script = format!(
        "print before gate {} print after exit {code}",
        daemon.file("gate")
    );
    let fixture = daemon.run(&daemon.api().await, &script).await;
    let shim = shim_of(&fixture.process("leader").await);
    daemon.kill9();
    gate.open();
    eventually("the end of the shim", || !shim.is_alive()).await;
    fixture
}

/// A task whose processes were killed without a server and without a record of the end.
async fn killed_unobserved(daemon: &mut Daemon) -> Fixture {
    let fixture = daemon.run(&daemon.api().await, "forever").await;
    let leader = fixture.process("leader").await;
    let shim = shim_of(&leader);
    daemon.kill9();
    kill_all(&[shim, leader]).await;
    fixture
}

/// A task as List shows it, without its file.
pub(crate) async fn listed(api: &Api, id: &str) -> BackgroundTask {
    let mut all = api.all().await;
    all.retain(|task| task.id == id);
    all.remove(0)
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_flipped_bit_costs_one_record_and_is_logged() {
    for (at, record) in [
        (IDENTITY + 20, "identity"),
        (START + 9, "start"),
        (LEADER_EXIT + 16, "leader's exit"),
        (TREE_END + 511, "tree's end"),
    ] {
        let mut daemon = Daemon::start().await;
        let fixture = ended_unobserved(&mut daemon, 6).await;
        daemon.edit(&fixture.id, |file| file[at] ^= 0x10);
        daemon.restart().await;
        let api = daemon.api().await;
        let task = api.task(&fixture.id).await;
        if record == "leader's exit" {
            assert_lost(&task, "cannot be read");
        } else {
            assert_eq!(exit_code(&task), 6, "{record}");
        }
        assert_eq!(api.lines(&fixture.id).await, ["before", "after"]);
        let line = daemon.logged("cannot be read").await;
        assert!(
            line.contains(record) && line.contains(&fixture.id),
            "{line}"
        );
        assert_sound(&daemon, &api).await;
    }
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_truncated_task_file_costs_what_was_cut() {
    for (len, exit, lines) in [
        (BLOCKS + 24 + 20 + 7, Some(6), vec!["before"]),
        (BLOCKS + 3, Some(6), vec![]),
        // In the record of the tree's end, then in that of the leader's exit.
        (TREE_END + 30, Some(6), vec![]),
        (LEADER_EXIT + 30, None, vec![]),
        (START, None, vec![]),
        (1, None, vec![]),
        (0, None, vec![]),
    ] {
        let mut daemon = Daemon::start().await;
        let fixture = ended_unobserved(&mut daemon, 6).await;
        daemon.edit(&fixture.id, |file| file.truncate(len));
        daemon.restart().await;
        let api = daemon.api().await;
        let task = api.task(&fixture.id).await;
        match exit {
            Some(code) => assert_eq!(exit_code(&task), code, "at {len}"),
            None => assert_lost(&task, "was gone"),
        }
        assert_eq!(api.lines(&fixture.id).await, lines, "at {len}");
        assert_sound(&daemon, &api).await;
    }
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_damaged_block_of_output_costs_itself() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("bytes 200000")).await;
    let whole = api.ended(&task.id).await.output_bytes;
    assert_eq!(whole, 200_000);
    daemon.kill9();
    daemon.edit(&task.id, |file| file[BLOCKS + 65_536 + 8] ^= 1);
    daemon.restart().await;
    let api = daemon.api().await;
    let chunks = api.chunks(&task.id).await.unwrap();
    let gaps: Vec<_> = chunks.iter().filter_map(gap).collect();
    let [lost] = gaps[..] else {
        panic!("{gaps:?}");
    };
    assert_eq!(lost.cause(), OutputGapCause::Lost);
    assert!(lost.length <= 65_536, "{lost:?}");
    assert_eq!(end(chunks.last().unwrap()), whole);
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn reads_skip_lost_output_and_still_count_it() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(daemon.script("bytes 5")).await.id;
    api.ended(&id).await;
    daemon.edit(&id, |file| file.truncate(BLOCKS));
    let read_from = async |offset| api.read(read(&id, offset)).await.unwrap();
    for offset in [0, 3] {
        let answer = read_from(offset).await;
        let [chunk] = &answer.chunks[..] else {
            panic!("{answer:?}");
        };
        let lost = gap(chunk).unwrap();
        assert_eq!((chunk.offset, lost.length), (offset, 5 - offset));
        assert!(answer.complete && lost.cause() == OutputGapCause::Lost);
        assert_eq!((answer.next_offset, answer.end_offset), (5, 5));
    }
    let beyond = read_from(9).await;
    assert_eq!((beyond.next_offset, beyond.end_offset), (9, 5));
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_file_of_another_task_is_neither_read_nor_changed() {
    let mut daemon = Daemon::start().await;
    let other = daemon
        .api()
        .await
        .start(daemon.script("print other exit 0"))
        .await;
    daemon.api().await.ended(&other.id).await;
    let fixture = killed_unobserved(&mut daemon).await;
    let foreign = fs::read(daemon.task_file(&other.id)).unwrap();
    fs::write(daemon.task_file(&fixture.id), &foreign).unwrap();
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_lost(&task, "another task's");
    let events = api.history_of(&fixture.id).await;
    assert_eq!(
        events.last().unwrap().task.as_ref().unwrap().output_bytes,
        0
    );
    assert_eq!(fs::read(daemon.task_file(&fixture.id)).unwrap(), foreign);
    assert_sound(&daemon, &api).await;
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_directory_fifo_socket_or_garbage_instead_of_a_task_file_costs_that_task_alone() {
    let put: [fn(&Path); 4] = [
        |path| fs::create_dir(path).unwrap(),
        |path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRUSR).unwrap(),
        |path| drop(UnixListener::bind(path).unwrap()),
        |path| fs::write(path, [0xA5; 9000]).unwrap(),
    ];
    for put in put {
        let mut daemon = Daemon::start().await;
        let fixture = killed_unobserved(&mut daemon).await;
        let file = daemon.task_file(&fixture.id);
        fs::remove_file(&file).unwrap();
        put(&file);
        daemon.restart().await;
        let api = daemon.api().await;
        assert_lost(&listed(&api, &fixture.id).await, "");
        assert!(file.exists(), "it was removed");
        assert_sound(&daemon, &api).await;
    }
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn unknown_files_among_the_task_files_are_logged_and_kept() {
    let mut daemon = Daemon::start().await;
    let task = daemon.api().await.start(daemon.script("print mine")).await;
    daemon.api().await.ended(&task.id).await;
    let mine = fs::read(daemon.task_file(&task.id)).unwrap();
    daemon.kill9();
    let note = daemon.path("state/tasks/a/note.txt");
    fs::write(&note, "hello").unwrap();
    let (unknown, empty) = ("shell-aaaaaaaaaa", "shell-bbbbbbbbba");
    fs::write(daemon.task_file(unknown), &mine).unwrap();
    fs::write(daemon.task_file(empty), "").unwrap();
    fs::create_dir(daemon.task_file("shell-cccccccccc")).unwrap();
    daemon.restart().await;
    let line = daemon.logged("not a task file").await;
    assert!(line.contains("note.txt"), "{line}");
    let line = daemon.logged("set aside").await;
    assert!(line.contains(unknown), "{line}");
    let line = daemon.logged("it is not a file").await;
    assert!(line.contains("shell-cccccccccc"), "{line}");
    eventually("the empty file to be deleted", || {
        !daemon.task_file(empty).exists()
    })
    .await;
    assert_eq!(fs::read_to_string(note).unwrap(), "hello");
    let kept = daemon.path("state/strays").join(unknown);
    assert_eq!(fs::read(kept).unwrap(), mine);
    assert!(!daemon.task_file(unknown).exists());
    let api = daemon.api().await;
    assert_eq!(api.lines(&task.id).await, ["mine"]);
    assert_sound(&daemon, &api).await;
}

/// R5: the counterpart of the test with another boot id, so that that one can fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_record_of_this_boot_is_not_taken_for_another_boots() {
    let mut daemon = Daemon::start().await;
    let fixture = killed_unobserved(&mut daemon).await;
    daemon.edit(&fixture.id, |file| {
        assert_eq!(file[24..40], boot_id(), "the boot id is at offset 24");
        reseal(file, IDENTITY);
    });
    daemon.restart().await;
    let task = daemon.api().await.task(&fixture.id).await;
    assert_lost(&task, "its shim was gone");
}
